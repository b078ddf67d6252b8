"""bench compare: what it calls worse, and what it refuses to compare."""

from dataclasses import replace
from io import StringIO

import pytest
from fabricate import fabricate
from hmalloc_lab.bench import compare, store
from hmalloc_lab.bench.results import Results
from hmalloc_lab.bench.store import Run
from hmalloc_lab.errors import Failure
from rich.console import Console


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compare")

    def make(**how) -> Results:
        path = folder / f"{len(list(folder.iterdir()))}.db"
        return Results.read(fabricate(path, "quick", allocators=("glibc", "hmalloc", "mimalloc2", "no-allocator"),
                                      failing=False, **how))

    return make


@pytest.fixture(scope="module")
def old(made):
    return made()


def said(old, new, **how) -> tuple[int, str]:
    """Exit code and text."""
    text = StringIO()
    return compare.compare(Console(file=text, width=100, highlight=False), old, new, **how), text.getvalue()


def changed(results, **what):
    return Results(replace(results.campaign, **what))


def test_what_is_equal_is_no_change(old):
    code, text = said(old, old)
    assert code == 0 and "0 worse, 0 newly failing, 0 better" in text and "warning" not in text


def test_a_slowed_allocator_is_caught_by_more_than_half_the_threshold(old, made):
    slowed = made(seed=2, slow={"hmalloc": 1.2})
    code, text = said(old, slowed)
    assert code == 1
    worse = [line for line in text.splitlines() if line.endswith("slower")]
    assert len(worse) > 20 and all(line.startswith("hmalloc ") for line in worse)
    assert any("mean of" in line for line in worse)
    factors = [float(line.split("[")[0].split()[-1]) for line in worse]
    assert factors == sorted(factors, reverse=True) and 1.1 < min(factors) <= max(factors) < 1.35
    code, text = said(old, slowed, threshold=0.5)
    assert code == 0 and "threshold of 50 %" in text


def test_a_faster_allocator_is_welcome_and_no_allocator_is_not_judged(old, made):
    code, text = said(old, made(seed=2, slow={"hmalloc": 0.7, "no-allocator": 2.0}))
    assert code == 0 and "faster" in text and "0 worse" in text


def test_a_slower_machine_is_nobodys_fault(old):
    runs = [replace(run, metrics={name: value * 1.5 for name, value in run.metrics.items() if name != "series"})
            for run in old.campaign.runs]
    code, text = said(old, changed(old, runs=runs))
    assert code == 0 and "0 worse, 0 newly failing, 0 better" in text
    assert "glibc itself took 1.50 times as long" in text


def test_a_fatter_allocator_is_caught_unless_others_are_asked_for(old):
    runs = [replace(run, metrics=run.metrics | {"vm_hwm_kb": run.metrics["vm_hwm_kb"] * 1.3})
            if run.allocator == "mimalloc2" else run for run in old.campaign.runs]
    code, text = said(old, changed(old, runs=runs))
    assert code == 1 and "fatter" in text and "slower" not in text
    assert said(old, changed(old, runs=runs), allocators=["hmalloc"])[0] == 0


def test_what_newly_fails_is_caught(old):
    broken = old.campaign.runs[-1].cell
    runs = [Run(run.round, run.cell, run.allocator, run.started, store.CRASHED, "killed by signal 11")
            if (run.cell, run.allocator) == (broken, "hmalloc") else run for run in old.campaign.runs]
    new = changed(old, runs=runs)
    code, text = said(old, new)
    assert code == 1 and "newly crashed" in text and "1 newly failing" in text
    assert said(new, new)[0] == 0  # it did before


def test_another_machine_and_missing_cells_are_said(old):
    environment = old.campaign.environment | {"CPU": "Another", "load before": "9.0"}
    kept = {cell.name for cell in old.campaign.cells[:10]}
    new = changed(old, environment=environment, cells=old.campaign.cells[:10],
                  runs=[run for run in old.campaign.runs if run.cell in kept])
    code, text = said(old, new)
    assert code == 0 and f"{len(old.cells) - 10} cells are in one of the databases only" in text
    assert "warning: another CPU: Made-up CPU at 3.0 GHz, now Another" in text and "load" not in text


def test_the_reference_is_the_same_library_in_both(old):
    rows = [replace(row, sha256="other") if row.name == "glibc" else row for row in old.campaign.allocators]
    code, text = said(old, changed(old, allocators=rows))
    assert code == 0 and "ratio to hmalloc of the same campaign" in text


@pytest.mark.parametrize("what, asked, message", [
    (lambda old: {"allocators": [replace(row, sha256="other") for row in old.campaign.allocators]}, None,
     "no allocator is the same library"),
    (lambda old: {"cells": []}, None, "no cell is in both"),
    (lambda old: {"runs": []}, None, "no cell was measured in both"),
    (lambda old: {"runs": [run for run in old.campaign.runs if run.round < 4]}, None,
     "fewer than 5 common rounds in every cell"),
    (lambda old: {}, ["nobody"], "nobody: not in both"),
])
def test_what_cannot_be_compared_is_refused(old, what, asked, message):
    with pytest.raises(Failure, match=message) as failure:
        said(old, changed(old, **what(old)), allocators=asked)
    assert failure.value.code == 2
