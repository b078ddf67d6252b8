"""What the neighbours are tried on: a program whose use of memory is known, on hmalloc in each way that there is."""

import contextlib
import re
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RELEASE = ROOT / "build/release"
LIBRARY = RELEASE / "libhmalloc.so"
PROGRAMS = Path(__file__).resolve().parent / "programs"
sys.path.insert(0, str(ROOT / "tests/conformance"))

from harness import environment, execute  # noqa: E402

LOST, LOST_BYTES = 10, 123450

LINKED = {
    "glibc": [],
    "preloaded": [],
    "shared": [LIBRARY, f"-Wl,-rpath,{RELEASE}"],
    "static": ["-Wl,--whole-archive", RELEASE / "libhmalloc.a", "-Wl,--no-whole-archive", "-pthread", "-ldl"],
}


@dataclass(frozen=True)
class Program:
    path: Path
    env: dict

    def run_by(self, tool, *arguments, served=True):
        """Under a tool, which leaves its exit code alone.  served: by hmalloc, which says so, or else that it is not."""
        ending = execute([*tool, self.path, *arguments], self.env, 120)
        assert ending.status == 0, ending.describe()
        if "HMALLOC_VERBOSE" in self.env:
            said = rf": active in process \d+ \({self.path.name}\)$" if served else " but not active: "
            assert re.search(rf"^hmalloc [\d.]+.*{said}", ending.stderr, re.MULTILINE), ending.stderr
        return ending

    @contextlib.contextmanager
    def waiting(self, *arguments):
        """Started, and waiting before its first block; `work` lets it go on to after its last, `end` to its end."""
        with subprocess.Popen([self.path, *arguments, "wait"], env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True) as process:
            try:
                assert process.stdout.readline() == "ready\n"
                yield process
            finally:
                process.kill()


def work(process):
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n"


def end(process):
    process.stdin.close()
    assert process.wait(60) == 0


@contextlib.contextmanager
def beside(*command):
    """A tool that looks at such a program meanwhile."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True) as tool:
        late = threading.Timer(60, tool.kill)
        late.start()
        try:
            yield tool
        finally:
            late.cancel()
            tool.kill()


def need(*tools):
    absent = [tool for tool in tools if shutil.which(tool) is None]
    if absent:
        pytest.skip(f"not installed: {' '.join(absent)}")


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """Compiles a program of programs/ for a way to run on hmalloc."""
    folder = tmp_path_factory.mktemp("programs")

    def compile(way, source="known.c"):
        program = folder / f"{Path(source).stem}-{way}"
        subprocess.run(["gcc", "-O1", "-g", "-fno-builtin", "-I", ROOT / "include", PROGRAMS / source, "-o", program,
                        *LINKED[way]], check=True)
        return Program(program, environment() if way == "glibc" else environment(
            LIBRARY if way == "preloaded" else None, HMALLOC_VERBOSE=1))

    return compile
