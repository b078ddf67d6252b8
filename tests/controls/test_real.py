"""bench compare, on a real program: one that a preloaded shim makes slower by 3 %, or fatter by 5 %, is found out.

Twenty times each, with as many interleaved rounds as the noise of this machine asks for.  Where that is more than can be
waited for, the machine is no place to look for 3 %, and the test says so instead of passing."""

import os
import random
import statistics
import subprocess

import pytest
from conftest import PROGRAMS, ROOT
from hmalloc_lab.bench import compare, detection
from hmalloc_lab.bench.catalogue import Cell
from hmalloc_lab.bench.results import Results
from hmalloc_lab.bench.statistics import round_ratios
from hmalloc_lab.bench.store import AllocatorRow, Campaign, Run
from synthetic import NEW, OLD

LIBRARY = os.path.join(os.environ.get("HMALLOC_BUILD", ROOT / "build" / "release"), "libhmalloc.so")
CC = os.environ.get("CC", "cc")
REPETITIONS, MOST_ROUNDS = 20, 120
# What has a chance of 0.95 is found so often but once in a hundred million; what has one of 0.05, so often as seldom.
FEWEST_FOUND, MOST_FALSE = 11, 8
TIME, MEMORY = "ns_per_op", "vm_hwm_kb"


@pytest.fixture(scope="module")
def measure(tmp_path_factory):
    folder = tmp_path_factory.mktemp("real")
    program, shim = folder / "churn", folder / "libburden.so"
    subprocess.run([CC, "-O2", "-fno-builtin", PROGRAMS / "churn.c", "-o", program], check=True)
    subprocess.run([CC, "-O2", "-fno-builtin", "-shared", "-fPIC", PROGRAMS / "burden.c", "-o", shim], check=True)

    def once(burden):
        environment = {"LD_PRELOAD": f"{shim}:{LIBRARY}"} | {name: str(value) for name, value in burden.items()}
        said = subprocess.run([program], env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
        return dict(zip((TIME, MEMORY), map(int, said.split())))

    return once


def campaign(measure, seed, rounds, burden):
    """Old and new next to each other in every round, in random order."""
    order, runs = random.Random(seed), []
    for each in range(1, rounds + 1):
        pair = [(OLD, {}), (NEW, burden)]
        order.shuffle(pair)
        runs += [Run(each, "churn", name, "", metrics=measure(weight)) for name, weight in pair]
    plan, allocators = [Cell("churn", "local", {})], [AllocatorRow(name, "user", "1") for name in (OLD, NEW)]
    return Results(Campaign(1, "", "", "quick", "measured", seed, rounds, {}, plan, allocators, [], runs))


def calibrated(measure, name, metric, heavy, share):
    """The burden that costs that share more: costs grow in proportion to it."""
    runs = [(measure({})[metric], measure({name: heavy})[metric]) for _ in range(9)]
    without, with_it = (statistics.median(values) for values in zip(*runs))
    assert with_it > 1.2 * without, "the burden is felt"
    return {name: round(heavy * share * without / (with_it - without))}


def rounds_for(measure, metric, threshold):
    results = campaign(measure, 0, 20, {})
    cell = results.cells["churn"]
    ratios = round_ratios(results.values(cell, NEW, metric), results.values(cell, OLD, metric))
    spread = detection.scatter(ratios, None)
    needed = detection.rounds_needed(spread, threshold, comparisons=2, paired=True)
    if needed > MOST_ROUNDS:
        pytest.skip(f"runs of this machine scatter by {spread:.1%}: {needed} rounds would be needed for {threshold:.0%}")
    return needed


def findings(said, measure, rounds, burden, threshold, word):
    texts = [said(compare.compare_within, campaign(measure, seed, rounds, burden), OLD, NEW, threshold=threshold)
             for seed in range(1, REPETITIONS + 1)]
    return sum(code == 1 and f" {word}\n" in text for code, text in texts)


@pytest.mark.parametrize("name, metric, heavy, share, threshold, word", [
    ("BURDEN_LEAK", MEMORY, 200, 0.05, 0.05, "fatter"), ("BURDEN_SPIN", TIME, 1000, 0.03, 0.03, "slower")],
    ids=["a leak of 5 percent", "a slowdown by 3 percent"])
def test_what_is_planted_is_found(said, measure, name, metric, heavy, share, threshold, word):
    rounds = rounds_for(measure, metric, threshold)
    burden = calibrated(measure, name, metric, heavy, share)
    found = findings(said, measure, rounds, burden, threshold, word)
    assert findings(said, measure, rounds, {}, threshold, word) <= MOST_FALSE
    if found < FEWEST_FOUND and rounds_for(measure, metric, threshold) > 1.5 * rounds:
        pytest.skip("runs of this machine scatter by more than they did at first")
    assert found >= FEWEST_FOUND
