"""Cases that are more than one run of one program: linking, the machine's settings, every n-th call."""

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from harness import Ending, environment, execute

SOURCES = Path(__file__).resolve().parent / "cases"
INCLUDE = SOURCES.parents[2] / "include"


class NotHere(Exception):
    """This machine lacks what a case needs."""


def nth(run):
    """The whole stress once for each OS call that fails."""
    for k in range(1, 201) if run.options.full else [*range(1, 31), *range(31, 201, 10)]:
        ending = execute([run.programs / "nth_fail", "nth_os_call_fails"], environment(run.library, HM_FAIL_NTH=k))
        if ending.status != 0 or ending.timed_out:
            ending.stderr = f"HM_FAIL_NTH={k}: {ending.describe()}"
            break
    return ending


def dlopen_self(run):
    return execute([run.programs / "loader", "dlopen_self"], environment(None, CONFORMANCE_LIBRARY=run.library))


def setting(run):
    under = {"aslr_off": ["setarch", "-R"], "stack_unlimited": ["sh", "-c", 'ulimit -s unlimited && exec "$@"', "sh"]}
    preload = ["env", f"LD_PRELOAD={run.library}"] if run.library else []
    return execute([*under[run.case.sub], *preload, run.programs / "api_realloc", "uniq_overlap"], environment())


def static(run):
    """A program in C and one in C++, made now: how they are linked is what the case is about."""
    archive = run.library.with_suffix(".a")
    shared = [f"-L{archive.parent}", f"-Wl,-rpath,{archive.parent}", f"-l{archive.stem.removeprefix('lib')}"]
    how = {"static": ["-static", archive], "static_pie": ["-static-pie", "-fPIE", archive],
           "static_lto": ["-static", "-flto=1", archive], "archive": [archive], "archive_lto": ["-flto=1", archive],
           "noplt": ["-fno-plt", *shared]}
    c, cxx = (shlex.split(os.environ.get(name, name_here)) for name, name_here in (("CC", "gcc"), ("CXX", "g++")))
    for compiler in ([*c, SOURCES / "static_c.c"], [*cxx, "-std=c++20", SOURCES / "static_cxx.cc"]):
        with tempfile.TemporaryDirectory() as folder:
            argv = [*compiler, "-O2", "-D_GNU_SOURCE", "-pthread", f"-I{INCLUDE}", "-o", f"{folder}/program", *how[run.case.sub]]
            made = subprocess.run(argv, capture_output=True, text=True, check=False)
            if made.returncode != 0:
                return Ending(1, "", made.stderr, 0.0)
            ending = execute([f"{folder}/program", "linked"], environment(), cpu=run.cpu)
        if ending.status != 0:
            break
    return ending


LIMITED = {"CONFORMANCE_LIMIT": 64 << 20, "HMALLOC_LIMIT": "64M"}


def limited(run):
    return execute([run.programs / "limit", run.case.sub], environment(run.library, **LIMITED))


def grouped(run):
    """A quarter of what a control group may use."""
    version_2 = Path("/sys/fs/cgroup/cgroup.subtree_control").exists()
    folder = Path("/sys/fs/cgroup" if version_2 else "/sys/fs/cgroup/memory", f"hmalloc-conformance-{os.getpid()}-{run.case.sub}")
    try:
        folder.mkdir()
    except OSError as error:
        raise NotHere(f"no control group can be made: {error.strerror}") from error
    try:
        (folder / ("memory.max" if version_2 else "memory.limit_in_bytes")).write_text(str(256 << 20))
        # The shell is not in the group yet, and would say so on the library.
        enter = ["sh", "-c", f'echo $$ >{folder}/cgroup.procs && exec env "$@"', "sh"]
        settings = [f"LD_PRELOAD={run.library}", "HMALLOC_LIMIT=25%"]
        limit = LIMITED["CONFORMANCE_LIMIT"]
        return execute([*enter, *settings, run.programs / "limit", run.case.sub], environment(None, CONFORMANCE_LIMIT=limit))
    except OSError as error:
        raise NotHere(f"the control group takes no limit: {error.strerror}") from error
    finally:
        folder.rmdir()


SPECIAL = {"!limited": limited, "!grouped": grouped, "!nth": nth, "!dlopen_self": dlopen_self, "!setting": setting, "!static": static}
