"""The papers' figures: all there, drawn from any campaign, and judged by the numbers and nothing else."""

import re
from functools import cache

import pytest
from fabricate import fabricate
from hmalloc_lab.bench.catalogue import Cell, cells
from hmalloc_lab.bench.results import Results
from hmalloc_lab.bench.store import RoundRow
from hmalloc_lab.page.figure import CONFIRMED, NOT_CONFIRMED, UNTOLD
from hmalloc_lab.page.papers import all_figures
from paper_campaigns import AHEAD, CASES, FIGURES, HMALLOC, MEASURED, both, campaign, examine, only, slowing, stuck

REQUIRED = [
    *(f"hmalloc-fig-11-{letter}" for letter in "abcdefgh"), "hmalloc-table-2",
    *(f"hmalloc-fig-{number}" for number in (12, 13, 14)),
    *(f"hoard-fig-3-{letter}" for letter in "abcdef"), "hoard-fig-4-a", "hoard-fig-4-b",
    *(f"hoard-table-{number}" for number in (2, 3, 4, 5, 6)),
    *(f"linux-malloc-table-{number}" for number in (1, 2, 3, 4)),
    *(f"linux-malloc-fig-{number}" for number in range(1, 12)),
    *(f"vvmalloc-fig-{number}" for number in (1, 2, 3, *range(6, 19))), "vvmalloc-profile",
    *(f"ar-malloc-chart-{number}" for number in range(1, 6)), "repairs",
]

# What no campaign of today's programs can tell.
NEVER_TOLD = {"hoard-fig-3-e", "hoard-fig-3-f"}


@pytest.fixture(scope="module")
def made_up(tmp_path_factory):
    @cache
    def of(profile: str, allocators: tuple[str, ...] = (), slow: tuple[tuple[str, float], ...] = ()) -> Results:
        path = tmp_path_factory.mktemp("campaign") / "made-up.db"
        chosen = {"allocators": allocators, "failing": False} if allocators else {}
        return Results.read(fabricate(path, profile, slow=dict(slow), **chosen))
    return of


# ---- What there is. -------------------------------------------------------------------------------------------------


def test_every_required_figure_is_there_once():
    assert [figure.id for figure in all_figures()].count("hmalloc-fig-11-a") == 1
    assert sorted(figure.id for figure in all_figures()) == sorted(REQUIRED)


def test_every_claim_names_its_place_and_has_the_papers_numbers():
    for figure in FIGURES.values():
        place, _, claim = figure.claim.partition(":")
        assert re.fullmatch(r"Section \d\.\d|Approach \d|Approach 4 and Results|Results \d|Results, \w+ chart"
                            r"|Different configuration, \w+ chart|Deviations", place), figure.id
        assert re.search(r"\d", claim) or figure.id in ("hoard-fig-3-e", "hoard-fig-3-f"), figure.id


@pytest.mark.parametrize("figure, numbers", [
    ("hmalloc-fig-11-a", ("10 %", "21", "76 %", "15 %")), ("hmalloc-fig-11-b", ("512 B", "125", "4 MB", "6 threads")),
    ("hmalloc-fig-11-c", ("30 %", "100 %")), ("hmalloc-fig-11-d", ("10 %", "50 %", "20 %")),
    ("hmalloc-fig-11-e", ("8 to 30 %", "28 to 112 %")), ("hmalloc-fig-12", ("10 %", "20 %")),
    ("hmalloc-fig-13", ("5 %", "10 %")), ("hmalloc-fig-14", ("5 %", "10 %")),
    ("hmalloc-table-2", ("318", "1227", "1460", "2929", "114", "13.9")), ("hoard-fig-3-a", ("278 %", "14", "6")),
    ("hoard-fig-3-b", ("85 %",)), ("hoard-fig-3-c", ("18 times",)), ("hoard-fig-3-d", ("12", "10 %", "32,768")),
    ("hoard-table-2", ("6.2 %", "49.2 %", "6.1 %")), ("hoard-table-4", ("1.24", "1.22", "1.18", "3.17", "58.04")),
    ("hoard-table-5", ("1.27", "1.45", "4.41")), ("hoard-table-6", ("1.22", "1.61")),
    ("linux-malloc-table-1", ("26.04", "26.06", "23.31", "10 %")), ("linux-malloc-table-2", ("54.27", "6.02")),
    ("linux-malloc-table-3", ("12.39", "10.39", "20 %")), ("linux-malloc-table-4", ("12.58", "14.85", "15 runs")),
    ("linux-malloc-fig-5", ("14 + 1.1tr + 127.6t",)), ("linux-malloc-fig-6", ("399", "25 to 50 %")),
    ("linux-malloc-fig-7", ("9 to 18 %",)), ("vvmalloc-fig-1", ("74.3", "14,639")),
    ("vvmalloc-fig-2", ("9.1", "1,668")), ("vvmalloc-fig-3", ("7 to 8 times",)), ("vvmalloc-fig-6", ("16 threads",)),
    ("vvmalloc-profile", ("14.96 %", "93 %", "93.38 %", "89 %", "4 %")),
    ("hoard-table-3", ("14 processors", "0 objects")), ("vvmalloc-fig-16", ("1.5 times",)),
    ("vvmalloc-fig-17", ("3 times", "twice")),
    ("ar-malloc-chart-2", ("3 times",)), ("ar-malloc-chart-3", ("8 threads",)),
])
def test_a_claim_has_these_numbers(figure, numbers):
    assert [number for number in numbers if number not in FIGURES[figure].claim] == []


# ---- Any campaign is drawn and judged. ------------------------------------------------------------------------------


@pytest.mark.parametrize("profile, allocators", [
    ("paper", ()), ("quick", ()), ("quick", ("glibc",)), ("paper", ("hmalloc",)), ("quick", ("mimalloc2",)),
    ("quick", ("given",))])
def test_made_up_campaigns_are_drawn_and_judged(made_up, profile, allocators):
    examine(made_up(profile, allocators))


@pytest.mark.parametrize("without", ["cells", "runs", "CPUs"])
def test_without_numbers_nothing_can_be_told(without):
    results = campaign(rounds=0 if without == "runs" else 6, plan=[] if without == "cells" else cells("quick"))
    if without == "CPUs":
        results.campaign.environment.clear()
    outcomes = examine(results)
    if without != "CPUs":
        assert set(outcomes.values()) == {UNTOLD}
        assert not [figure.id for figure in FIGURES.values() if figure.draw(results)]
    assert outcomes["hmalloc-fig-11-a"] == outcomes["linux-malloc-fig-1"] == UNTOLD


def test_what_is_measured_is_drawn():
    results = campaign()
    assert {name for name, figure in FIGURES.items() if not figure.draw(results)} == {
        "hoard-fig-3-e", "hoard-fig-3-f"}


def test_a_speed_up_starts_at_one_and_follows_the_threads():
    (chart,) = FIGURES["hoard-fig-3-a"].draw(campaign())
    glibc = next(series for series in chart.series if series.name == "glibc")
    assert [(point.x, round(point.y)) for point in glibc.points] == [(count, count) for count in (1, 2, 4, 8, 16)]


# ---- Verdicts follow the numbers. -----------------------------------------------------------------------------------


def test_every_figure_that_can_be_told_has_a_case():
    assert set(CASES) | NEVER_TOLD == set(REQUIRED) and not set(CASES) & NEVER_TOLD


@pytest.mark.parametrize("figure", CASES)
def test_a_verdict_turns_with_the_numbers(figure):
    confirming, refuting, cpus = CASES[figure]
    for factors, expected in ((confirming, CONFIRMED), (refuting, NOT_CONFIRMED)):
        verdict = FIGURES[figure].judge(campaign(factors, cpus))
        assert verdict.outcome == expected, verdict.reason


@pytest.mark.parametrize("figure", NEVER_TOLD)
def test_what_cannot_be_told_says_why(figure):
    verdict = FIGURES[figure].judge(campaign())
    assert verdict.outcome == UNTOLD and "nothing here stands" in verdict.reason


@pytest.mark.parametrize("figure, slowed", [("hmalloc-fig-11-f", HMALLOC), ("hmalloc-fig-11-e", HMALLOC)])
def test_slowing_an_allocator_turns_the_verdict(made_up, figure, slowed):
    judge = FIGURES[figure].judge
    among = ("glibc", "hmalloc", slowed)
    assert judge(made_up("quick", among, ((slowed, 0.1),))).outcome == CONFIRMED
    assert judge(made_up("quick", among, ((slowed, 50.0),))).outcome == NOT_CONFIRMED


def test_too_few_rounds_tell_nothing():
    verdict = FIGURES["hmalloc-fig-11-a"].judge(campaign(AHEAD, rounds=3))
    assert verdict.outcome == UNTOLD and "too few rounds" in verdict.reason


def test_an_interval_across_the_threshold_tells_nothing():
    noisy = only("ns_per_op", lambda cell, number: 0.5 if number % 3 else 1.5, HMALLOC)  # the median is 0.5
    assert FIGURES["hmalloc-fig-11-a"].judge(campaign(noisy)).outcome == UNTOLD


def test_claims_beyond_the_cpus_are_not_told():
    alone = campaign(slowing("one_lock"), cpus=2)
    for figure in ("hoard-fig-3-a", "ar-malloc-chart-3", "linux-malloc-table-3", "linux-malloc-fig-10"):
        verdict = FIGURES[figure].judge(alone)
        assert verdict.outcome == UNTOLD and re.search("has 2|2 CPUs", verdict.reason), verdict.reason


def test_linear_as_far_as_the_cpus_go_is_not_linear_as_far_as_the_paper_goes():
    verdict = FIGURES["hoard-fig-4-a"].judge(campaign(both(stuck("glibc", 4), stuck("one_lock", 1)), cpus=8))
    assert verdict.outcome == UNTOLD and "goes to 14 CPUs, this machine has 8" in verdict.reason


def test_the_baselines_are_asked_for_until_they_are_measured():
    results = campaign(allocators=MEASURED)
    for figure, missing in (("hoard-fig-3-d", "hoard"), ("hoard-table-4", "hoard"), ("vvmalloc-fig-7", "vvmalloc-2"),
                            ("linux-malloc-table-2", "one_lock"), ("ar-malloc-chart-2", "ar_malloc"),
                            ("hoard-table-3", "hoard"), ("hoard-table-5", "hoard-f8"), ("vvmalloc-fig-1", "vvmalloc-1"),
                            ("vvmalloc-profile", "vvmalloc-2"), ("repairs", "hmalloc_paper"),
                            ("hmalloc-fig-11-a", HMALLOC), ("hmalloc-fig-12", "hmalloc_paper")):
        verdict = FIGURES[figure].judge(results)
        assert verdict.outcome == UNTOLD and f"{missing} was not measured" in verdict.reason, verdict.reason


def test_simulations_are_left_to_the_longer_profiles():
    results = campaign(AHEAD, plan=cells("quick"))
    for number in (12, 13, 14):
        assert FIGURES[f"hmalloc-fig-{number}"].draw(results) == []
        verdict = FIGURES[f"hmalloc-fig-{number}"].judge(results)
        assert verdict.outcome == UNTOLD and "paper" in verdict.reason


@pytest.mark.parametrize("number, points", [
    (12, (0, 25, 50, 75, 100)), (13, (20, 50, 100, 200)), (14, (50, 100, 200, 500))])
def test_a_simulation_has_a_picture_for_each_number_of_threads(number, points):
    charts = FIGURES[f"hmalloc-fig-{number}"].draw(campaign())
    assert [chart.title for chart in charts] == ["1 thread", *(f"{count} threads" for count in (2, 4, 8, 16))]
    assert {chart.y_title for chart in charts} == {"ns per event"}
    assert {tuple(point.x for point in series.points) for chart in charts for series in chart.series} == {points}


def test_simulations_are_judged_with_as_many_threads_as_there_are_cpus():
    def fast_with_two(cell: Cell, who: str, number: int) -> dict[str, float]:
        return {"ns_per_op": 0.5 if who == "hmalloc_paper" and cell.threads == 2 else 1}
    judge = FIGURES["hmalloc-fig-13"].judge
    assert (judge(campaign(fast_with_two, 2)).outcome, judge(campaign(fast_with_two, 4)).outcome) == (
        CONFIRMED, NOT_CONFIRMED)


def test_disturbed_rounds_do_not_make_a_run_sporadically_slow():
    results = campaign(CASES["linux-malloc-table-4"][0], 4, rounds=15)
    assert FIGURES["linux-malloc-table-4"].judge(results).outcome == CONFIRMED
    results = campaign(CASES["linux-malloc-table-4"][0], 4, rounds=15)
    results.campaign.round_rows += [RoundRow(number, "", noisy=True) for number in (3, 6, 9, 12, 15)]
    assert FIGURES["linux-malloc-table-4"].judge(results).outcome == NOT_CONFIRMED
