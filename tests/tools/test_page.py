"""The report as a file: complete, self-contained, and made of whatever was measured."""

import base64
import hashlib
import json
import math
import re
from collections import Counter
from dataclasses import replace

import pytest
from fabricate import fabricate
from hmalloc_lab.bench import store
from hmalloc_lab.bench.results import Results
from hmalloc_lab.errors import Failure
from hmalloc_lab.page import packing, page
from hmalloc_lab.page.figure import CONFIRMED, PaperFigure, Verdict

from pages import Parsed, paper, quick, section, unpacked, without, words  # noqa: F401

EVIL = ('</script><script>window.hacked=1</script>', '"><img src=x onerror=window.hacked=1>', "a'b&amp;{{c}}")


# ---- One file. ------------------------------------------------------------------------------------------------------


def test_one_file_is_written_and_nothing_beside_it(quick, tmp_path):
    page.write(quick, tmp_path / "new" / "report.html")
    assert [each.name for each in (tmp_path / "new").iterdir()] == ["report.html"]


def test_a_published_campaign_fits_into_two_megabytes(results, paper):
    assert len(results.cells) >= 200 and len(results.allocators) >= 9 and results.campaign.rounds == 10
    assert len(paper.encode()) < 2_000_000


def test_the_plotting_library_is_what_was_published():
    published = "1oNF8PeQx2hv/y7tqEVWKD3JGwn/MGEMQ8mL9HUwsaqG9FGy/OU5FHUHvzqbqxN4mnwZGI9abTiE775C4kkjMQ=="
    assert base64.b64encode(hashlib.sha512(packing.PACKAGE.read_bytes()).digest()).decode() == published


def test_nothing_is_loaded_from_outside(quick):
    text = page.render(quick)
    parsed = Parsed(text)
    assert not {"link", "img", "iframe", "object", "embed", "video", "audio", "base"} & set(parsed.tags)
    assert all(address.startswith("#") for address in parsed.addresses), parsed.addresses
    style = re.search(r"<style>(.*?)</style>", text, re.S)[1]
    assert "url(" not in style and "@import" not in style


def test_the_policy_allows_these_scripts_and_no_connection(quick):
    parsed = Parsed(page.render(quick))
    policy = next(each["content"] for each in parsed.meta if each.get("http-equiv") == "Content-Security-Policy")
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert set(rules) <= {"default-src", "script-src", "style-src", "img-src", "base-uri"}
    scripts = [unpacked(parsed, "library"), *(script for kind, script in parsed.scripts if kind is None)]
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    assert rules["script-src"].split() == [f"'sha256-{digest}'" for digest in digests]


def test_names_and_reasons_of_others_stay_text(tmp_path):
    results = Results.read(fabricate(tmp_path / "lab.db", "quick", 6, ("glibc", "hmalloc", *EVIL)))
    broken = replace(results.campaign.runs[0], status=store.CRASHED, reason=EVIL[0])
    parsed = Parsed(page.render(without(results, runs=[broken, *results.campaign.runs[1:]])))
    assert len(parsed.scripts) == 3 and parsed.tags["img"] == 0
    assert all(name in unpacked(parsed, "data") for name in map(json.dumps, EVIL))
    text = "".join(parsed.text)
    assert all(name in text for name in EVIL)


def test_no_id_is_given_twice(paper):
    twice = [name for name, count in Counter(Parsed(paper).ids).items() if count > 1]
    assert not twice


def test_a_folder_that_cannot_be_made_is_one_line(quick, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Failure, match="^[^\n]+$"):
        page.write(quick, tmp_path / "file" / "report.html")


def test_failures_and_noisy_rounds_are_rows(results, paper):
    environment = words(section(paper, "environment"))
    assert results.failures() and results.noisy_rounds
    for run in results.failures():
        assert f"{run.cell} {run.allocator} {run.status} {run.reason} {run.round}" in environment
    for number in results.noisy_rounds:
        assert re.search(rf"\b{number} [\d.]+ % [\d.]+ ms noisy", environment)


# ---- Whatever was measured. -----------------------------------------------------------------------------------------


def only_failures(results: Results) -> list:
    return [replace(run, status=store.HUNG, reason="no end after 60 s", metrics={}, resident=[], latency={})
            for run in results.campaign.runs]


@pytest.mark.parametrize("changes", [
    pytest.param(lambda whole: {"runs": []}, id="no run"),
    pytest.param(lambda whole: {"runs": [], "cells": [], "allocators": [], "round_rows": [], "environment": {},
                                "finished": None}, id="nothing at all"),
    pytest.param(lambda whole: {"runs": only_failures(whole)}, id="failures only"),
    pytest.param(lambda whole: {"allocators": [whole.allocators["hmalloc"]],
                                "runs": [run for run in whole.campaign.runs if run.allocator == "hmalloc"]},
                 id="hmalloc alone"),
    pytest.param(lambda whole: {"allocators": [row for row in whole.campaign.allocators if row.name != "hmalloc"],
                                "runs": [run for run in whole.campaign.runs if run.allocator != "hmalloc"]},
                 id="no hmalloc"),
    pytest.param(lambda whole: {"cells": [cell for cell in whole.campaign.cells if cell.family != "latency"]},
                 id="no latency"),
    pytest.param(lambda whole: {"runs": [replace(run, metrics={**run.metrics, "ns_per_op": math.nan})
                                         if run.allocator == "jemalloc" else run for run in whole.campaign.runs]},
                 id="not a number"),
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
