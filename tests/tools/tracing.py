"""Fixtures of the tests of hmalloc trace: recorded programs, and what is said of a trace."""

import json
import os
import subprocess
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "release"
TRACE = BUILD / "hmalloc-trace"
HMALLOC = BUILD / "libhmalloc.so"
OLD_KERNEL = BUILD / "tests/system/old_kernel"
PROGRAMS = Path(__file__).resolve().parent / "programs"
COUNTS = ("mallocs", "frees", "reallocs")

trace_is_built = pytest.mark.skipif(not TRACE.exists(), reason="hmalloc-trace is not built")


def call(*words, preload=None, through=(), **how):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "HMALLOC_"))}
    if preload:
        environment["LD_PRELOAD"] = str(preload)
    how = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "timeout": 120} | how
    return subprocess.run([*map(str, through), str(TRACE), *map(str, words)], env=environment, **how)


def json_of(command, file, *words, preload=None):
    shown = call(command, file, "--json", *words, preload=preload)
    assert shown.returncode == 0, shown.stderr
    return json.loads(shown.stdout)


info, replay = partial(json_of, "info"), partial(json_of, "replay")


def refused(shown, *words, code=1):
    """One line, with these words in it."""
    assert shown.returncode == code, shown
    assert shown.stdout == "" and len(shown.stderr.splitlines()) == 1, shown
    for word in words:
        assert str(word) in shown.stderr, shown.stderr
    return True


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    # -O0: the compiler would leave out calls whose block nobody reads.
    for compiler, source, name, *more in (("gcc", "calls.c", "calls", "-pthread"), ("g++", "news.cc", "news"),
                                          ("gcc", "calls.c", "static", "-pthread", "-static"),
                                          ("gcc", "late.c", "late.so", "-shared", "-fPIC")):
        subprocess.run([compiler, "-O0", "-w", PROGRAMS / source, "-o", folder / name, *more], check=True)
    return folder


@dataclass
class Recorded:
    file: Path
    ending: subprocess.CompletedProcess

    @property
    def others(self):
        """The files of further processes."""
        return sorted(set(self.file.parent.glob("*.hmtrace")) - {self.file})


@pytest.fixture
def record(programs, tmp_path):
    def run(program, *words, options=(), code=0, preload=None):
        folder = tmp_path / f"run{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        file = folder / "it.hmtrace"
        ending = call("record", "-o", file, *options, "--", programs / program, *words, preload=preload)
        assert ending.returncode == code, ending
        assert not list(folder.glob("*spools*")), "the spools are still there"
        return Recorded(file, ending)

    return run
