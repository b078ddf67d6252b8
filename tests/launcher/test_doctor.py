"""hmalloc doctor: the verdict first, and the true reason."""

import os
import struct
import subprocess
from pathlib import Path

import pytest
from conftest import LAUNCHER


def verdict(shown):
    return shown.stdout.splitlines()[0]


def test_an_ordinary_program_is_served(hmalloc, build):
    shown = hmalloc("doctor", "--", build("touch.c", "touch"))
    assert shown.returncode == 0 and verdict(shown).startswith("yes: hmalloc serves ")
    assert "libhmalloc.so" in shown.stdout and "libc.so.6" in shown.stdout


def test_the_options_in_effect_are_shown(hmalloc):
    assert "options" in hmalloc("doctor", "--", "ls").stdout


@pytest.mark.parametrize("reason, source, options", [
    ("statically linked", "nothing.c", ["-static"]),
    ("statically linked", "nothing.c", ["-static-pie"]),
    ("AddressSanitizer", "nothing.c", ["-fsanitize=address"]),
    ("ThreadSanitizer", "nothing.c", ["-fsanitize=thread"]),
    ("defines malloc itself", "own_malloc.c", ["-rdynamic", "-fno-builtin"]),
    ("uses musl", "nothing.c", ["-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1"]),
])
def test_programs_out_of_reach(hmalloc, build, reason, source, options):
    shown = hmalloc("doctor", "--", build(source, "out-of-reach", *options))
    assert shown.returncode == 1
    assert verdict(shown).startswith("no: hmalloc cannot serve ") and reason in verdict(shown)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("bit, reason", [(0o4755, "setuid"), (0o2755, "setgid")])
def test_privileged_programs(hmalloc, build, bit, reason):
    program = build("nothing.c", reason)
    os.chown(program, 65534, 65534)
    program.chmod(bit)
    shown = hmalloc("doctor", "--", program)
    assert shown.returncode == 1 and f"ignores LD_PRELOAD for the program: it is {reason}" in verdict(shown)


def test_another_architecture(hmalloc, script, tmp_path):
    program = tmp_path / "small-machine"
    ident = b"\x7fELF" + bytes([1, 1, 1]) + bytes(9)
    program.write_bytes(ident + struct.pack("<HHIIIIIHHHHHH", 2, 40, 1, 0, 0, 0, 0, 52, 32, 0, 40, 0, 0))
    program.chmod(0o755)
    assert "another architecture (32-bit ARM)" in verdict(hmalloc("doctor", "--", program))


def test_a_script_is_followed_to_its_interpreter(hmalloc, script):
    outer = script(f"#!/usr/bin/env {script('#!/bin/sh -e', name='inner')}\n", name="outer")
    shown = hmalloc("doctor", "--", outer)
    assert shown.returncode == 0
    assert "outer -> " in shown.stdout and "inner -> /bin/sh (ELF" in shown.stdout


def test_an_empty_interpreter_is_no_traceback(hmalloc, script):
    shown = hmalloc("doctor", "--", script("#!\n"))
    assert shown.returncode == 126 and "names no interpreter" in shown.stderr


def test_the_heap_of_cpython_is_explained(hmalloc):
    assert "PYTHONMALLOC=malloc" in hmalloc("doctor", "--", "/usr/bin/python3").stdout
    assert "PYTHONMALLOC=malloc" not in hmalloc("doctor", "--", "/usr/bin/python3", PYTHONMALLOC="malloc").stdout


def test_a_program_is_not_run(hmalloc, script, tmp_path):
    marker = tmp_path / "marker"
    hmalloc("doctor", "--", script(f"#!/bin/sh\ntouch {marker}\n"))
    assert not marker.exists()


@pytest.fixture
def sleeper():
    running = []

    def start(*prefix, **environment):
        process = subprocess.Popen([*prefix, "sh", "-c", "echo; exec sleep 60"], stdout=subprocess.PIPE,
                                   env=os.environ | environment)
        running.append(process)
        process.stdout.readline()
        # The shell has spoken; its exec of sleep takes a moment more.
        while Path(f"/proc/{process.pid}/comm").read_text() != "sleep\n":
            pass
        return process.pid

    yield start
    for process in running:
        process.kill()
        process.wait()


def test_a_process_that_is_served(hmalloc, sleeper):
    shown = hmalloc("doctor", sleeper(LAUNCHER, "run", "--", HMALLOC_VERBOSE="0"))
    assert shown.returncode == 0 and verdict(shown).startswith("yes: hmalloc serves sleep (process ")
    assert "HMALLOC_VERBOSE=0" in shown.stdout and "MiB resident" in shown.stdout


def test_a_process_that_is_not(hmalloc, sleeper):
    shown = hmalloc("doctor", sleeper())
    assert shown.returncode == 1 and "it was started without it" in verdict(shown)


def test_a_process_whose_library_is_missing(hmalloc, sleeper):
    shown = hmalloc("doctor", sleeper(LD_PRELOAD="/no/such/libhmalloc.so"))
    assert shown.returncode == 1 and "/no/such/libhmalloc.so does not exist" in verdict(shown)
