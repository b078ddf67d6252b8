"""Ratios, intervals and means: known answers, and what they must not say."""

from dataclasses import replace

import numpy as np
import pytest
from hmalloc_lab.bench import statistics, store
from hmalloc_lab.bench.catalogue import Cell
from hmalloc_lab.bench.results import Results
from hmalloc_lab.bench.statistics import geometric_mean, paired_ratio
from hmalloc_lab.bench.store import AllocatorRow, Campaign, Run

ROWS = [AllocatorRow("glibc", "system", "1"), AllocatorRow("hmalloc", "hmalloc", "1"), AllocatorRow("peer", "peer", "1"),
        AllocatorRow("hmalloc-explicit", "explicit", "1")]


def rounds(values):
    return dict(enumerate(values, start=1))


def campaign(*measured) -> Results:
    """Of cells, each with the times of its rounds by allocator."""
    runs = [Run(number, cell.name, name, "", metrics={"ns_per_op": value, "vm_hwm_kb": value * 1000})
            for cell, times in measured for name, column in times.items() for number, value in rounds(column).items()]
    return Results(Campaign(1, "", "", "quick", "", 1, 10, {}, [cell for cell, _ in measured], ROWS, [], runs))


def made(name: str, family: str = "local", point: dict | None = None, **more) -> Cell:
    return Cell(name, family, point or {}, **more)


def test_rounds_are_divided_in_pairs():
    # Medians divided would say 12 / 20; pair by pair each is exactly a half, whatever the machine's mood.
    theirs = [20, 10, 200, 30, 24, 22]
    found = paired_ratio(rounds(value / 2 for value in theirs), rounds(theirs))
    assert (found.median, found.low, found.high, found.rounds) == (0.5, 0.5, 0.5, 6)
    assert found.verdict == "faster"


def test_only_common_rounds_count():
    mine, theirs = rounds([2.0] * 8), rounds([1.0] * 8)
    del mine[3], theirs[5]
    mine[20] = 1e9
    assert paired_ratio(mine, theirs).rounds == 6


@pytest.mark.parametrize("mine, theirs", [({1: 2.0}, {2: 1.0}), ({}, {}), (rounds([1.0] * 6), rounds([0.0] * 6))])
def test_nothing_is_divided_by_nothing(mine, theirs):
    assert paired_ratio(mine, theirs) is None


def test_a_disturbed_round_moves_nothing():
    quiet = [1.20, 1.21, 1.19, 1.20, 1.22, 1.18, 1.20, 1.21, 1.19, 1.20]
    found = paired_ratio(rounds([*quiet[:9], 50.0]), rounds([1.0] * 10))
    assert found.median == pytest.approx(1.20, abs=0.01) and found.high < 1.23


@pytest.mark.parametrize(("ratios", "verdict", "of_memory"), [
    ([1.2, 1.21, 1.19, 1.2, 1.2], "slower", "fatter"),
    ([0.8, 0.81, 0.79, 0.8, 0.8], "faster", "leaner"),
    ([0.9, 1.1, 0.95, 1.05, 1.02], "not distinguishable", "not distinguishable"),
    # no chance, but no more than a link order does
    ([1.004, 1.005, 1.006, 1.005, 1.005], "not distinguishable", "not distinguishable"),
    ([1.2, 1.2, 1.2, 1.2], "too few rounds", "too few rounds")])
def test_verdicts(ratios, verdict, of_memory):
    assert paired_ratio(rounds(ratios), rounds([1.0] * len(ratios))).verdict == verdict
    assert paired_ratio(rounds(ratios), rounds([1.0] * len(ratios)), memory=True).verdict == of_memory


def test_memory_is_known_by_its_metric(results):
    cell = results.select("pairs")[0]
    assert statistics.ratio(results, cell, "tcmalloc", "glibc", "vm_hwm_kb").verdict == "fatter"
    assert statistics.ratio(results, cell, "hmalloc", "glibc").verdict == "faster"


def test_the_same_data_give_the_same_interval():
    values = rounds(np.random.default_rng(5).lognormal(0, 0.1, 10))
    assert paired_ratio(values, rounds([1.0] * 10)) == paired_ratio(values, rounds([1.0] * 10))


@pytest.mark.parametrize("size", [5, 10])
def test_interval_covers_what_is_true_in_95_of_100_campaigns(size):
    draw = np.random.default_rng(3)
    covered = 0
    for _ in range(800):
        mood = draw.lognormal(0, 0.3, size)
        found = paired_ratio(rounds(mood * draw.lognormal(np.log(1.3), 0.05, size)), rounds(mood))
        covered += found.low <= 1.3 <= found.high
    assert 0.92 <= covered / 800 <= 0.98


def test_geometric_mean():
    assert geometric_mean([0.5, 2.0]) == pytest.approx(1)
    assert geometric_mean(value for value in (1.0, 8.0)) == pytest.approx(8 ** 0.5)
    assert geometric_mean([]) is None
    assert geometric_mean([1.0, 0.0]) is None


def test_mean_of_few_cells_shows_their_range():
    found = statistics.mean([1.0, 2.0, 4.0])
    assert (found.value, found.low, found.high, found.cells) == pytest.approx((2, 1, 4, 3))
    many = statistics.mean([1.0, 2.0, 4.0] * 10)
    assert 1 < many.low < 2 < many.high < 4


def test_ratios_to_the_best_leave_out_who_serves_not_every_program():
    cell = made("pairs")
    results = campaign((cell, {"glibc": [4, 4, 9], "hmalloc": [2, 2, 2], "hmalloc-explicit": [1, 1, 1]}))
    assert statistics.to_best(results, cell) == {"glibc": 2, "hmalloc": 1}
    assert statistics.explicit_means(results)["hmalloc-explicit"]["local"].value == 0.5


def test_family_means():
    results = campaign(
        (made("a"), {"glibc": [2, 2], "hmalloc": [1, 1]}), (made("b"), {"glibc": [8, 8], "hmalloc": [1, 1]}),
        (made("c", "shared"), {"glibc": [1, 1], "hmalloc": [2, 2]}),
        (made("m", "memory", metric="vm_hwm_kb"), {"glibc": [1, 1], "hmalloc": [9, 9]}),
        (made("l", "latency"), {"glibc": [7, 7], "hmalloc": [1, 1]}),
        (made("d", point={"arenas": 1}), {"glibc": [1, 1]}),
        (made("s", point={"share": 1}), {"glibc": [5, 5], "hmalloc": [1, 1]}))
    means = statistics.family_means(results)
    assert list(means) == ["local", "shared", "memory", "latency", "all"]
    # Studies are no part of it, and neither memory nor latency is a part of "all".
    assert means["local"]["glibc"].value == pytest.approx(4) and means["local"]["glibc"].cells == 2
    assert means["all"]["hmalloc"].value == pytest.approx(2 ** (1 / 3)) and means["all"]["hmalloc"].cells == 3
    assert means["memory"]["hmalloc"].value == pytest.approx(9)


def test_memory_means_leave_out_peaks_that_say_nothing():
    results = campaign((made("a"), {"glibc": [1], "hmalloc": [3]}),
                       (made("b", counts_peak=False), {"glibc": [1], "hmalloc": [1000]}))
    assert statistics.memory_means(results)["hmalloc"].value == pytest.approx(3)


def test_failed_runs_count_nowhere():
    results = campaign((cell := made("pairs"), {"glibc": [1] * 6, "hmalloc": [2] * 6}))
    broken = [replace(run, status=store.CRASHED) if run.allocator == "hmalloc" and run.round < 3 else run
              for run in results.campaign.runs]
    assert statistics.ratio(Results(replace(results.campaign, runs=broken)), cell, "hmalloc", "glibc").rounds == 4


def test_duel_is_with_the_best_peer_of_each_cell():
    results = campaign((made("a"), {"glibc": [1] * 6, "peer": [4] * 6, "hmalloc": [2] * 6}),
                       (made("b"), {"glibc": [4] * 6, "peer": [2] * 6, "hmalloc": [1] * 6}))
    assert [(duel.cell.name, duel.peer, duel.ratio.verdict) for duel in statistics.duels(results, "hmalloc")] == [
        ("a", "glibc", "slower"), ("b", "peer", "faster")]
