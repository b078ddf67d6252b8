"""What the tests of the laboratory share: a made-up campaign, and the way to the code."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
for folder in (ROOT / "lab", Path(__file__).resolve().parent):
    sys.path.insert(0, str(folder))

from fabricate import fabricate  # noqa: E402
from hmalloc_lab.bench.results import Results  # noqa: E402


@pytest.fixture(scope="session")
def fabricated(tmp_path_factory) -> Path:
    """A made-up campaign of the profile paper, for reading only."""
    return fabricate(tmp_path_factory.mktemp("fabricated") / "paper.db")


@pytest.fixture(scope="session")
def results(fabricated) -> Results:
    return Results.read(fabricated)
