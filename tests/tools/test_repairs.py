"""What each repair of HMalloc bought: won, lost or not told, by what it was made for."""

import pytest
from hmalloc_lab.bench.catalogue import cells
from hmalloc_lab.page.figure import CONFIRMED, NOT_CONFIRMED, UNTOLD
from hmalloc_lab.page.papers import repairs
from paper_campaigns import FIGURES, REPAIRED, SLOW, both, campaign, only, times

BOUGHT = {repair.name: repair for repair in repairs.REPAIRS}
EXPLICIT_AHEAD = times(**{"hmalloc-explicit": 0.5, "hmalloc": SLOW})


def repaired(name: str, *factors, cpus: int = 16, **more) -> repairs.Outcome:
    return repairs.outcome(campaign(both(*factors), cpus, **more), BOUGHT[name])


def test_every_repair_has_its_cells_or_says_why_not():
    results = campaign(plan=cells("full"), rounds=5)
    assert len(BOUGHT) == 23 and repairs.SHOWN_BY.keys() | repairs.LOCAL.keys() < BOUGHT.keys()
    for repair in BOUGHT.values():
        assert (repair.cells is None) == repair.also.startswith("none: "), repair.name
        assert repair.cells is None or repair.cells(results), repair.name
        assert repair.aim in ("time", "memory", "correctness")


@pytest.mark.parametrize("name, verdict, factors", [
    *((name, verdict, only(metric, factor, "hmalloc"))
      for name, metric in (("memory goes back", "end_ratio"), ("large blocks", "ns_per_op"))
      for factor, verdict in ((0.8, "won"), (1.2, "lost"), (1.004, "no difference"))),
    ("state outside the block", "no difference; costs time", times(hmalloc=1.2)),
    # Local memory is compared through the entry points; a price is not a loss.
    ("lists of local superblocks", "won", EXPLICIT_AHEAD), ("constant-time lists", "lost", EXPLICIT_AHEAD),
    ("sizes of local blocks", "its price; costs time", times(**{"hmalloc-explicit": 1.5})),
])
def test_a_repair_wins_or_loses_in_what_it_was_made_for(name, verdict, factors):
    assert repaired(name, factors).row[1] == verdict


@pytest.mark.parametrize("threadtest, trace, mean, verdict", [
    (0.5, 2, 1, "no difference"), (0.25, 1, 0.5, "won"), (1, 4, 2, "lost")])
def test_several_cells_count_as_their_mean(threadtest, trace, mean, verdict):
    found = repaired("state outside the block", only("vm_hwm_kb", threadtest, "hmalloc", "threadtest"),
                     only("max_allocated", trace, "hmalloc", "replay"))
    assert len(found.cells) == 2 and found.ratios["memory"].median == pytest.approx(mean) and found.verdict == verdict


def test_times_beyond_the_cpus_are_left_out_and_memory_is_not():
    found = repaired("whole sweep", REPAIRED, cpus=1)
    assert found.cells and found.ratios["time"] is None and found.verdict == "won"
    assert repaired("whose cache", REPAIRED, cpus=1).verdict == "not measured"


def test_too_few_rounds_and_missing_cells_are_said():
    assert repaired("memory goes back", REPAIRED, rounds=3).verdict == "too few rounds"
    few = campaign(REPAIRED, plan=[cell for cell in cells("paper") if cell.workload != "drain"])
    verdict = FIGURES["repairs"].judge(few)
    assert (verdict.outcome, verdict.takes) == (UNTOLD, "more rounds or cells for 1 of 23 repairs")
    rows = {row[0]: row for row in FIGURES["repairs"].draw(few)[0].rows}
    assert rows["memory goes back"][1:] == ["not measured", "memory", *[None] * 6, "nothing in this campaign"]
    assert rows["fork, exhaustion and bad pointers"][-1].startswith("none: ")
    assert rows["large blocks"][1] == "won; saves memory" and rows["large blocks"][-1] == "largetest threads=8"
    median, low, high = rows["large blocks"][3:6]
    assert low <= median <= high and median == pytest.approx(0.5, rel=0.02)


@pytest.mark.parametrize("expected, factors", [
    *((NOT_CONFIRMED, only("end_ratio", factor, "hmalloc")) for factor in (2, 4)),  # halved by REPAIRED: no difference, lost
    (CONFIRMED, only("ns_per_op", 4, "hmalloc-explicit", "pairs", pattern="once"))])  # a price
def test_one_repair_that_bought_nothing_refutes_that_each_did(expected, factors):
    verdict = FIGURES["repairs"].judge(campaign(both(REPAIRED, factors)))
    assert verdict.outcome == expected and "memory goes back" in verdict.reason
