"""A profile of the heap at the end of a program that knows nothing of it."""

import os
import signal
import subprocess

import pytest
from conftest import ROOT

LIBRARY = ROOT / "build/release/libhmalloc.so"


@pytest.fixture(scope="session")
def endings(hmalloc, build):
    return build("endings.c", "endings", "-pthread", "-fno-builtin")


def run(program, *arguments, cwd, **environment):
    return subprocess.run([program, *arguments], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                          env={"LD_PRELOAD": str(LIBRARY), **environment})


def strings_of(profile):
    """Field 6 of each message at the top: a tag, a length, bytes."""
    found, at = [], 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = profile[at]
            at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(profile):
        tag = varint()
        value = varint()
        if tag & 7 == 2:
            if tag >> 3 == 6:
                found.append(profile[at:at + value].decode())
            at += value
    return found


def test_each_process_writes_its_own(endings, tmp_path):
    result = run(endings, "", cwd=tmp_path, HMALLOC_PROFILE="heap:rate=1")
    assert (result.returncode, result.stderr) == (0, "")
    profile, = tmp_path.glob("hmalloc.*.pb")
    strings = strings_of(profile.read_bytes())
    assert strings[0] == "" and {"inuse_space", "alloc_objects", "bytes"} <= set(strings)
    assert any(name.endswith("/endings") for name in strings), "what it has mapped"


def test_it_is_written_at_sigterm(endings, tmp_path):
    profile = tmp_path / "at the end.pb"
    process = subprocess.Popen([endings, "sleep"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                               env={"LD_PRELOAD": str(LIBRARY), "HMALLOC_PROFILE": "heap", "HMALLOC_PROFILE_FILE": str(profile)})
    assert process.stdout.readline() == "ready\n"
    assert not profile.exists()
    process.terminate()
    assert process.wait(timeout=60) == -signal.SIGTERM
    assert "inuse_objects" in strings_of(profile.read_bytes())


def test_without_it_nothing_is_written(endings, tmp_path):
    assert run(endings, "", cwd=tmp_path, HMALLOC_PROFILE="0").returncode == 0
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("environment, message", [
    ({"HMALLOC_PROFILE": "stack"}, "hmalloc: HMALLOC_PROFILE=stack is not understood; ignored\n"),
    ({"HMALLOC_PROFILE": "heap:rate=0"}, "hmalloc: HMALLOC_PROFILE=heap:rate=0 is not understood; ignored\n"),
    ({"HMALLOC_PROFILE": "heap", "HMALLOC_PROFILE_FILE": "/nowhere/it"}, "hmalloc: cannot write HMALLOC_PROFILE_FILE=/nowhere/it\n"),
    ({"HMALLOC_PROFILE": "heap", "HMALLOC_PROFILE_FILE": "/dev/full"}, "hmalloc: cannot write HMALLOC_PROFILE_FILE=/dev/full\n"),
])
def test_what_is_wrong_is_one_line(endings, tmp_path, environment, message):
    result = run(endings, "", cwd=tmp_path, **environment)
    assert (result.returncode, result.stderr) == (0, message)
