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

NAMES = ("glibc", "hmalloc", "mimalloc2", "no-allocator")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compare")

    def make(name, **how):
        path = folder / f"{name}.db"
        if not path.exists():
            fabricate(path, **{"profile": "quick", "allocators": NAMES, "failing": False, **how})
        return Results.read(path)

    return make


@pytest.fixture(scope="module")
def old(made):
    return made("old")


def compare(old, new, **how):
    text = StringIO()
    return compare.compare(Console(file=text, width=100, highlight=False), old, new, **how), text.getvalue()


def changed(results, **what):
    return Results(replace(results.campaign, **what))


def test_identical_data_are_no_change(old):
    code, text = compare(old, old)
    assert code == 0 and "0 worse, 0 newly failing, 0 better" in text and "warning" not in text


def test_noise_is_no_change(old, made):
    for seed in range(2, 6):
        code, text = compare(old, made(f"seed{seed}", seed=seed))
        assert code == 0, text


def test_a_slowed_allocator_is_caught(old, made):
    code, text = compare(old, made("slow", seed=2, slow={"hmalloc": 1.2}))
    assert code == 1
    worse = [line for line in text.splitlines() if line.endswith("slower")]
    assert len(worse) > 20 and all(line.startswith("hmalloc ") for line in worse)
    assert any("mean of" in line for line in worse)
    factors = [float(line.split("[")[0].split()[-1]) for line in worse]
    assert factors == sorted(factors, reverse=True) and 1.1 < min(factors) <= max(factors) < 1.35


def test_a_small_change_that_all_cells_share_is_caught_by_the_mean(old, made):
    code, text = compare(old, made("slower", seed=2, slow={"hmalloc": 1.09}))
    assert code == 1 and "mean of" in text
    code, text = compare(old, made("slower"), threshold=0.2)
    assert code == 0 and "threshold of 20 %" in text


def test_a_faster_allocator_is_welcome(old, made):
    code, text = compare(old, made("fast", seed=2, slow={"hmalloc": 0.7}))
    assert code == 0 and "faster" in text and "0 worse" in text


def test_a_slower_machine_is_nobodys_fault(old):
    runs = [replace(run, metrics={name: value * 1.5 for name, value in run.metrics.items() if name != "series"})
            for run in old.campaign.runs]
    code, text = compare(old, changed(old, runs=runs))
    assert code == 0 and "0 worse, 0 newly failing, 0 better" in text
    assert "glibc itself took 1.50 times as long" in text


def test_a_fatter_allocator_is_caught(old):
    runs = [replace(run, metrics=run.metrics | {"vm_hwm_kb": run.metrics["vm_hwm_kb"] * 1.3})
            if run.allocator == "mimalloc2" else run for run in old.campaign.runs]
    code, text = compare(old, changed(old, runs=runs))
    assert code == 1 and "fatter" in text and "slower" not in text
    assert compare(old, changed(old, runs=runs), allocators=["hmalloc"])[0] == 0


def test_what_newly_fails_is_caught(old):
    broken = old.campaign.runs[-1].cell
    runs = [Run(run.round, run.cell, run.allocator, run.started, store.CRASHED, "killed by signal 11")
            if (run.cell, run.allocator) == (broken, "hmalloc") else run for run in old.campaign.runs]
    new = changed(old, runs=runs)
    code, text = compare(old, new)
    assert code == 1 and "newly crashed" in text and "1 newly failing" in text
    assert compare(new, new)[0] == 0  # it did before


def test_missing_cells_are_left_out(old):
    kept = old.campaign.cells[:10]
    names = {cell.name for cell in kept}
    new = changed(old, cells=kept, runs=[run for run in old.campaign.runs if run.cell in names])
    code, text = compare(old, new)
    assert code == 0 and f"{len(old.cells) - 10} cells are in one of the databases only" in text


def test_another_machine_is_said(old):
    environment = old.campaign.environment | {"CPU": "Another", "load before": "9.0"}
    code, text = compare(old, changed(old, environment=environment))
    assert code == 0 and "warning: another CPU: Made-up CPU at 3.0 GHz, now Another" in text and "load" not in text


def test_the_reference_is_the_same_library_in_both(old):
    rows = [replace(row, sha256="other") if row.name == "glibc" else row for row in old.campaign.allocators]
    code, text = compare(old, changed(old, allocators=rows))
    assert code == 0 and "ratio to hmalloc of the same campaign" in text
    rows = [replace(row, sha256="other") for row in old.campaign.allocators]
    with pytest.raises(Failure, match="no allocator is the same library"):
        compare(old, changed(old, allocators=rows))


@pytest.mark.parametrize(("what", "message"), [
    ({"cells": []}, "no cell is in both"),
    ({"runs": []}, "no cell was measured in both")])
def test_nothing_in_common(old, what, message):
    with pytest.raises(Failure, match=message) as failure:
        compare(old, changed(old, **what))
    assert failure.value.code == 2


def test_unknown_allocator(old):
    with pytest.raises(Failure, match="nobody: not in both"):
        compare(old, old, allocators=["nobody"])


def test_few_rounds_are_not_called_equal(old, made):
    with pytest.raises(Failure, match="fewer than 5 common rounds in every cell"):
        compare(old, made("few", rounds=3))
