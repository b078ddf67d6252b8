"""bench compare, on made-up campaigns: what is planted is found, and nothing where nothing is planted.

All draws are seeded: a repetition that finds its fault today finds it always."""

from dataclasses import replace

import numpy as np
import pytest
from fabricate import fabricate
from hmalloc_lab.bench import compare, detection, statistics
from hmalloc_lab.bench.results import Results
from hmalloc_lab.bench.statistics import is_memory
from synthetic import NEW, OLD, TIME_SCATTER, campaign, ratios


@pytest.fixture(autouse=True)
def no_bootstrap(monkeypatch):
    """The intervals are for the eye: no verdict rests on them, and they take nine tenths of the time."""
    monkeypatch.setattr(statistics, "interval", lambda samples, statistic: (0.9, 1.1))


REPETITIONS = 20
CELLS = 60
ROUNDS = 10


def slowed(results, factor):
    """The same campaign, had hmalloc taken that much longer in every cell."""
    def changed(run):
        metric = results.cells[run.cell].metric
        if run.allocator != "hmalloc" or is_memory(metric) or metric not in run.metrics:
            return run
        return replace(run, metrics=run.metrics | {metric: run.metrics[metric] * factor})

    return Results(replace(results.campaign, runs=[changed(run) for run in results.campaign.runs]))


def test_a_slowdown_by_3_percent_is_found_between_two_campaigns(said, tmp_path):
    def made(seed):
        return Results.read(fabricate(tmp_path / f"{seed}.db", "quick", ROUNDS, ("glibc", "hmalloc"), seed, failing=False))

    found, clean, old = 0, 0, made(1000)
    for number in range(1, REPETITIONS + 1):
        new = made(1000 + number)
        code, text = said(compare.compare, old, slowed(new, 1.03), threshold=0.03)
        found += code == 1 and "slower" in text
        clean += said(compare.compare, old, new, threshold=0.03)[0] == 0
        old = new
    assert found == REPETITIONS
    assert clean == REPETITIONS


def test_a_slowdown_by_3_percent_of_all_is_found_within_a_campaign(said):
    for seed in range(REPETITIONS):
        results = campaign(seed, CELLS, ROUNDS, slower=dict.fromkeys(range(CELLS), 1.03))
        code, text = said(compare.compare_within, results, OLD, NEW, threshold=0.03)
        assert code == 1 and "mean of 60 time ratios" in text and "slower" in text and "fatter" not in text


def test_a_slowdown_by_3_percent_of_one_cell_is_found_in_as_many_rounds_as_are_said(said):
    rounds = detection.rounds_needed(TIME_SCATTER * 2 ** 0.5, 0.03, comparisons=2 * CELLS, paired=True)
    assert 40 < rounds < 120
    found = 0
    for seed in range(REPETITIONS):
        results = campaign(seed, CELLS, rounds, slower={seed: 1.03})
        code, text = said(compare.compare_within, results, OLD, NEW, threshold=0.03)
        found += code == 1 and any(f"made-up-{seed} " in line and "slower" in line for line in text.splitlines())
    assert found >= 19


def test_too_few_rounds_are_said(said):
    _, text = said(compare.compare_within, campaign(1, CELLS, ROUNDS), OLD, NEW, threshold=0.03)
    line = next(line for line in text.splitlines() if line.startswith("time: a change of one cell alone by 3 %"))
    needed = int(line.split(" rounds (half")[0].split()[-1])
    assert 2 * ROUNDS < needed < 150


def test_a_leak_of_5_percent_in_one_cell_is_found(said):
    rounds = detection.rounds_needed(0.004 * 2 ** 0.5, 0.05, comparisons=2 * CELLS, paired=True)
    assert rounds <= 30
    for seed in range(REPETITIONS):
        results = campaign(seed, CELLS, rounds, fatter={seed: 1.05})
        code, text = said(compare.compare_within, results, OLD, NEW, threshold=0.05)
        assert code == 1 and any(f"made-up-{seed}, peak" in line and "fatter" in line for line in text.splitlines())
        assert "slower" not in text


def test_equal_builds_are_seldom_told_apart(said):
    alarms = sum(said(compare.compare_within, campaign(seed, CELLS, ROUNDS), OLD, NEW, threshold=0.03)[0]
                 for seed in range(REPETITIONS))
    assert alarms <= 1


@pytest.mark.parametrize("rounds", [8, 10])
def test_a_cell_three_times_as_slow_is_found_in_few_rounds(said, rounds):
    for seed in range(REPETITIONS):
        results = campaign(seed + 100, CELLS, rounds, slower={seed: 3.0})
        code, text = said(compare.compare_within, results, OLD, NEW, threshold=0.03)
        assert code == 1 and f"made-up-{seed} " in text


@pytest.mark.parametrize("paired, rounds", [(True, 5), (True, 10), (True, 20), (False, 20)])
@pytest.mark.parametrize("change", [1.0, detection.boundary(0.03)])
def test_false_alarms_are_as_rare_as_promised(paired, rounds, change):
    """Also where every cell has changed by just as much as need not be reported."""
    draw, campaigns = np.random.default_rng(7), 200
    alarms = 0
    for _ in range(campaigns):
        chances = [detection.chance(ratios(draw, rounds, change), None if paired else ratios(draw, rounds),
                                    detection.boundary(0.03)) for _ in range(CELLS // 2)]
        alarms += any(detection.is_shown(chances))
    level = detection.FALSE_ALARMS / 2
    assert alarms <= level * campaigns + 4 * (level * campaigns) ** 0.5


def test_a_mean_is_not_believed_too_easily():
    draw, campaigns = np.random.default_rng(8), 1000
    limit = detection.boundary(0.03)
    alarms = sum(any(detection.is_shown([detection.chance_of_mean(limit * draw.lognormal(0, 0.01, CELLS), limit)
                                         for _ in range(2)])) for _ in range(campaigns))
    level = detection.FALSE_ALARMS / 2
    assert alarms <= level * campaigns + 4 * (level * campaigns) ** 0.5
