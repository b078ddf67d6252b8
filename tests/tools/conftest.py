"""What the tests of the laboratory share: a made-up campaign, and the way to the code."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RELEASE = ROOT / "build" / "release"
for folder in (ROOT / "lab", Path(__file__).resolve().parent):
    sys.path.insert(0, str(folder))

from fabricate import fabricate  # noqa: E402
from hmalloc_lab.bench.results import Results  # noqa: E402
from hmalloc_lab.build_paths import BuildPaths  # noqa: E402


@pytest.fixture(scope="session")
def fabricated(tmp_path_factory) -> Path:
    """A made-up campaign of the profile paper, for reading only."""
    return fabricate(tmp_path_factory.mktemp("fabricated") / "paper.db")


@pytest.fixture(scope="session")
def results(fabricated) -> Results:
    return Results.read(fabricated)


@pytest.fixture(scope="session")
def built() -> BuildPaths:
    return BuildPaths(RELEASE / "libhmalloc.so", RELEASE / "hmalloc-measure")


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """Compiles an allocator of allocators/ and says where it is."""
    folder = tmp_path_factory.mktemp("allocators")

    def compile(name: str, *options) -> Path:
        made = folder / f"lib{name}.so"
        source = Path(__file__).resolve().parent / "allocators" / f"{name}.c"
        subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-fno-builtin", source, "-o", made, *options], check=True)
        return made

    return compile


@pytest.fixture
def bench(tmp_path):
    """Calls hmalloc bench as the launcher does, on a database of the test's own; `bench.command` is the command line."""

    def command(*arguments) -> list[str]:
        words = [str(argument) for argument in arguments]
        if words[:1] and words[0] not in ("list", "compare", "plot", "-h") and "--db" not in words:
            words += ["--db", str(tmp_path / "lab.db")]
        return [sys.executable, "-I", "-B", str(ROOT / "lab"), "--library", str(RELEASE / "libhmalloc.so"),
                "--measurer", str(RELEASE / "hmalloc-measure"), "bench", *words]

    def call(*arguments, **options) -> subprocess.CompletedProcess:
        return subprocess.run(command(*arguments), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300,
                              check=False, **options)

    call.command = command
    return call
