"""A profile of the heap at the end of a program that knows nothing of it."""

import os
import signal
import subprocess
import time

import pytest
from conftest import ROOT

LIBRARY = ROOT / "build/release/libhmalloc.so"


@pytest.fixture(scope="session")
def endings(hmalloc, build):
    return build("endings.c", "endings", "-pthread", "-fno-builtin")


def run(program, *arguments, cwd, **environment):
    return subprocess.run([program, *arguments], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300,
                          env={"LD_PRELOAD": str(LIBRARY), **environment})


def fields_of(message):
    """(number, value) of each field: an integer or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        tag, value = varint(), varint()
        if tag & 7 == 2:
            at += value
            value = message[at - value:at]
        yield tag >> 3, value


def strings_of(profile):
    return [value.decode() for number, value in fields_of(profile) if number == 6]


def held_of(profile):
    """Bytes, by the fourth value of each sample."""
    def numbers(packed):
        number = shift = 0
        for byte in packed:
            number |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                yield number
                number = shift = 0

    samples = (dict(fields_of(value)) for number, value in fields_of(profile) if number == 2)
    return sum([*numbers(sample[2])][3] for sample in samples)


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
    assert process.wait(timeout=300) == -signal.SIGTERM
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


@pytest.fixture(scope="session")
def grows(build):
    return build("grows.c", "grows", "-fno-builtin")


def test_the_peak_has_a_profile_of_its_own(grows, tmp_path):
    result = run(grows, cwd=tmp_path, HMALLOC_PROFILE="heap:rate=64K", HMALLOC_PROFILE_PEAK="1", HMALLOC_PROFILE_FILE="it")
    assert (result.returncode, result.stderr) == (0, "")
    assert sorted(os.listdir(tmp_path)) == ["it", "it.peak"]
    assert held_of((tmp_path / "it").read_bytes()) < 5 << 20
    assert 30 << 20 < held_of((tmp_path / "it.peak").read_bytes()) < 60 << 20


def wait_until(is_so):
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_who_makes_the_trigger_gets_a_profile(grows, tmp_path):
    profile, pattern = tmp_path / "it", tmp_path / "now.%p"
    with subprocess.Popen([grows, "goes on"], stdin=subprocess.PIPE, env={
            "LD_PRELOAD": str(LIBRARY), "HMALLOC_PROFILE": "heap:rate=64K", "HMALLOC_PROFILE_FILE": str(profile),
            "HMALLOC_PROFILE_TRIGGER": str(pattern)}) as process:
        trigger = tmp_path / f"now.{process.pid}"
        for _ in range(2):
            assert not profile.exists()
            trigger.touch()
            wait_until(lambda: not trigger.exists())
            assert "inuse_objects" in strings_of(profile.read_bytes())
            profile.unlink()
        process.stdin.close()
        assert process.wait(timeout=300) == 0
    assert profile.exists()


def test_a_program_that_sleeps_answers_by_the_background_thread(tmp_path):
    profile, trigger = tmp_path / "it", tmp_path / "now"
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={
            "LD_PRELOAD": str(LIBRARY), "HMALLOC_PROFILE": "heap:rate=1", "HMALLOC_PROFILE_FILE": str(profile),
            "HMALLOC_PROFILE_TRIGGER": str(trigger), "HMALLOC_BACKGROUND": "1"}) as process:
        process.stdin.write(b"are you there?\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"are you there?\n"  # it allocates nothing from here on
        trigger.touch()
        wait_until(lambda: not trigger.exists())
        assert "inuse_objects" in strings_of(profile.read_bytes())
        process.stdin.close()
        assert process.wait(timeout=300) == 0


@pytest.mark.parametrize("profile, line", [
    ("nowhere/it", "hmalloc: cannot write HMALLOC_PROFILE_FILE=nowhere/it\n"),
    ("pipe", "hmalloc: cannot write HMALLOC_PROFILE_FILE=pipe\n"),  # nobody reads, and nobody waits
])
def test_a_trigger_stays_where_no_profile_can_be_written(grows, tmp_path, profile, line):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "now").touch()
    with subprocess.Popen([grows, "goes on"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env={
            "LD_PRELOAD": str(LIBRARY), "HMALLOC_PROFILE": "heap:rate=64K", "HMALLOC_PROFILE_FILE": profile,
            "HMALLOC_PROFILE_TRIGGER": "now"}) as process:
        assert process.stderr.readline() == line
        assert (tmp_path / "now").exists()
        process.kill()


def test_a_trigger_that_stays_is_answered_once(grows, tmp_path):
    trigger = tmp_path / "folder"
    trigger.mkdir()
    result = run(grows, cwd=tmp_path, HMALLOC_PROFILE="heap:rate=64K", HMALLOC_PROFILE_FILE="it", HMALLOC_PROFILE_TRIGGER="folder")
    assert (result.returncode, result.stderr) == (0, "hmalloc: cannot write HMALLOC_PROFILE_TRIGGER=folder\n")
