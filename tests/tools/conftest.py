"""What the tests of the laboratory share: made-up campaigns, short real ones, and the way to the code."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[2]
RELEASE = ROOT / "build" / "release"
for folder in (ROOT / "lab", Path(__file__).resolve().parent):
    sys.path.insert(0, str(folder))

from fabricate import fabricate  # noqa: E402
from hmalloc_lab.bench import campaign, participants, trial  # noqa: E402
from hmalloc_lab.bench.os_noise import OsNoise  # noqa: E402
from hmalloc_lab.bench.results import Results  # noqa: E402
from hmalloc_lab.bench.store import AllocatorRow, Store  # noqa: E402
from hmalloc_lab.build_paths import BuildPaths  # noqa: E402

QUIET = OsNoise(0.001, 50.0)


@pytest.fixture(scope="session")
def fabricated(tmp_path_factory) -> Path:
    """A made-up campaign of the profile paper, for reading only."""
    return fabricate(tmp_path_factory.mktemp("fabricated") / "paper.db")


@pytest.fixture(scope="session")
def results(fabricated) -> Results:
    return Results.read(fabricated)


@pytest.fixture(scope="session")
def quick(tmp_path_factory) -> Results:
    """A smaller one."""
    return Results.read(fabricate(tmp_path_factory.mktemp("quick") / "lab.db", "quick", rounds=6))


@pytest.fixture(scope="session")
def built() -> BuildPaths:
    return BuildPaths(RELEASE / "libhmalloc.so", RELEASE / "hmalloc-measure")


@pytest.fixture(scope="session")
def glibc(built) -> AllocatorRow:
    return participants.everybody(built, with_peers=False)[0]


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
def measure(built, tmp_path, monkeypatch):
    """Runs a campaign without pauses, on a machine as quiet as the test wants it; `notes` of its results is what was
    said meanwhile."""
    hasty = replace(campaign.SETTINGS["quick"], probes=2, pause_s=0, tries=4)
    monkeypatch.setitem(campaign.SETTINGS, "quick", hasty)

    def run(cells, rows, rounds=1, os_noise=lambda: QUIET, environment=None, built=built) -> Results:
        path, notes = tmp_path / "lab.db", []
        progress = SimpleNamespace(note=notes.append, stage=lambda *_: None, step=lambda *_: None)
        with Store(path, create=True) as kept:
            number = kept.begin(trial.now(), "quick", "test", 1, rounds, environment or {}, cells, rows)
            campaign.Runner(built, kept, number, progress, {}, os_noise).run()
        results = Results.read(path, number)
        results.notes = notes
        return results

    return run


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
