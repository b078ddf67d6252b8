"""The figure of simulated cores: in a page of its own, and in the report of the campaign beside it."""

import base64
import gzip
import json
import re
from types import SimpleNamespace

import pytest
from browsing import browser, show, visit, written  # noqa: F401
from fabricate import fabricate
from hmalloc_lab.bench import commands as bench_commands
from hmalloc_lab.bench import participants, session, store
from hmalloc_lab.bench.cores import cells, commands
from hmalloc_lab.bench.results import Results
from hmalloc_lab.bench.store import AllocatorRow, Run, Store
from hmalloc_lab.page import cores, page, palette
from typer.testing import CliRunner

from pages import section, without, words

CORES = (1, 2, 64)
MOVED = {"glibc": 3.0, "hmalloc": 0.02, "jemalloc": 0.0}  # on 64 cores; a thirtieth of it for each core below
COMMAND = "hmalloc bench cores --allocators " + ",".join(f"buildnumber{number}" for number in range(9))


def begin(path, date: str = "2026-11-25", allocators=tuple(MOVED), finished: bool = True, runs: bool = True,
          counts=CORES) -> None:
    plan = cells.chosen(list(cells.PATTERNS), counts)
    rows = [AllocatorRow(name, "hmalloc" if name == "hmalloc" else "peer", f"{name}-1.2.3") for name in allocators]
    with Store(path, create=True) as kept:
        number = kept.begin(f"{date}T10:00:00+00:00", "cores", COMMAND, 0, 1, {"CPUs": 2}, plan, rows)
        for cell in plan if runs else ():
            for name in allocators:
                kept.add(number, made(cell, name))
        if finished:
            kept.finish(number, f"{date}T10:20:00+00:00")


def made(cell, name: str) -> Run:
    if cell.point["pattern"] == "larson" and name == "jemalloc":
        return Run(1, cell.name, name, "", store.FAILED, "it broke")
    moved = MOVED.get(name, 1.0) * (0 if cell.threads == 1 else cell.threads / 64)
    metrics = dict.fromkeys(("upgrades", "far", "hand_offs", "fills", "whole_disturbances", "whole_instructions"), 0.0)
    return Run(1, cell.name, name, "", metrics=metrics | {
        "transfers": moved, cells.METRIC: moved, "instructions": 123.4, "locked": 0.567,
        "sites": [["hm::push", "allocator's", moved, 0.0]]})


@pytest.fixture
def campaign(tmp_path) -> Results:
    begin(tmp_path / "cores.db")
    return Results.read(tmp_path / "cores.db")


def drawn(text: str) -> dict[str, dict[str, list]]:
    """pattern -> allocator -> its points."""
    packed = re.search(r'id="data">(.*?)</script>', text)[1]
    data = json.loads(gzip.decompress(base64.b64decode(packed)))
    return {chart["title"]: {series["name"]: [point[:2] for point in series["points"]] for series in chart["series"]}
            for chart in data["cores"]}


# ---- A page of its own. ---------------------------------------------------------------------------------------------


def test_there_is_a_curve_for_each_pattern_and_allocator(campaign):
    text = cores.render(campaign)
    found = drawn(text)
    assert list(found) == list(cells.PATTERNS)
    for pattern, curves in found.items():
        assert set(curves) == set(MOVED) - ({"jemalloc"} if pattern == "larson" else set()), pattern
        assert list(curves)[-1] == "hmalloc", "drawn last, it lies on top"
        assert curves["glibc"] == [[1, 0], [2, 0.09375], [64, 3]]
        assert f"{pattern} {cells.PATTERNS[pattern]}" in words(section(text, "cores"))


def test_it_says_first_that_it_is_simulated_and_what_moves(campaign):
    text = words(section(cores.render(campaign), "cores"))
    assert text.index("Many cores, simulated") < text.index("Simulated, not timed.") < text.index("own")
    assert "transfer is a line that comes from another core's cache" in text
    assert "upgrade a write that takes a line from others" in text
    assert f"25 November 2026 {COMMAND}" in text and "hmalloc hmalloc-1.2.3" in text


def test_it_has_counts_functions_limits_versions_and_failures(campaign):
    text = cores.render(campaign)
    numbers = words(section(text, "numbers"))
    assert "3.000 (150.00)" in numbers, "over the best of the others, where there is one"
    for title, value in (("Instructions", "123.4"), ("Locked instructions", "0.567")):
        assert f"glibc {' '.join([value] * len(cells.PATTERNS))}" in numbers.split(title, 1)[1]
    assert "ring, 64 hm::push allocator's 0.020 0.000" in words(section(text, "functions"))
    model = section(text, "model")
    assert "What the model leaves out: time" in words(model) and "<code>--grain</code>" in model and "*" not in model
    environment = words(section(text, "environment"))
    assert "jemalloc-1.2.3" in environment and "it broke" in environment


@pytest.mark.parametrize("changes", [{"runs": []}, {"runs": [], "cells": [], "allocators": []}])
def test_there_is_a_page_of_a_campaign_that_found_nothing(campaign, changes):
    assert "No run has counted anything." in words(section(cores.render(without(campaign, **changes)), "cores"))


def test_a_campaign_writes_its_page_and_one_without_a_result_does_not(campaign, tmp_path, capsys):
    path = tmp_path / "new" / "cores.html"
    assert commands.finish(without(campaign, runs=[]), None, path) == 1
    assert not path.exists()
    assert commands.finish(campaign, None, path) == 0
    assert "Many cores, simulated" in path.read_text() and f"Report: {path}\n" in capsys.readouterr().out


def test_report_writes_it_once_more(bench, campaign, tmp_path):
    done = bench("report", "--db", tmp_path / "cores.db")
    assert (done.returncode, done.stderr, done.stdout) == (0, "", f"Report: {tmp_path / 'cores.html'}\n")
    assert set(drawn((tmp_path / "cores.html").read_text())) == set(cells.PATTERNS)
    assert bench("report", "--db", tmp_path / "cores.db", "--allocators", "hmalloc", "--out", tmp_path / "h.html").returncode == 0
    assert set(drawn((tmp_path / "h.html").read_text())["ring"]) == {"hmalloc"}


def test_its_figures_are_exported(bench, campaign, tmp_path):
    done = bench("export", "--db", tmp_path / "cores.db", "--out", tmp_path / "out", "--formats", "svg,png,md")
    assert (done.returncode, done.stderr) == (0, "")
    assert {each.name for each in (tmp_path / "out").iterdir()} == {
        "tables.md", "report.png", *(f"cores-{pattern}.{format}" for pattern in cells.PATTERNS for format in ("svg", "png"))}
    assert "Simulated: ring" in (tmp_path / "out" / "cores-ring.svg").read_text()
    assert (tmp_path / "out" / "tables.md").read_text().startswith("# Many cores, simulated")


@pytest.mark.parametrize("words, path", [
    (["cores"], "bench/cores.html"), (["cores", "--report", "FOLDER/my.html"], "my.html"),
    (["cores", "--resume", "--db", "FOLDER/x.db"], "x.html"), (["resume", "--db", "FOLDER/bench/cores.db"], "bench/cores.html")])
def test_a_campaign_has_its_page_where_it_is_asked_for(tmp_path, monkeypatch, words, path):
    def run(_, db, *rest, **more):
        begin(db)
        return 1, 0

    monkeypatch.setattr(session, "begin", run)
    monkeypatch.setattr(session, "go_on", run)
    monkeypatch.setattr(participants, "everybody", lambda *_: [AllocatorRow("hmalloc", "hmalloc", "", "lib.so")])
    done = CliRunner().invoke(bench_commands.app, [word.replace("FOLDER", str(tmp_path)) for word in words],
                              obj=SimpleNamespace(state=tmp_path))
    assert done.exit_code == 0, done
    assert "Report: " in done.output and "Many cores, simulated" in (tmp_path / path).read_text()


# ---- In the report of the campaign beside it. -----------------------------------------------------------------------


@pytest.fixture
def beside(quick, tmp_path):
    """The section, and all of the report."""
    def section_of(names: str = "") -> tuple[str, str]:
        text = page.render(quick, cores.beside(tmp_path / "lab.db", names))
        return words(section(text, "cores")), text

    return section_of


def test_without_one_the_report_says_how_to_get_it(beside):
    said, text = beside()
    assert "Not simulated yet. hmalloc bench cores counts the cache lines" in said
    assert drawn(text) == {} and 'href="#cores">Many cores, simulated' in text
    assert "a simulation" not in words(section(text, "papers"))


def test_with_one_the_report_has_its_figure_date_and_command(beside, campaign):
    said, text = beside()
    assert "Many cores, simulated" in said and "Simulated, not timed." in said
    assert f"25 November 2026 {COMMAND}" in said and "Not simulated" not in said
    assert drawn(text) == drawn(cores.render(campaign))
    assert "a simulation" in words(section(text, "papers"))


def test_one_that_was_interrupted_is_not_shown(beside, tmp_path):
    begin(tmp_path / "cores.db", finished=False)
    assert "Not simulated yet." in beside()[0]
    begin(tmp_path / "cores.db", date="2026-11-26")
    begin(tmp_path / "cores.db", date="2026-11-27", finished=False)
    assert "26 November 2026" in beside()[0]


def test_one_that_found_nothing_is_said_so(beside, tmp_path):
    begin(tmp_path / "cores.db", runs=False)
    assert "Not simulated: nothing was counted" in beside()[0]


@pytest.mark.parametrize("content", [b"no database", b"SQLite format 3\0" + bytes(84)])
def test_one_that_cannot_be_read_costs_no_report(beside, tmp_path, content):
    (tmp_path / "cores.db").write_bytes(content)
    assert "Not simulated: " in beside()[0]


def test_allocators_that_are_left_out_are_left_out_there_too(beside, campaign):
    assert set(drawn(beside("hmalloc,snmalloc")[1])["ring"]) == {"hmalloc"}


def test_the_command_looks_beside_the_database(bench, campaign, tmp_path):
    fabricate(tmp_path / "lab.db", "quick", rounds=2)
    done = bench("report", "--db", tmp_path / "lab.db", "--out", tmp_path / "elsewhere" / "lab.html")
    assert done.returncode == 0, done
    assert set(drawn((tmp_path / "elsewhere" / "lab.html").read_text())) == set(cells.PATTERNS)


# ---- In a real browser. ---------------------------------------------------------------------------------------------


@pytest.fixture
def opened(browser, campaign, tmp_path):
    said, contexts = [], []

    def open(width: int = 1400, results: Results = campaign, **options):
        cores.write(results, tmp_path / "cores.html")
        contexts.append(browser.new_context(viewport={"width": width, "height": 900}, **options))
        page = contexts[-1].new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto((tmp_path / "cores.html").as_uri())
        page.evaluate("started")
        page.evaluate("for (const [plot] of plots) draw(plot)")
        return page

    yield open
    for context in contexts:
        context.close()
    assert not said


@pytest.mark.parametrize("width", [400, 1400])
def test_every_plot_is_drawn_and_nothing_is_cut(opened, width):
    page = opened(width)
    plots = page.locator(".plot")
    assert plots.count() == len(cells.PATTERNS)
    assert page.locator(".plot .scatterlayer .points path").count() >= len(CORES) * (3 * len(cells.PATTERNS) - 1)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    cut = page.evaluate("""[...document.querySelectorAll('.plot')].flatMap(plot => {
        const around = plot.getBoundingClientRect();
        return [...plot.querySelectorAll('.xtick text, .ytick text, .xtitle, .ytitle')].filter(text => {
          const box = text.getBoundingClientRect();
          return box.left < around.left - 1 || box.right > around.right + 1 || box.bottom > around.bottom + 1;
        }).map(text => text.textContent) })""")
    assert cut == []
    ticks = page.locator("#plot-cores-ring .xtick text").all_text_contents()
    assert ticks == [str(count) for count in CORES]


def test_nothing_is_a_point_on_the_bottom_line(opened):
    page = opened()
    lines = page.locator("#plot-cores-ring").evaluate(
        "plot => plot.data.map(trace => [trace.name, trace.y, trace.text, trace.line.width])")
    by_name = {name: (y, text, width) for name, y, text, width in lines}
    assert by_name["jemalloc"][:2] == ([0.001] * 3, ["0"] * 3)
    assert by_name["hmalloc"][:2] == ([0.001, 0.001, 0.02], ["0", "less than 0.001", "0.020"])
    assert by_name["hmalloc"][2] > by_name["glibc"][2]
    assert page.locator("#plot-cores-ring .ytick text").first.text_content() == "0"


def test_the_theme_is_chosen_there_too(opened):
    page = opened(color_scheme="light")
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Dark").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    page.get_by_role("button", name="Light").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == before


def test_many_numbers_of_cores_many_allocators_and_names_that_are_markup(opened, tmp_path):
    evil = '<b>"><img src=x onerror=window.hacked=1>'
    begin(tmp_path / "many.db", allocators=(evil, *(f"build{number}" for number in range(14)), "hmalloc"), counts=range(1, 18))
    page = opened(results=Results.read(tmp_path / "many.db"))
    assert page.evaluate("window.hacked") is None and page.locator("img").count() == 0
    names = page.locator("#plot-cores-own").evaluate("plot => plot.data.map(trace => trace.name)")
    assert len(names) == 16 and names[0].startswith("&lt;b&gt;"), "text, where Plotly knows markup"
    assert page.locator("#plot-cores-own .xtick text").all_text_contents() == ["1", "2", "4", "8", "16"]
    assert evil in page.locator(".legend li").all_inner_texts()


def test_the_reports_filter_is_heard_and_its_legend_names_those_who_were_simulated(show, quick, campaign, tmp_path):
    page.write(quick, tmp_path / "lab.html", cores.beside(tmp_path / "lab.db"))
    report = show("#cores", path=tmp_path / "lab.html")
    plot = report.locator("#plot-cores-own")
    report.wait_for_function("plots.get(document.getElementById('plot-cores-own')).drawn")
    assert report.locator("#cores .legend li:visible").all_inner_texts() == ["glibc", "jemalloc", "hmalloc"]
    report.get_by_label("glibc", exact=True).uncheck()
    assert plot.evaluate("plot => plot.data.map(trace => trace.name)") == ["jemalloc", "hmalloc"]
    assert report.locator("#cores .legend li:visible").all_inner_texts() == ["jemalloc", "hmalloc"]


def test_those_whom_the_report_does_not_have_look_as_everywhere(show, quick, tmp_path):
    names = ("mimalloc3", "snmalloc", "hmalloc")
    begin(tmp_path / "cores.db", allocators=names)
    page.write(quick.among(["glibc", "hmalloc"]), tmp_path / "lab.html", cores.beside(tmp_path / "lab.db"))
    report = show("#cores", path=tmp_path / "lab.html")
    report.wait_for_function("plots.get(document.getElementById('plot-cores-own')).drawn")
    drawn_as = report.locator("#plot-cores-own").evaluate(
        "plot => plot.data.map(trace => [trace.line.color, trace.marker.symbol])")
    looks = palette.looks(Results.read(tmp_path / "cores.db").allocators.values())
    assert [colour in (look.light, look.dark) and symbol == look.marker
            for (colour, symbol), look in zip(drawn_as, looks.values(), strict=True)] == [True] * len(names)
