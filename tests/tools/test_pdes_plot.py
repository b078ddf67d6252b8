"""hmalloc bench plot: the time series of a simulation, made up here, as pictures."""

import json
import re

import pytest
from browsing import browser  # noqa: F401
from hmalloc_lab.errors import Failure
from hmalloc_lab.page import simulation

THREADS = 3


def point(at: int, window: float = 0.1) -> dict:
    return {"wall_s": at * 0.1, "now": at * 2.5, "events_per_s": 10_000.0 + at, "window": window * at, "pending": 8192 - at,
            "bytes": 500_000 + at, "blocked": [0.1 * thread for thread in range(THREADS)],
            "thread_events": [at * 300] * THREADS}


POINTS = [point(at) for at in range(20)]


def flat(point: dict) -> dict:
    """A column for each thread."""
    found = {}
    for name, value in point.items():
        found |= {f"{name}_{i}": one for i, one in enumerate(value)} if isinstance(value, list) else {name: value}
    return found


@pytest.fixture
def write(tmp_path):
    def written(points, name="run.jsonl"):
        lines = [json.dumps(each) for each in points]
        if name.endswith(".csv"):
            lines = [",".join(map(str, row)) for row in (flat(points[0]), *(flat(each).values() for each in points))]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        return tmp_path / name

    return written


@pytest.mark.parametrize("name", ["run.jsonl", "run.csv"])
def test_both_formats_say_the_same(write, name):
    series = simulation.read(write(POINTS, name))
    assert series.numbers["bytes"] == [500_000 + at for at in range(20)]
    assert series.of_threads["blocked"] == [pytest.approx([0.1 * thread] * 20) for thread in range(THREADS)]
    assert series.of_threads["thread_events"][0] == [at * 300 for at in range(20)]


def test_there_are_rate_utilisation_windows_and_memory(write):
    figure = simulation.figure(simulation.read(write(POINTS)))
    titles = [note["text"] for note in figure["layout"]["annotations"]]
    assert [title.split(":")[0] for title in titles] == [
        "Events executed", "Utilisation", "Length of the last window", "Memory of pending events and queues",
        "Pending events"]
    drawn = {trace["name"]: trace for trace in figure["traces"]}
    assert drawn["thread 2"]["y"] == pytest.approx([80] * 20)
    assert drawn["rate"]["y"] == [10_000 + at for at in range(20)]
    assert drawn["memory"]["x"] == pytest.approx([0.1 * at for at in range(20)])
    assert drawn["window"]["customdata"] == [2.5 * at for at in range(20)]


def test_without_windows_there_is_no_picture_of_them(write):
    figure = simulation.figure(simulation.read(write([point(at, window=0) for at in range(5)])))
    assert "window" not in {trace["name"] for trace in figure["traces"]}


@pytest.mark.parametrize("name", ["run.jsonl", "run.csv"])
def test_a_run_that_still_writes_can_be_looked_at(write, name):
    path = write(POINTS, name)
    path.write_text(path.read_text()[:-15])
    assert len(simulation.read(path).numbers["now"]) == 19


@pytest.mark.parametrize("text, reason", [
    ("", "it has no points"), ("wall_s,now\n", "it has no points"), ("a,b\n1,2\n", "no wall_s, now"),
    ("a,b\n1,x\n", "could not convert"), ('{"wall_s": 1}\n{"w\n', "not the series"), ("a,b\n1\n", "not the series"),
    ('{"wall_s":1,"now":1,"events_per_s":1,"window":1,"pending":1,"bytes":1}\n', "no blocked"),
    ("[1]\n", "it has no points"),
    ("\0\1", "not the series")])
def test_other_files_are_refused_in_one_line(tmp_path, text, reason):
    path = tmp_path / "other.csv"
    path.write_text(text)
    with pytest.raises(Failure, match=re.escape(str(path)) + f".*{reason}"):
        simulation.read(path)


def test_the_page_needs_nothing_else(bench, write, tmp_path):
    path = write(POINTS, "run.csv")
    done = bench("plot", path, "-o", tmp_path / "new" / "run.html")
    assert (done.returncode, done.stderr, done.stdout) == (0, "", f"Plots: {tmp_path}/new/run.html\n")
    text = (tmp_path / "new" / "run.html").read_text()
    assert not re.search(r"<(script|link|img)[^>]+(src|href)=", text)
    assert "Utilisation" in text and "<h1>run</h1>" in text and len(text.encode()) < 2_000_000


SUMMARY = {"model": "toy", "events": 1234, "seconds": 2.0, "events_per_s": 617.0, "reached": 5.0, "end": 50.0, "stopped": False,
           "ended_by_model": True, "digest": "0x12", "sync": "windows", "queue": "wheel", "allocator": "hmalloc", "seed": 1,
           "peak_bytes": 5_000_000, "peak_pending": 8192, "ranks": 1, "derived": {"theory": 4.5},
           "thread_activity": [{"events": 1000, "working_s": 1.9, "blocked_s": 0.1},
                               {"events": 234, "working_s": 0.5, "blocked_s": 1.5}],
           "waited_on": [[0.0, 0.1], [1.5, 0.0]],
           "statistics": {"<b>": 3, "took": {"mean": 2.5, "quantiles": {"0.5": 2.0}}, "none": {"least": None}}}


def test_who_waited_for_whom_is_a_sentence_and_a_table():
    first, second = simulation.threads_of(SUMMARY)
    assert (first.works, first.waits_on, first.blocked_others_s) == (pytest.approx(0.95), pytest.approx([0, 0.05]), 1.5)
    assert second.waits_on == pytest.approx([0.75, 0])
    assert simulation.bottleneck(SUMMARY) == (
        "Of all waiting, 94 % was for thread 0. The threads took 2 s; with the same work for each and no waiting they would have "
        "taken 1.2 s.")
    assert simulation.bottleneck(SUMMARY | {"ranks": 2}) == ""
    assert simulation.bottleneck(SUMMARY | {"windows": 2000, "gathered": 1500}) == (
        "One thread executed 1,500 of 2,000 windows for all, and the others slept meanwhile.")
    assert simulation.bottleneck(SUMMARY | {"windows": 2000, "gathered": 900}).startswith("Of all waiting")
    alone = SUMMARY | {"thread_activity": SUMMARY["thread_activity"][:1], "waited_on": [[0.0]]}
    assert simulation.bottleneck(alone) == ""


def test_the_page_says_what_the_run_came_to(bench, write, tmp_path):
    (tmp_path / "s.json").write_text(json.dumps(SUMMARY))
    done = bench("plot", write(POINTS), "--summary", tmp_path / "s.json", "-o", tmp_path / "run.html")
    assert (done.returncode, done.stderr) == (0, "")
    text = (tmp_path / "run.html").read_text()
    for said in ("Of all waiting, 94 %", "1,234 in 2 s, 617 a second", "ended by the model", "&lt;b&gt;", "quantiles 0.5: 2",
                 "75 %", "least none", "theory", "5 MB at most"):
        assert said in text, said


def test_the_rate_of_a_last_moment_is_not_drawn(write):
    stub = point(20) | {"wall_s": 1.901, "events_per_s": 1e9}
    drawn = {trace["name"]: trace["y"] for trace in simulation.figure(simulation.read(write([*POINTS, stub])))["traces"]}
    assert drawn["rate"][-2:] == [10_019, None] and drawn["thread 2"][-1] is None
    assert drawn["memory"][-1] == 500_020 and drawn["pending"][-1] == 8172


def test_windows_that_are_all_as_long_are_no_chart(write):
    steady = simulation.figure(simulation.read(write([each | {"window": 2.5 + 1e-12 * at} for at, each in enumerate(POINTS)])))
    assert "Length of the last window" not in [note["text"] for note in steady["layout"]["annotations"]]


def test_the_page_tells_the_model_s_parameters_and_the_lookahead():
    rows = dict(simulation.facts(SUMMARY | {"model_parameters": {"lps": 8192, "remote": 0.25}, "lookahead": 0.1, "windows": 1234}))
    assert (rows["parameters"], rows["lookahead"]) == ("lps 8,192, remote 0.25", "0.1; 1,234 windows")
    assert not {"parameters", "lookahead"} & dict(simulation.facts(SUMMARY)).keys()


def test_a_failed_run_has_no_digest():
    rows = dict(simulation.facts(SUMMARY | {"error": "out of memory"}))
    assert rows["failed"] == "out of memory" and "digest" not in rows


def test_the_longest_chain_is_told_if_it_was_measured():
    path = {"events": 1234, "parallelism": 12.34, "last": "LP 7 (Shop)"}
    rows = dict(simulation.facts(SUMMARY | {"critical_path": path}))
    assert rows["longest chain"] == "1,234 events to LP 7 (Shop): at most 12.3 threads can be busy"
    none = {"events": 0, "parallelism": 0, "last": ""}
    assert dict(simulation.facts(SUMMARY | {"critical_path": none}))["longest chain"] == "none: nothing was executed"
    assert "longest chain" not in dict(simulation.facts(SUMMARY))


def test_a_long_run_is_thinned_out(write):
    series = simulation.read(write([point(at) for at in range(10_001)]))
    assert len(series.numbers["now"]) < 4001 and series.numbers["now"][-1] == 25_000


@pytest.mark.parametrize("value, said", [(617, "617"), (999.7, "1 k"), (12_300, "12.3 k"), (999_600, "1 M"), (None, "0"), (0.5, "0.5")])
def test_numbers_are_short(value, said):
    assert simulation.short(value) == said


@pytest.mark.parametrize("text, reason", [("{", "not the summary"), ("[1]", "no model"), ('{"model": "x"}', "no events"), ("\0", "not the"),
    (json.dumps(SUMMARY | {"thread_activity": 3}), "not the summary"), (json.dumps(SUMMARY | {"waited_on": [[0, None]]}), "not the")])
def test_another_summary_is_refused_in_one_line(tmp_path, text, reason):
    (tmp_path / "s.json").write_text(text)
    with pytest.raises(Failure, match=f"s.json: .*{reason}"):
        simulation.read_summary(tmp_path / "s.json")


def test_the_page_with_a_summary_can_be_read_at_two_widths(browser, write, tmp_path):
    simulation.write(simulation.read(write(POINTS)), "a run", tmp_path / "run.html", SUMMARY)
    for width in (1200, 400):
        page = browser.new_page(viewport={"width": width, "height": 800})
        page.goto((tmp_path / "run.html").as_uri())
        page.evaluate("started")
        assert page.get_by_text("Of all waiting, 94 %").is_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.close()


def test_the_page_draws_every_chart(browser, write, tmp_path):
    simulation.write(simulation.read(write([*POINTS, {**point(20), "window": None}])), "a <run>", tmp_path / "run.html")
    page, said = browser.new_page(), []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto((tmp_path / "run.html").as_uri())
    page.evaluate("started")
    assert page.locator("#plot .subplot path.js-line").count() == 4 + THREADS
    assert "Pending events" in page.get_by_role("img", name="a <run> over time").get_attribute("aria-label")
    assert not said
