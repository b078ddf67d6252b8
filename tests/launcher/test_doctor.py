"""hmalloc doctor: the verdict first, and the true reason."""

import os
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

import pytest
from conftest import LAUNCHER, ROOT, SOURCES

LIBRARY = ROOT / "build/release/libhmalloc.so"


def verdict(shown):
    return shown.stdout.splitlines()[0]


def test_an_ordinary_program_is_served_with_the_options_in_effect(hmalloc, build):
    shown = hmalloc("doctor", "--", build("touch.c", "touch"))
    assert shown.returncode == 0 and verdict(shown).startswith("yes: hmalloc serves ")
    assert all(word in shown.stdout for word in ("libhmalloc.so", "libc.so.6", "options"))


@pytest.mark.parametrize("reason, source, options", [
    ("statically linked", "nothing.c", ["-static"]),
    ("statically linked", "nothing.c", ["-static-pie"]),
    ("AddressSanitizer", "nothing.c", ["-fsanitize=address"]),
    ("ThreadSanitizer", "nothing.c", ["-fsanitize=thread"]),
    ("defines malloc itself", "own_malloc.c", ["-rdynamic", "-fno-builtin"]),
    ("the program defines malloc itself, for its own calls", "wait.c",
     [SOURCES / "own_malloc.c", "-fvisibility=hidden", "-fno-builtin"]),
    ("uses musl", "nothing.c", ["-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1"]),
])
def test_programs_out_of_reach(tool, build, reason, source, options):
    shown = tool("doctor", "--", build(source, "out-of-reach", *options))
    assert shown.returncode == 1
    assert verdict(shown).startswith("no: hmalloc cannot serve ") and reason in verdict(shown)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("bit, reason", [(0o4755, "setuid"), (0o2755, "setgid")])
def test_privileged_programs(tool, build, bit, reason):
    program = build("nothing.c", reason)
    os.chown(program, 65534, 65534)
    program.chmod(bit)
    shown = tool("doctor", "--", program)
    assert shown.returncode == 1 and f"ignores LD_PRELOAD for the program: it is {reason}" in verdict(shown)


def test_another_architecture(tool, script, tmp_path):
    program = tmp_path / "small-machine"
    ident = b"\x7fELF" + bytes([1, 1, 1]) + bytes(9)
    program.write_bytes(ident + struct.pack("<HHIIIIIHHHHHH", 2, 40, 1, 0, 0, 0, 0, 52, 32, 0, 40, 0, 0))
    program.chmod(0o755)
    assert "another architecture (32-bit ARM)" in verdict(tool("doctor", "--", program))


def test_a_script_is_followed_to_its_interpreter(tool, script):
    outer = script(f"#!/usr/bin/env {script('#!/bin/sh -e', name='inner')}\n", name="outer")
    shown = tool("doctor", "--", outer)
    assert shown.returncode == 0
    assert "outer -> " in shown.stdout and "inner -> /bin/sh (ELF" in shown.stdout


def test_an_empty_interpreter_is_no_traceback(tool, script):
    shown = tool("doctor", "--", script("#!\n"))
    assert shown.returncode == 126 and "names no interpreter" in shown.stderr


@pytest.mark.parametrize("first", ["#!/bin/sh -e 'x", "#!/usr/bin/env -S -u FOO sh -e", "#!/usr/bin/env -S A=b sh"])
def test_what_stands_behind_the_interpreter_is_not_taken_for_it(tool, script, first):
    shown = tool("doctor", "--", script(f"{first}\n"))
    assert shown.returncode == 0 and "script -> /" in shown.stdout and "sh (ELF" in shown.stdout, shown


def test_the_heap_of_cpython_is_explained(tool):
    assert "PYTHONMALLOC=malloc" in tool("doctor", "--", "/usr/bin/python3").stdout
    assert "PYTHONMALLOC=malloc" not in tool("doctor", "--", "/usr/bin/python3", PYTHONMALLOC="malloc").stdout


def test_a_program_is_not_run(tool, script, tmp_path):
    marker = tmp_path / "marker"
    tool("doctor", "--", script(f"#!/bin/sh\ntouch {marker}\n"))
    assert not marker.exists()


@pytest.mark.skipif(os.getuid() != 0, reason="it is root who is not concerned")
def test_root_is_told_what_others_get(tool, build):
    program = build("nothing.c", "setuid-root")
    program.chmod(0o4755)
    shown = tool("doctor", "--", program)
    assert shown.returncode == 0 and verdict(shown).startswith("yes: hmalloc serves ")
    assert verdict(shown).endswith(" for root; no for an ordinary user: it is setuid")
    program.chmod(0o755)
    assert "ordinary user" not in tool("doctor", "--", program).stdout


@pytest.fixture
def running():
    """Starts what runs until the end of the test, as soon as it has spoken."""
    started = []

    def start(*command, **environment):
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | environment))
        started[-1].stdout.readline()
        return started[-1].pid

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def sleeper(running):
    def start(*prefix, **environment):
        process = running(*prefix, "sh", "-c", "echo; exec sleep 60", **environment)
        # The shell has spoken; its exec of sleep takes a moment more, and so does what is done before sleep's main.
        while Path(f"/proc/{process}/stat").read_text().split()[1:3] != ["(sleep)", "S"]:
            pass
        return process

    return start


def test_a_process_that_is_served(tool, sleeper):
    shown = tool("doctor", sleeper(LAUNCHER, "run", "--", HMALLOC_VERBOSE="0"))
    assert shown.returncode == 0 and verdict(shown).startswith("yes: hmalloc serves sleep (process ")
    assert "HMALLOC_VERBOSE=0" in shown.stdout and "MiB resident" in shown.stdout


def test_a_process_that_is_not(tool, sleeper):
    shown = tool("doctor", sleeper())
    assert shown.returncode == 1 and "it was started without it" in verdict(shown)


def test_a_process_that_defines_malloc_itself(tool, build, running):
    program = build("wait.c", "own-waiting", SOURCES / "own_malloc.c", "-rdynamic", "-fno-builtin")
    shown = tool("doctor", running(LAUNCHER, "run", "--", program))
    assert shown.returncode == 1 and verdict(shown).startswith("no: hmalloc is loaded into own-waiting (process ")
    assert "the program defines malloc itself" in verdict(shown) and "libhmalloc.so" in shown.stdout


def test_a_process_on_a_library_that_comes_first(tool, build, running):
    library = build("own_malloc.c", "libfirst.so", "-shared", "-fPIC", "-fno-builtin")
    program = build("wait.c", "waiting")
    shown = tool("doctor", running(program, LD_PRELOAD=f"{library}:{LIBRARY}"))
    assert shown.returncode == 1 and f"does not serve it: {library} comes before it" in verdict(shown)
    assert tool("doctor", running(program, LD_PRELOAD=f"{LIBRARY}:{library}")).returncode == 0


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_a_process_that_an_ordinary_user_started(tool, build, running):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        program = Path(folder) / "privileged"
        shutil.copy(build("wait.c", "waiting"), program)
        program.chmod(0o4755)
        process = running("setpriv", "--reuid=65534", "--clear-groups", program,
                          LD_PRELOAD=str(LIBRARY))
        if "Uid:\t65534\t0\t" not in Path(f"/proc/{process}/status").read_text():
            pytest.skip("setuid programs gain nothing in this folder")
        shown = tool("doctor", process)
    assert shown.returncode == 1 and "the loader ignores LD_PRELOAD for it: it is setuid" in verdict(shown)


def test_a_process_whose_library_is_missing(tool, sleeper):
    shown = tool("doctor", sleeper(LD_PRELOAD="/no/such/libhmalloc.so"))
    assert shown.returncode == 1 and "/no/such/libhmalloc.so does not exist" in verdict(shown)


KERNEL_THREAD = 0x00200000  # PF_KTHREAD, of the ninth word of /proc/PID/stat


def is_of_the_kernel(process):
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[6]) & KERNEL_THREAD != 0
    except OSError:
        return False


def test_a_thread_of_the_kernel(tool):
    process = next((name for name in os.listdir("/proc") if name.isdigit() and is_of_the_kernel(name)), None)
    if process is None:
        pytest.skip("no threads of the kernel are to be seen here")
    shown = tool("doctor", process)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert shown.stderr == f"hmalloc: {process}: the process has ended, or is a thread of the kernel's\n"


def test_a_process_that_has_ended(tool):
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        shown = tool("doctor", process.pid)
    assert (shown.returncode, shown.stdout, shown.stderr) == (2, "", f"hmalloc: {process.pid}: no such process\n")


# ---- What the library itself says. ----------------------------------------------------------------------------------


def verbose(program, *preload):
    return subprocess.run([program], capture_output=True, text=True,
                          env={"HMALLOC_VERBOSE": "1", "LD_PRELOAD": ":".join(map(str, preload))}).stderr


# A program without position-independent code lends malloc an address of its own.
@pytest.mark.parametrize("options", [[], ["-no-pie", "-fno-pie", "-DADDRESS"]])
def test_verbose_says_active_where_it_is(build, options):
    said = verbose(build("nothing.c", "named", *options), LIBRARY)
    assert ": active in process " in said and "loaded" not in said


@pytest.mark.parametrize("options", [[], ["-no-pie", "-fno-pie"]])
def test_verbose_says_loaded_where_the_program_has_a_malloc(build, options):
    said = verbose(build("own_malloc.c", "own-verbose", "-rdynamic", *options, "-fno-builtin"), LIBRARY)
    assert ": loaded in process " in said and "active in" not in said
    assert said.splitlines()[0].endswith("(own-verbose) but not active: the program defines malloc itself")


def test_verbose_says_loaded_where_another_library_comes_first(build):
    first = build("own_malloc.c", "libfirst.so", "-shared", "-fPIC", "-fno-builtin")
    said = verbose(build("nothing.c", "nothing"), first, LIBRARY)
    assert "but not active: the malloc of another library comes first\n" in said


def test_verbose_in_a_static_program(build):
    program = build("nothing.c", "static-hmalloc", "-static", "-Wl,--undefined=malloc", LIBRARY.with_suffix(".a"), "-pthread")
    assert ": active in process " in verbose(program)
