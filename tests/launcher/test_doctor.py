"""hmalloc doctor: the verdict first, and the true reason."""

import os
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

import pytest
from conftest import LAUNCHER, ROOT, SOURCES


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


@pytest.mark.skipif(os.getuid() != 0, reason="it is root who is not concerned")
def test_root_is_told_what_others_get(hmalloc, build):
    program = build("nothing.c", "setuid-root")
    program.chmod(0o4755)
    shown = hmalloc("doctor", "--", program)
    assert shown.returncode == 0 and verdict(shown).startswith("yes: hmalloc serves ")
    assert verdict(shown).endswith(" for root; no for an ordinary user: it is setuid")
    program.chmod(0o755)
    assert "ordinary user" not in hmalloc("doctor", "--", program).stdout


def test_a_malloc_for_the_program_alone(hmalloc, build):
    program = build("wait.c", "hidden", SOURCES / "own_malloc.c", "-fvisibility=hidden", "-fno-builtin")
    assert "the program defines malloc itself, for its own calls" in verdict(hmalloc("doctor", "--", program))


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


@pytest.fixture
def waiting():
    """Starts what speaks and then waits; its process, until the end of the test."""
    running = []

    def start(*command, **environment):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | environment)
        running.append(process)
        assert process.stdout.readline() == b"waiting\n"
        return process.pid

    yield start
    for process in running:
        process.kill()
        process.wait()


def test_a_process_that_defines_malloc_itself(hmalloc, build, waiting):
    program = build("wait.c", "own-waiting", SOURCES / "own_malloc.c", "-rdynamic", "-fno-builtin")
    shown = hmalloc("doctor", waiting(LAUNCHER, "run", "--", program))
    assert shown.returncode == 1 and verdict(shown).startswith("no: hmalloc is loaded into own-waiting (process ")
    assert "the program defines malloc itself" in verdict(shown) and "libhmalloc.so" in shown.stdout


def test_a_process_on_a_library_that_comes_first(hmalloc, build, waiting):
    library = build("own_malloc.c", "libfirst.so", "-shared", "-fPIC", "-fno-builtin")
    release = ROOT / "build/release/libhmalloc.so"
    program = build("wait.c", "waiting")
    shown = hmalloc("doctor", waiting(program, LD_PRELOAD=f"{library}:{release}"))
    assert shown.returncode == 1 and f"does not serve it: {library} comes before it" in verdict(shown)
    assert hmalloc("doctor", waiting(program, LD_PRELOAD=f"{release}:{library}")).returncode == 0


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_a_process_that_an_ordinary_user_started(hmalloc, build, waiting):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        program = Path(folder) / "privileged"
        shutil.copy(build("wait.c", "waiting"), program)
        program.chmod(0o4755)
        process = waiting("setpriv", "--reuid=65534", "--clear-groups", program,
                          LD_PRELOAD=str(ROOT / "build/release/libhmalloc.so"))
        if "Uid:\t65534\t0\t" not in Path(f"/proc/{process}/status").read_text():
            pytest.skip("setuid programs gain nothing in this folder")
        shown = hmalloc("doctor", process)
    assert shown.returncode == 1 and "the loader ignores LD_PRELOAD for it: it is setuid" in verdict(shown)


# ---- What the library itself says. ----------------------------------------------------------------------------------


def test_verbose_says_active_where_it_is(hmalloc, build):
    # A program without position-independent code lends malloc an address of its own.
    for options in ([], ["-no-pie", "-fno-pie", "-DADDRESS"]):
        shown = hmalloc("run", "--", build("nothing.c", "named", *options), HMALLOC_VERBOSE="1")
        assert ": active in process " in shown.stderr and "loaded" not in shown.stderr, options


def test_verbose_says_loaded_where_the_program_has_a_malloc(hmalloc, build):
    for options in (["-rdynamic"], ["-rdynamic", "-no-pie", "-fno-pie"]):
        program = build("own_malloc.c", "own-verbose", *options, "-fno-builtin")
        shown = hmalloc("run", "--", program, HMALLOC_VERBOSE="1")
        first = shown.stderr.splitlines()[0]
        assert ": loaded in process " in first and "active in" not in shown.stderr
        assert first.endswith("(own-verbose) but not active: the program defines malloc itself")


def test_verbose_says_loaded_where_another_library_comes_first(hmalloc, build):
    library = build("own_malloc.c", "libfirst.so", "-shared", "-fPIC", "-fno-builtin")
    shown = subprocess.run([build("nothing.c", "nothing")], capture_output=True, text=True, env={
        "HMALLOC_VERBOSE": "1", "LD_PRELOAD": f"{library}:{ROOT / 'build/release/libhmalloc.so'}"}).stderr
    assert "but not active: the malloc of another library comes first\n" in shown


def test_verbose_in_a_static_program(hmalloc, build):
    archive = ROOT / "build/release/libhmalloc.a"
    program = build("nothing.c", "static-hmalloc", "-static", "-Wl,--undefined=malloc", archive, "-pthread")
    shown = subprocess.run([program], capture_output=True, text=True, env={"HMALLOC_VERBOSE": "1"}).stderr
    assert ": active in process " in shown


def test_a_process_whose_library_is_missing(hmalloc, sleeper):
    shown = hmalloc("doctor", sleeper(LD_PRELOAD="/no/such/libhmalloc.so"))
    assert shown.returncode == 1 and "/no/such/libhmalloc.so does not exist" in verdict(shown)
