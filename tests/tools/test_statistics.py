"""Ratios, intervals and means: known answers, and what they must not say."""

from dataclasses import replace

import numpy as np
import pytest
from hmalloc_lab.bench import statistics, store
from hmalloc_lab.bench.catalogue import Cell
from hmalloc_lab.bench.results import Results
from hmalloc_lab.bench.statistics import geometric_mean, paired_ratio
from hmalloc_lab.bench.store import AllocatorRow, Campaign, Run


def rounds(values):
    return dict(enumerate(values, start=1))


def campaign(cells, allocators, values):
    """values: (cell, allocator) -> the values of its rounds."""
    runs = [Run(number, cell, name, "", metrics={"ns_per_op": value, "vm_hwm_kb": value * 1000})
            for (cell, name), column in values.items() for number, value in rounds(column).items()]
    return Results(Campaign(1, "", "", "quick", "", 1, 10, {}, cells, allocators, [], runs))


GLIBC, HMALLOC, PEER = (AllocatorRow("glibc", "system", "1"), AllocatorRow("hmalloc", "hmalloc", "1"),
                        AllocatorRow("peer", "peer", "1"))


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
    assert paired_ratio({1: 2.0}, {2: 1.0}) is None
    assert paired_ratio({}, {}) is None


def test_nothing_is_divided_by_nothing():
    assert paired_ratio(rounds([1.0] * 6), rounds([0.0] * 6)) is None


def test_a_disturbed_round_moves_nothing():
    quiet = [1.20, 1.21, 1.19, 1.20, 1.22, 1.18, 1.20, 1.21, 1.19, 1.20]
    found = paired_ratio(rounds([*quiet[:9], 50.0]), rounds([1.0] * 10))
    assert found.median == pytest.approx(1.20, abs=0.01) and found.high < 1.23


@pytest.mark.parametrize(("ratios", "verdict"), [
    ([1.2, 1.21, 1.19, 1.2, 1.2], "slower"),
    ([0.8, 0.81, 0.79, 0.8, 0.8], "faster"),
    ([0.9, 1.1, 0.95, 1.05, 1.02], "not distinguishable"),
    ([1.004, 1.005, 1.006, 1.005, 1.005], "not distinguishable"),  # no chance, but no more than a link order does
    ([1.2, 1.2, 1.2, 1.2], "too few rounds")])
def test_verdicts(ratios, verdict):
    assert paired_ratio(rounds(ratios), rounds([1.0] * len(ratios))).verdict == verdict


def test_memory_has_words_of_its_own(results):
    cell = results.select("pairs")[0]
    assert paired_ratio(rounds([2.0] * 5), rounds([1.0] * 5), memory=True).verdict == "fatter"
    assert paired_ratio(rounds([1.0] * 5), rounds([2.0] * 5), memory=True).verdict == "leaner"
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
    cell = Cell("pairs", "local", {})
    results = campaign([cell], [GLIBC, HMALLOC, AllocatorRow("hmalloc-explicit", "explicit", "1")],
                       {("pairs", "glibc"): [4, 4, 9], ("pairs", "hmalloc"): [2, 2, 2],
                        ("pairs", "hmalloc-explicit"): [1, 1, 1]})
    assert statistics.to_best(results, cell) == {"glibc": 2, "hmalloc": 1}
    assert statistics.explicit_means(results)["hmalloc-explicit"]["local"].value == 0.5


def test_family_means():
    cells = [Cell("a", "local", {}), Cell("b", "local", {}), Cell("c", "shared", {}), Cell("d", "local", {"arenas": 1}),
             Cell("m", "memory", {}, metric="vm_hwm_kb"), Cell("l", "latency", {}),
             Cell("s", "local", {"share": 1})]
    results = campaign(cells, [GLIBC, HMALLOC], {
        ("s share=1", "glibc"): [5, 5], ("s share=1", "hmalloc"): [1, 1],
        ("l", "glibc"): [7, 7], ("l", "hmalloc"): [1, 1],
        ("a", "glibc"): [2, 2], ("a", "hmalloc"): [1, 1], ("b", "glibc"): [8, 8], ("b", "hmalloc"): [1, 1],
        ("c", "glibc"): [1, 1], ("c", "hmalloc"): [2, 2], ("d arenas=1", "glibc"): [1, 1],
        ("m", "glibc"): [1, 1], ("m", "hmalloc"): [9, 9]})
    means = statistics.family_means(results)
    assert list(means) == ["local", "shared", "memory", "latency", "all"]
    # Studies are no part of it, and neither memory nor latency is a part of "all".
    assert means["local"]["glibc"].value == pytest.approx(4) and means["local"]["glibc"].cells == 2
    assert means["all"]["hmalloc"].value == pytest.approx(2 ** (1 / 3)) and means["all"]["hmalloc"].cells == 3
    assert means["memory"]["hmalloc"].value == pytest.approx(9)


def test_memory_means_leave_out_peaks_that_say_nothing():
    cells = [Cell("a", "local", {}), Cell("b", "local", {}, counts_peak=False)]
    results = campaign(cells, [GLIBC, HMALLOC], {("a", "glibc"): [1], ("a", "hmalloc"): [3], ("b", "glibc"): [1],
                                                 ("b", "hmalloc"): [1000]})
    assert statistics.memory_means(results)["hmalloc"].value == pytest.approx(3)


def test_failed_runs_count_nowhere():
    cell = Cell("pairs", "local", {})
    results = campaign([cell], [GLIBC, HMALLOC], {("pairs", "glibc"): [1] * 6, ("pairs", "hmalloc"): [2] * 6})
    broken = [replace(run, status=store.CRASHED) if run.allocator == "hmalloc" and run.round < 3 else run
              for run in results.campaign.runs]
    assert statistics.ratio(Results(replace(results.campaign, runs=broken)), cell, "hmalloc", "glibc").rounds == 4


def test_duel_is_with_the_best_peer_of_each_cell():
    cells = [Cell("a", "local", {}), Cell("b", "local", {})]
    results = campaign(cells, [GLIBC, HMALLOC, PEER], {
        ("a", "glibc"): [1] * 6, ("a", "peer"): [4] * 6, ("a", "hmalloc"): [2] * 6,
        ("b", "glibc"): [4] * 6, ("b", "peer"): [2] * 6, ("b", "hmalloc"): [1] * 6})
    found = statistics.duels(results, "hmalloc")
    assert [(duel.cell.name, duel.peer, duel.ratio.verdict) for duel in found] == [
        ("a", "glibc", "slower"), ("b", "peer", "faster")]
