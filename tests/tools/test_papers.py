"""The papers' figures: all there, drawn from any campaign, and what their pictures show."""

import re
from functools import cache

import pytest
from fabricate import fabricate
from hmalloc_lab.bench.catalogue import Cell, cells
from hmalloc_lab.bench.results import Results
from hmalloc_lab.bench.store import AllocatorRow, Run
from hmalloc_lab.page.figure import CONFIRMED, NOT_CONFIRMED, UNTOLD, Chart
from hmalloc_lab.page.papers import all_figures
from hmalloc_lab.page.papers.measures import all_but_baselines, beside, measured_in
from paper_campaigns import (
    AHEAD,
    AS_PROFILED,
    BASELINES,
    CASES,
    FIGURES,
    HMALLOC,
    MEASURED,
    USED,
    Campaigned,
    both,
    campaign,
    examine,
    in_workload,
    only,
    slowing,
    times,
)

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


def test_every_figure_that_can_be_told_has_a_case():
    assert set(CASES) | NEVER_TOLD == set(REQUIRED) and not set(CASES) & NEVER_TOLD


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
    ("quick", ("user",))])
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


@pytest.mark.parametrize("figure, slowed", [("hmalloc-fig-11-f", HMALLOC), ("hmalloc-fig-11-e", HMALLOC)])
def test_slowing_an_allocator_turns_the_verdict(made_up, figure, slowed):
    judge = FIGURES[figure].judge
    among = ("glibc", "hmalloc", slowed)
    assert judge(made_up("quick", among, ((slowed, 0.1),))).outcome == CONFIRMED
    assert judge(made_up("quick", among, ((slowed, 50.0),))).outcome == NOT_CONFIRMED


def test_simulations_are_left_to_the_longer_profiles():
    results = campaign(AHEAD, plan=cells("quick"))
    for number in (12, 13, 14):
        assert FIGURES[f"hmalloc-fig-{number}"].draw(results) == []
        verdict = FIGURES[f"hmalloc-fig-{number}"].judge(results)
        assert verdict.outcome == UNTOLD and "a longer profile may" in verdict.reason


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


# ---- What the pictures show. -----------------------------------------------------------------------------------------


def names_in(picture) -> set[str]:
    return ({series.name for series in picture.series} if isinstance(picture, Chart)
            else {str(row[0]) for row in picture.rows} | set(picture.columns))


def test_a_picture_shows_the_cast_of_its_paper_and_hmalloc_of_today():
    results = campaign(rounds=5)
    (threadtest,) = FIGURES["hmalloc-fig-11-a"].draw(results)
    assert {"hmalloc_paper-explicit", "hmalloc_paper-all-shared", "glibc", "hoard", "ar_malloc", "vvmalloc-4",
            "one_lock", "hmalloc"} <= names_in(threadtest)
    for figure, name in (("hmalloc-fig-12", "hmalloc_paper"), ("hmalloc-fig-12", "hmalloc"),
                         ("hoard-fig-3-a", "one_lock"), ("vvmalloc-fig-3", "vvmalloc-1"),
                         ("vvmalloc-fig-13", "vvmalloc-4"), ("ar-malloc-chart-1", "ar_malloc-lock")):
        assert name in names_in(FIGURES[figure].draw(results)[0]), figure
    shown = {name: names_in(picture) for name, figure in FIGURES.items() if not name.startswith("hoard-table")
             for picture in figure.draw(results)}
    assert not [name for name, who in shown.items() if {"hoard-f8", "hoard-f2"} & who]
    assert not [name for name, who in shown.items() if name.startswith("linux") and set(BASELINES) - {"one_lock"} & who]


def test_an_allocator_that_the_user_gave_is_in_every_picture():
    results = campaign(allocators=("glibc", "mine", "mimalloc2"), plan=cells("quick"))
    results.allocators["mine"] = AllocatorRow("mine", "user", "")
    among = results.select("threadtest")
    assert measured_in(results, among, beside()) == ["glibc", "mine"]
    assert measured_in(results, among, all_but_baselines()) == ["glibc", "mine", "mimalloc2"]


def table(figure: str, factors=times(), cpus: int = 16):
    return FIGURES[figure].draw(campaign(factors, cpus))[0]


def test_speed_ups_begin_with_one_lock_or_with_glibc():
    slow = times(one_lock=2)
    (chart,) = FIGURES["hoard-fig-3-a"].draw(campaign(slow))
    hoard = next(series for series in chart.series if series.name == "hoard")
    assert chart.y_title.endswith("one_lock") and round(hoard.points[0].y, 1) == 2
    there = tuple(name for name in (*MEASURED, *BASELINES) if name != "one_lock")
    (chart,) = FIGURES["hoard-fig-3-a"].draw(campaign(slow, allocators=there))
    assert chart.y_title.endswith("glibc")


def test_one_thread_stands_beside_the_papers_change():
    found = table("hoard-table-2", only("ns_per_op", in_workload("shbench", 1.49), "hoard"))
    rows = {row[0]: row for row in found.rows}
    assert rows["shbench"][found.columns.index("hoard")].startswith("+49")
    assert {"python", "perl", "sqlite"} <= rows.keys()


def test_what_hoard_counted_has_a_row_for_each_program():
    found = table("hoard-table-3", only(USED, lambda cell, _: 0, "hoard"))
    assert [row[0] for row in found.rows] == ["threadtest", "shbench", "larson", "barnes-hut"]
    assert {tuple(row[1:5]) for row in found.rows} == {(16, 0, 1000, 0)}


def test_fragmentation_stands_beside_the_replayed():
    found = table("hoard-table-4", both(only("counter_max_allocated", lambda cell, _: 1.1, "hoard"),
                                        only("a_over_u", lambda cell, _: 2, "hoard")))
    larson = next(row for row in found.rows if row[0] == "larson")
    assert [round(value, 2) for value in larson[1:]] == [16, 1.22, 1.21, 1_210_000, 1_000_000, 2.2]


def test_variants_are_compared_where_they_were_measured():
    """Not with every number of threads: the table has those that have all three."""
    class Few(Campaigned):
        def runs(self, cell: str, allocator: str) -> list[Run]:
            left_out = allocator in ("hoard-f8", "hoard-f2") and self.cells[cell].threads not in (2, 8)
            return [] if left_out else super().runs(cell, allocator)

    results = Few(times(), 16, (*MEASURED, *BASELINES), 6, cells("full"))
    (times_table,) = FIGURES["hoard-table-5"].draw(results)
    assert {row[1] for row in times_table.rows} == {8} and None not in times_table.rows[0]
    assert FIGURES["hoard-table-5"].judge(results).outcome == CONFIRMED


def test_the_profile_has_the_reports_shares_and_ours():
    found = table("vvmalloc-profile", AS_PROFILED, 2)
    rows = {row[0]: row for row in found.rows}
    assert len(rows) == 9 and {row[1] for row in found.rows} == {2}
    assert rows["vvmalloc-2, workload 1"][2:5] == pytest.approx([14.96, 8, 50])
    assert rows["vvmalloc-3, workload 2"][2:] == pytest.approx([89, 48.5, 50, 0.05, 4, 2.133], rel=1e-3)


def test_the_driver_has_the_reports_numbers_and_ours():
    rows = {row[0]: row for row in table("vvmalloc-fig-1").rows}
    assert rows["the report's"] == ["the report's", 74.3, None, 14_639]
    assert [round(value, 1) for value in rows["vvmalloc-1"][1:]] == [74.3, 74.3, 20_000]
    rows = {row[0]: row for row in table("vvmalloc-fig-2", slowing("vvmalloc-1")).rows}
    assert [round(value, 1) for value in rows["vvmalloc-1"][1:3]] == [4.6, 74.3]


def test_arenas_have_a_chart_for_each_allocator_that_has_them():
    charts = FIGURES["ar-malloc-chart-4"].draw(campaign())
    assert charts[0].title == "ar_malloc" and "glibc" in [chart.title for chart in charts]
