"""The report as a file: complete, self-contained, and made of whatever was measured."""

import base64
import hashlib
import html
import math
import re
from dataclasses import replace

import pytest
from hmalloc_lab.bench import store
from hmalloc_lab.errors import Failure
from hmalloc_lab.page import formats, packing, page
from hmalloc_lab.page.figure import CONFIRMED, PaperFigure, Verdict

from pages import section, without, words


@pytest.fixture(scope="module")
def paper(results) -> str:
    """The page of the profile paper."""
    return page.render(results)


def test_one_file_is_written_and_nothing_beside_it(quick, tmp_path):
    page.write(quick, tmp_path / "new" / "report.html")
    assert [each.name for each in (tmp_path / "new").iterdir()] == ["report.html"]


def test_a_folder_that_cannot_be_made_is_one_line(quick, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Failure, match="^[^\n]+$"):
        page.write(quick, tmp_path / "file" / "report.html")


def test_a_published_campaign_fits_into_two_megabytes(results, paper):
    assert len(results.cells) >= 200 and len(results.allocators) >= 9 and results.campaign.rounds == 10
    assert len(paper.encode()) < 2_000_000


def test_the_plotting_library_is_what_was_published():
    published = "1oNF8PeQx2hv/y7tqEVWKD3JGwn/MGEMQ8mL9HUwsaqG9FGy/OU5FHUHvzqbqxN4mnwZGI9abTiE775C4kkjMQ=="
    assert base64.b64encode(hashlib.sha512(packing.PACKAGE.read_bytes()).digest()).decode() == published


def test_the_policy_allows_known_scripts_and_no_connection(paper):
    policy = html.unescape(re.search(r'"Content-Security-Policy" content="(.*?)"', paper)[1])
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert set(rules) <= {"default-src", "script-src", "style-src", "img-src", "base-uri"}
    assert re.fullmatch(r"('sha256-[^' ]+' ?){2}", rules["script-src"])


def test_failures_and_noisy_rounds_are_rows(results, paper):
    environment = words(section(paper, "environment"))
    assert results.failures() and results.noisy_rounds
    for run in results.failures():
        assert f"{run.cell} {run.allocator} {run.status} {run.reason} {run.round}" in environment
    for number in results.noisy_rounds:
        assert re.search(rf"\b{number} [\d.]+ % [\d.]+ ms noisy", environment)


def of_allocators(wanted):
    return lambda whole: {"allocators": [row for row in whole.campaign.allocators if wanted(row.name)],
                          "runs": [run for run in whole.campaign.runs if wanted(run.allocator)]}


def of_runs(change):
    return lambda whole: {"runs": [change(run) for run in whole.campaign.runs]}


@pytest.mark.parametrize("changes", [
    pytest.param(lambda _: {"runs": []}, id="no run"),
    pytest.param(lambda _: {"runs": [], "cells": [], "allocators": [], "round_rows": [], "environment": {},
                            "finished": None}, id="nothing at all"),
    pytest.param(of_runs(lambda run: replace(run, status=store.HUNG, reason="no end", metrics={}, resident=[], latency={})),
                 id="failures only"),
    pytest.param(of_allocators(lambda name: name == "hmalloc"), id="hmalloc alone"),
    pytest.param(of_allocators(lambda name: name != "hmalloc"), id="no hmalloc"),
    pytest.param(lambda whole: {"cells": [cell for cell in whole.campaign.cells if cell.family != "latency"]},
                 id="no latency"),
    pytest.param(of_runs(lambda run: replace(run, metrics={**run.metrics, "ns_per_op": math.nan})
                         if run.allocator == "jemalloc" else run), id="not a number"),
])
def test_there_is_a_page_of_whatever_was_measured(quick, changes):
    text = page.render(without(quick, **changes(quick)))
    for name in ("overview", "heatmap", "threads", "memory", "latency", "replay", "papers", "environment"):
        assert section(text, name)


def test_what_was_not_measured_is_said(quick):
    text = page.render(without(quick, runs=[], cells=[]))
    assert "No trace was replayed" in words(section(text, "replay"))
    assert "Nothing has been measured" in words(section(text, "overview"))


def test_a_figure_that_fails_does_not_cost_the_page(quick, monkeypatch):
    def broken(_):
        raise KeyError("size")

    figures = [PaperFigure("Paper (1999)", label, title, "claims", draw, lambda _: Verdict(CONFIRMED, "sure"))
               for label, title, draw in (("Fig. 1", "Broken", broken), ("Fig. 2", "Empty", lambda _: []))]
    monkeypatch.setattr(page, "all_figures", lambda: figures)
    papers = words(section(page.render(quick), "papers"))
    assert "This figure could not be made: KeyError: 'size'" in papers
    assert "1 ✓ confirmed 0 ✕ not confirmed 1 ? cannot be told here" in papers


@pytest.mark.parametrize("value, text", [(1234.5, "1,234"), (123.4, "123"), (12.0, "12.0"), (1.234, "1.23"),
                                         (0.01234, "0.0123"), (0, "0")])
def test_three_digits(value, text):
    assert formats.significant(value) == text


@pytest.mark.parametrize("value, metric, text", [
    (12.34, "ns_per_op", "12.3 ns"), (1234, "ns_per_op", "1.23 µs"), (500, "vm_hwm_kb", "500 KB"),
    (2048, "vm_hwm_kb", "2.00 MB"), (1.2, "footprint", "1.20 resident/live")])
def test_quantities_have_their_unit(value, metric, text):
    assert formats.quantity(value, metric) == text
