"""The report as a file: complete, self-contained, honest about losses, and made of whatever was measured."""

import base64
import gzip
import hashlib
import json
import math
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from fabricate import fabricate
from hmalloc_lab.bench import statistics, store
from hmalloc_lab.bench.results import Results
from hmalloc_lab.errors import Failure
from hmalloc_lab.page import overview, packing, page
from hmalloc_lab.page.figure import CONFIRMED, PaperFigure, Verdict
from hmalloc_lab.page.questions import TIME

EVIL = ('</script><script>window.hacked=1</script>', '"><img src=x onerror=window.hacked=1>', "a'b&amp;{{c}}")


class Parsed(HTMLParser):
    """Tags, ids, attributes that could load something, and the text by id of the nearest element that has one."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags, self.ids, self.addresses, self.scripts, self.meta = Counter(), [], [], [], []
        self._script = False
        self.text = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags[tag] += 1
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.addresses += [attributes[key] for key in ("src", "href", "srcset", "action", "data", "poster")
                           if key in attributes]
        self.meta += [attributes] if tag == "meta" else []
        self._script = tag == "script"
        if self._script:
            self.scripts.append([attributes.get("id"), ""])

    def handle_endtag(self, tag):
        self._script = False

    def handle_data(self, data):
        if self._script:
            self.scripts[-1][1] += data
        else:
            self.text.append(data)


@pytest.fixture(scope="module")
def quick(tmp_path_factory) -> Results:
    return Results.read(fabricate(tmp_path_factory.mktemp("quick") / "lab.db", "quick", rounds=6))


@pytest.fixture(scope="module")
def paper(results) -> str:
    """The page of the profile paper."""
    return page.render(results)


def without(results: Results, **changes) -> Results:
    return Results(replace(results.campaign, **changes))


def section(text: str, name: str) -> str:
    found = re.search(rf'<section id="{name}">.*?</section>', text, re.S)
    assert found, name
    return found[0]


def unpacked(parsed: Parsed, name: str) -> str:
    return gzip.decompress(base64.b64decode(dict(parsed.scripts)[name])).decode()


def words(markup: str) -> str:
    return " ".join(" ".join(Parsed(markup).text).split())


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


# ---- Honest. --------------------------------------------------------------------------------------------------------


def losing_cells(results: Results) -> set[str]:
    """Counted here on its own: where some peer's time is distinguishably better."""
    found = set()
    for cell in results.campaign.cells:
        ratios = [statistics.ratio(results, cell, "hmalloc", peer.name) for peer in results.peers]
        if cell.metric == "ns_per_op" and any(each and each.verdict == "slower" for each in ratios):
            found.add(cell.name)
    return found


@pytest.mark.parametrize("factor", [1.0, 4.0])
def test_every_losing_cell_is_listed_and_counted(tmp_path, factor):
    results = Results.read(fabricate(tmp_path / "lab.db", "quick", 8, slow={"hmalloc": factor}))
    duels = overview.duels(results)
    assert {duel.cell.name for duel in duels.losses if duel.question.id == "time"} == losing_cells(results)
    listed = section(page.render(results), "overview")
    losses = words(listed[listed.index('id="losses"'):listed.index('id="leads"')])
    assert f"Where hmalloc loses {len(duels.losses)}" in losses
    places = [losses.index(f"{duel.cell.name} {duel.question.title.lower()}") for duel in duels.losses]
    assert places == sorted(places), "not worst first"
    assert [duel.ratio.median for duel in duels.losses] == sorted((duel.ratio.median for duel in duels.losses),
                                                                  reverse=True)


def test_a_slow_hmalloc_does_not_lead(tmp_path):
    results = Results.read(fabricate(tmp_path / "lab.db", "quick", 8, slow={"hmalloc": 4.0}))
    fast = overview.rankings(results)[0]
    assert fast.leader != "hmalloc" and "hmalloc is 9th of 9" in fast.sentence
    assert not [duel for duel in overview.duels(results).leads if duel.question.id == "time"]


@pytest.mark.parametrize("low, high, close", [(1.0, 1.05, False), (0.95, 1.2, True)])
def test_a_narrow_lead_is_called_one(low, high, close):
    means = {"hmalloc": statistics.Mean(1.02, low, high, 40), "jemalloc": statistics.Mean(1.1, 1.0, 1.2, 40)}
    assert ("too close to call" in overview.Ranking(TIME, means, 10).sentence) == close


def test_a_win_is_one_against_every_peer(quick):
    duels = overview.duels(quick)
    assert duels.leads
    for duel in duels.leads:
        for peer in quick.peers:
            theirs = quick.median(duel.cell, peer.name, duel.metric)
            assert theirs is None or duel.ours < theirs, (duel.cell.name, peer.name)


def headlines(text: str) -> list[str]:
    return re.findall(r'<p class="big">(.*?)</p>', text)


def test_too_few_rounds_give_no_verdict_and_no_headline(tmp_path):
    results = Results.read(fabricate(tmp_path / "lab.db", "quick", 4))
    duels = overview.duels(results)
    assert not duels.losses and not duels.leads and duels.too_few == duels.total > 0
    text = section(page.render(results), "overview")
    assert headlines(text) == ["too few rounds"] * 4
    assert "4 rounds of most cells: a leader is named from 5 on." in words(text)
    assert [words(text).count(f"{title} × the best, ") for title in ("Time", "Memory", "Latency tail")] == [1, 1, 1]


def test_five_rounds_give_headlines(tmp_path):
    results = Results.read(fabricate(tmp_path / "lab.db", "quick", 5))
    found = headlines(page.render(results))
    assert set(found[:3]) <= set(results.allocators) and re.fullmatch(r"\d+ of \d+", found[3])


@pytest.mark.parametrize("rounds, told", [(4, False), (6, True)])
def test_the_summary_to_share_has_machine_date_allocators_and_numbers(tmp_path, rounds, told):
    results = Results.read(fabricate(tmp_path / "lab.db", "quick", rounds))
    text = re.search(r'<pre id="summary"[^>]*>(.*?)</pre>', page.render(results), re.S)[1]
    for part in ("Made-up CPU at 3.0 GHz", "2 CPUs", "21 November 2026", f"{rounds} rounds",
                 *(f"{row.name} {row.version}" for row in results.drop_ins)):
        assert part in text, part
    numbers = re.findall(r"^(time|memory|latency tail): hmalloc ([\d.]+) \[([\d.]+), ([\d.]+)\]", text, re.M)
    assert len(numbers) == (3 if told else 0) and text.count("too few rounds to tell") == (0 if told else 3)
    for ranking, (title, *shown) in zip(overview.rankings(results), numbers, strict=False):
        mean = ranking.means["hmalloc"]
        assert title == ranking.question.title.lower()
        assert [float(each) for each in shown] == pytest.approx([mean.value, mean.low, mean.high], abs=0.005)


def test_nothing_is_shared_of_hmalloc_alone(quick):
    alone = without(quick, allocators=[quick.allocators["hmalloc"]],
                    runs=[run for run in quick.campaign.runs if run.allocator == "hmalloc"])
    assert "Summary to share" not in page.render(alone)


def test_failures_and_noisy_rounds_are_rows(results, paper):
    environment = words(section(paper, "environment"))
    assert results.failures() and results.noisy_rounds
    for run in results.failures():
        assert f"{run.cell} {run.allocator} {run.status} {run.reason} {run.round}" in environment
    for number in results.noisy_rounds:
        assert re.search(rf"\b{number} [\d.]+ % [\d.]+ ms noisy", environment)


def test_an_interrupted_campaign_says_so(quick):
    text = page.render(without(quick, finished=None))
    assert "interrupted" in section(text, "environment") and "of 6 planned" in section(text, "overview")


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

    figures = [PaperFigure("Paper (1999)", "Fig. 1", "Broken", "claims", broken, lambda _: Verdict(CONFIRMED, "sure")),
               PaperFigure("Paper (1999)", "Fig. 2", "Empty", "claims", lambda _: [], lambda _: Verdict(CONFIRMED, "sure"))]
    monkeypatch.setattr(page, "all_figures", lambda: figures)
    papers = words(section(page.render(quick), "papers"))
    assert "This figure could not be made: KeyError: 'size'" in papers
    assert "1 ✓ confirmed 0 ✕ not confirmed 1 ? cannot be told here" in papers
