"""The papers' figures: all with their words, drawn from any campaign, and what their pictures show."""

import re

import pytest
from fabricate import fabricate
from hmalloc_lab.bench.catalogue import cells
from hmalloc_lab.bench.results import Results
from hmalloc_lab.bench.store import AllocatorRow, Run
from hmalloc_lab.page.figure import CONFIRMED, UNTOLD, Chart
from hmalloc_lab.page.papers import all_figures
from hmalloc_lab.page.papers.measures import all_but_baselines, beside, measured_in
from paper_campaigns import ALLOCATORS, BASELINES, FIGURES, HMALLOC, Campaigned, campaign, examine, only, times


def test_every_claim_names_its_place_and_has_the_papers_numbers():
    assert len(all_figures()) == len(FIGURES)
    for figure in FIGURES.values():
        place, _, claim = figure.claim.partition(":")
        assert re.fullmatch(r"Section \d\.\d|Approach \d|Approach 4 and Results|Results \d|Results, \w+ chart"
                            r"|Different configuration, \w+ chart|Deviations", place), figure.id
        assert re.search(r"\d", claim) or figure.id in ("hoard-fig-3-e", "hoard-fig-3-f"), figure.id
        assert figure.title and (figure.note or figure.id == "repairs")
    assert "not published" in FIGURES["vvmalloc-fig-1"].note


# ---- Any campaign is drawn and judged. ------------------------------------------------------------------------------


@pytest.mark.parametrize("profile, how", [
    ("paper", {}), ("quick", {}), *((profile, {"allocators": (name,), "failing": False}) for profile, name in (
        ("quick", "glibc"), ("paper", "hmalloc"), ("quick", "mimalloc2"), ("quick", "user")))])
def test_made_up_campaigns_are_drawn_and_judged(tmp_path, profile, how):
    examine(Results.read(fabricate(tmp_path / "lab.db", profile, **how)))


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


def test_simulations_are_left_to_the_longer_profiles():
    results = campaign(plan=cells("quick"))
    for number in (12, 13, 14):
        figure = FIGURES[f"hmalloc-fig-{number}"]
        assert figure.draw(results) == [] and "the profile paper" in figure.judge(results).takes


# ---- What the pictures show. ----------------------------------------------------------------------------------------


def names_in(picture) -> set[str]:
    return {series.name for series in picture.series} if isinstance(picture, Chart) else set(picture.columns)


def test_what_is_measured_is_drawn_with_the_cast_of_its_paper_and_hmalloc_of_today():
    drawn = {name: figure.draw(campaign(rounds=5)) for name, figure in FIGURES.items()}
    assert {name for name, pictures in drawn.items() if not pictures} == {"hoard-fig-3-e", "hoard-fig-3-f"}
    shown = {name: set().union(*map(names_in, pictures)) for name, pictures in drawn.items()}
    assert {HMALLOC, "hmalloc_paper-all-shared", "glibc", "hoard", "ar_malloc", "vvmalloc-4", "one_lock",
            "hmalloc"} <= shown["hmalloc-fig-11-a"]
    for figure, name in (("hmalloc-fig-12", "hmalloc_paper"), ("hmalloc-fig-12", "hmalloc"), ("vvmalloc-fig-3", "vvmalloc-1"),
                         ("vvmalloc-fig-13", "vvmalloc-4"), ("ar-malloc-chart-1", "ar_malloc-lock")):
        assert name in shown[figure], figure
    assert {name for name, names in shown.items() if {"hoard-f8", "hoard-f2"} & names} == {"hoard-table-5", "hoard-table-6"}
    assert not [name for name in shown if name.startswith("linux") and set(BASELINES) - {"one_lock"} & shown[name]]


def test_an_allocator_that_the_user_gave_is_in_every_picture():
    results = campaign(allocators=("glibc", "mine", "mimalloc2"), plan=cells("quick"))
    results.allocators["mine"] = AllocatorRow("mine", "user", "")
    among = results.select("threadtest")
    assert measured_in(results, among, beside()) == ["glibc", "mine"]
    assert measured_in(results, among, all_but_baselines()) == ["glibc", "mine", "mimalloc2"]


@pytest.mark.parametrize("reference, hoards_first", [("one_lock", 2), ("glibc", 1)])
def test_speed_ups_begin_with_one_lock_or_with_glibc_and_follow_the_threads(reference, hoards_first):
    there = [name for name in ALLOCATORS if name in (reference, "glibc", "hoard")]
    (chart,) = FIGURES["hoard-fig-3-a"].draw(campaign(times(one_lock=2), allocators=there))
    hoard = next(series for series in chart.series if series.name == "hoard")
    assert chart.y_title.endswith(reference)
    assert [(point.x, round(point.y)) for point in hoard.points] == [(n, hoards_first * n) for n in (1, 2, 4, 8, 16)]


@pytest.mark.parametrize("number, points", [
    (12, (0, 25, 50, 75, 100)), (13, (20, 50, 100, 200)), (14, (50, 100, 200, 500))])
def test_a_simulation_has_a_picture_for_each_number_of_threads(number, points):
    charts = FIGURES[f"hmalloc-fig-{number}"].draw(campaign())
    assert [chart.title for chart in charts] == ["1 thread", *(f"{count} threads" for count in (2, 4, 8, 16))]
    assert {chart.y_title for chart in charts} == {"ns per event"}
    assert {tuple(point.x for point in series.points) for chart in charts for series in chart.series} == {points}


def test_arenas_have_a_chart_for_each_allocator_that_has_them():
    charts = FIGURES["ar-malloc-chart-4"].draw(campaign())
    assert charts[0].title == "ar_malloc" and "glibc" in [chart.title for chart in charts]


def test_tables_have_a_row_for_each_cell_and_a_column_for_each_allocator_or_number():
    results = campaign(only("counter_max_allocated", 1.1, "hoard"), rounds=5)
    (counts,), (held,), (alone,) = (FIGURES[f"hoard-table-{number}"].draw(results) for number in (3, 4, 2))
    programs = ["threadtest size=8", "shbench", "larson min=10 max=100", "barnes-hut"]
    assert [row[0] for row in counts.rows] == [f"{program} threads=16" for program in programs]
    assert {tuple(row[1:3]) for row in counts.rows} == {(1000, 1)}
    assert {tuple(round(value, 2) for value in row[1:]) for row in held.rows} == {(1.21, 1_210_000, 1_000_000)}
    assert "replay trace=python" in [row[0] for row in alone.rows] and {"hoard", "one_lock"} <= set(alone.columns)


def test_variants_are_compared_where_they_were_measured():
    """Not with every number of threads: the table has those that have all three."""
    class Few(Campaigned):
        def runs(self, cell: str, allocator: str) -> list[Run]:
            left_out = allocator in ("hoard-f8", "hoard-f2") and self.cells[cell].threads not in (2, 8)
            return [] if left_out else super().runs(cell, allocator)

    results = campaign(rounds=6, kind=Few)
    (table,) = FIGURES["hoard-table-5"].draw(results)
    assert all(row[0].endswith("threads=8") and None not in row for row in table.rows)
    assert FIGURES["hoard-table-5"].judge(results).outcome == CONFIRMED
