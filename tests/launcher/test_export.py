"""hmalloc stats and hmalloc export: the statistics of a process that nobody prepared are those that it counts itself."""

import json
import re
import subprocess
import urllib.request

import pytest
from conftest import LAUNCHER, ROOT
from heap_truth import LIBRARY, Held, environment


def test_the_document_is_the_librarys_own(held, hmalloc):
    own = json.loads(held.ask("statistics"))
    shown = hmalloc("stats", held.number, "--json")
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout) == own
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(own, json.loads((ROOT / "docs/stats.schema.json").read_text()))


def test_text_for_people(held, hmalloc):
    own = json.loads(held.ask("statistics"))
    shown = hmalloc("stats", held.number)
    found = {name: int(value) for value, name in re.findall(r"^ *(\d+) +(\w+): ", shown.stdout, re.MULTILINE)}
    assert found == {name: own[name] for name in found} and found.keys() >= {"allocated", "live_heaps", "os_calls"}
    assert max(map(len, shown.stdout.splitlines())) <= 90


def series(text):
    """{name and labels: value}, and the lines that say what they are."""
    lines = text.splitlines()
    return ({each.rpartition(" ")[0]: float(each.rpartition(" ")[2]) for each in lines if not each.startswith("#")},
            {each for each in lines if each.startswith("# TYPE ")})


def test_openmetrics_has_the_series_of_the_library(held, hmalloc, build, tmp_path):
    """The same names, labels and values as in what the library writes; the order of labels and the text of help may differ."""
    file = tmp_path / "metrics"
    other = Held([build("heap_truth.c", "heap_truth_metrics", "-pthread", "-fno-builtin")], tmp_path / "other",
                 LD_PRELOAD=str(LIBRARY), HMALLOC_SHOW_STATS="openmetrics", HMALLOC_STATS_FILE=str(file))
    outside, kinds = series(hmalloc("stats", other.number, "--openmetrics").stdout)
    other.end()
    inside, own_kinds = series(file.read_text())
    assert kinds == own_kinds
    assert {each for each in outside if "heap=" not in each} <= set(inside)
    assert {each for each in inside if "class=" not in each} <= set(outside) | {
        each for each in inside if 'heap="' in each}


def test_watched_until_it_ends(held):
    with subprocess.Popen([LAUNCHER, "stats", str(held.number), "--json", "--watch", "100ms"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, env=environment()) as watcher:
        first = json.loads(watcher.stdout.readline())
        held.ask("grow")
        while json.loads(watcher.stdout.readline())["allocated"] < first["allocated"] + 100 * 5000:
            pass
        held.end()
        _, errors = watcher.communicate(timeout=300)
        assert watcher.returncode == 0 and errors == f"hmalloc: heap_truth (process {held.number}) has ended\n"


def fetch(address, **headers):
    with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=300) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def test_a_collector_is_answered_in_the_form_that_it_asks_for(held):
    with subprocess.Popen([LAUNCHER, "export", str(held.number), "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True,
                          env=environment()) as exporter:
        try:
            said = exporter.stderr.readline()
            address = re.search(r"http://127\.0\.0\.1:\d+/metrics", said)[0]
            assert f"heap_truth (process {held.number})" in said
            kind, text = fetch(address)
            assert kind.startswith("text/plain") and "# TYPE hmalloc_allocated_bytes gauge" in text
            kind, text = fetch(address, Accept="application/openmetrics-text; version=1.0.0")
            assert kind.startswith("application/openmetrics-text") and text.endswith("# EOF\n")
            before, _ = series(text)
            held.ask("grow")
            after, _ = series(fetch(address)[1])
            name = f'hmalloc_allocated_bytes{{pid="{held.number}",program="heap_truth"}}'
            assert after[name] >= before[name] + 100 * 5000
            held.end()
            assert exporter.wait(60) == 0 and exporter.stderr.read().endswith("has ended\n")
        finally:
            exporter.kill()


@pytest.mark.parametrize("arguments, message", [
    (["stats"], "stats: which process? (hmalloc stats --help)"),
    (["export"], "export: which processes? (hmalloc export --help)"),
    (["stats", "1", "--json", "--openmetrics"], "stats: --json or --openmetrics, not both"),
    (["stats", "no-such-program"], "no-such-program: no process has this name"),
    (["stats", "1", "--watch", "often"], "--watch often: not a length of time (10s, 500ms, 2m)")])
def test_wrong_options(hmalloc, arguments, message):
    shown = hmalloc(*arguments)
    assert (shown.returncode, shown.stderr) == (2, f"hmalloc: {message}\n")


def test_addresses_that_are_none_or_taken(held, hmalloc):
    for listen in ("nowhere", "127.0.0.1:99999", "localhost:x"):
        shown = hmalloc("export", held.number, "--listen", listen)
        assert shown.returncode == 2 and shown.stderr.startswith(f"hmalloc: --listen {listen}: not an address and port")
    with subprocess.Popen([LAUNCHER, "export", str(held.number), "--listen", ":0"], stderr=subprocess.PIPE, text=True,
                          env=environment()) as exporter:
        port = re.search(r":(\d+)/metrics", exporter.stderr.readline())[1]
        shown = hmalloc("export", held.number, "--listen", f":{port}")
        assert shown.returncode == 1 and shown.stderr.startswith(f"hmalloc: --listen :{port}: ")
        exporter.kill()
