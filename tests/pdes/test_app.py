"""What a model program says and when: options, mistakes, summary, progress, time series, Ctrl-C."""

import csv
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

import pytest

BUILD = Path(os.environ.get("HMALLOC_BUILD", Path(__file__).resolve().parents[2] / "build" / "release"))
TOY = BUILD / "tests" / "pdes" / "pdes_app_program"
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "HMALLOC_"))}
ENDLESS = ("--end", "1e9", "--delay", "1e-2", "--lookahead", "1e-2")


def toy(*words, **more):
    return subprocess.run([TOY, *words], env=CLEAN, capture_output=True, text=True, timeout=60, **more)


def result(*words) -> dict:
    done = toy("--json", *words)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    (line,) = done.stdout.splitlines()
    return json.loads(line)


# ---- Options. -----------------------------------------------------------------------------------------------------


def test_help_has_the_model_s_own_options_first_with_defaults():
    shown = toy("--help")
    assert shown.returncode == 0 and shown.stderr == ""
    assert re.findall(r"^(\S.*):$", shown.stdout, re.MULTILINE) == [
        "The model's own", "Simulation", "How it is run (changes no result)", "Output"]
    words = " ".join(shown.stdout.split())
    for option in ("--delay NUMBER of a token (1)", "--lps N places (4)", "--large N a number (5000000000)",
                   "--word TEXT a text (some)", "--flag yes or no", "--kind plain|throwing|greedy|hasty of run (plain)",
                   "--end TIME virtual time to simulate to (10)", "--lookahead TIME"):
        assert option in words
    assert max(map(len, shown.stdout.splitlines())) <= 120


def test_options_arrive():
    said = result("--delay", "2.5", "--odd=-0.5", "--lps=7", "--large", "18446744073709551615", "--word", "a b",
                  "--flag", "--kind", "plain", "--seed", "9", "--end", "20", "--lookahead", "0.5", "--threads", "2",
                  "--allocator", "free-list", "--queue", "heap", "--sync", "neighbours", "--generator", "philox",
                  "--ties", "hashed", "--partition", "round-robin")
    assert said["model_parameters"] == {
        "delay": 2.5, "odd": -0.5, "lps": 7, "large": 18446744073709551615, "word": "a b", "flag": True, "kind": "plain"}
    assert {key: said[key] for key in ("seed", "end", "lookahead", "threads", "allocator", "api", "queue", "sync",
                                       "generator", "ties", "partition", "ranks")} == {
        "seed": 9, "end": 20, "lookahead": 0.5, "threads": 2, "allocator": "free-list", "api": "free-list",
        "queue": "heap", "sync": "neighbours", "generator": "philox", "ties": "hashed", "partition": "round-robin",
        "ranks": 1}


def test_the_last_of_equal_options_counts():
    assert result("--lps", "3", "--lps", "5")["model_parameters"]["lps"] == 5


@pytest.mark.parametrize("words, about", [
    ("--lps abc", "--lps: 'abc' is not a whole number from 1 to 1000"),
    ("--lps 0", "--lps: '0'"), ("--lps 1001", "--lps: '1001'"), ("--lps -1", "--lps: '-1'"), ("--lps 1.5", "'1.5'"),
    ("--lps 5000000000", "'5000000000'"), ("--large -1", "'-1'"), ("--large 18446744073709551616", "--large"),
    ("--delay -1", "--delay: '-1' is not a number of at least 0"), ("--delay nan", "'nan'"), ("--delay inf", "'inf'"),
    ("--delay 1x", "'1x'"), ("--odd 4", "--odd: '4' is not a number from -1 to 3"), ("--odd 2", "--odd: 2 is even"),
    ("--kind odd", "--kind: 'odd' is not one of plain|throwing|greedy|hasty"), ("--queue list", "wheel|heap"),
    ("--unknown", "--unknown"), ("word", "word"), ("--seed", "--seed"), ("--end nan", "--end"), ("--end -1", "end"),
    ("--threads 0", "thread"), ("--threads -1", "--threads"), ("--threads 2 --lookahead 0", "lookahead"),
    ("--max-memory 5X", "'5X' is not a size like 512M or 2G"), ("--max-memory -5", "'-5'"), ("--max-memory M", "'M'"),
    ("--max-memory 99999999999999999G", "not a size"), ("--interval 0", "--interval"),
    ("--series /no/such/folder/s.csv", "/no/such/folder/s.csv cannot be written: No such file"),
])
def test_what_makes_no_sense_is_one_line_and_nothing_runs(words, about):
    refused = toy(*words.split())
    assert (refused.returncode, refused.stdout) == (2, "")
    (line,) = refused.stderr.splitlines()
    assert line.startswith("toy: ") and about in line


@pytest.mark.parametrize("size", ["1024K", "1m", "1MiB", "1048576"])
def test_sizes_have_units(size):
    assert toy("--max-memory", size, "--quiet").returncode == 0
    assert "1048576 are allowed" in toy("--max-memory", size, "--kind", "greedy", "--lps", "1000", "--end", "1e6").stderr


# ---- The summary. -------------------------------------------------------------------------------------------------


def test_json_is_one_line_with_all_keys():
    said = result()
    assert set(said) >= {
        "model", "digest", "events", "seconds", "events_per_s", "ns_per_op", "ops", "end", "reached", "stopped",
        "threads", "ranks", "allocator", "queue", "sync", "generator", "partition", "blocks", "windows", "sent",
        "crossed", "dropped", "late", "blocked_share", "bytes_per_pending", "peak_bytes", "peak_pending", "vm_hwm_kb",
        "vm_peak_kb", "minor_faults", "cpu_share", "malloc_library", "api", "statistics", "model_parameters",
        "thread_activity"}
    assert said["model"] == "toy" and re.fullmatch(r"0x[0-9a-f]{16}", said["digest"])
    assert said["events"] == said["ops"] == 40 and said["dropped"] == 4 and said["events_by_type"] == {"Token": 40}
    assert said["ns_per_op"] == pytest.approx(1e9 / said["events_per_s"])
    assert said["api"] == "explicit" and "libc" in said["malloc_library"]
    assert said["statistics"] == {
        "visits": 40, "halves": 20, "times": {"count": 40, "mean": 4.5, "sum": 180, "least": 0, "most": 9},
        "nothing": {"count": 0, "mean": 0, "sum": 0, "least": None, "most": None}}
    assert said["derived"] == {"visits per time": 4}
    assert sum(thread["events"] for thread in said["thread_activity"]) == 40


def test_words_that_are_no_text_are_still_json():
    done = subprocess.run([TOY, "--json", "--word", b"\xff\""], env=CLEAN, capture_output=True, timeout=60)
    assert json.loads(done.stdout)["model_parameters"]["word"] == "\ufffd\""


def test_the_summary_for_people():
    shown = toy("--threads", "2").stdout
    rows = dict(re.findall(r"^  (\S.*?)  +(.*)$", shown, re.MULTILINE))
    assert shown.startswith("toy: 40 events in ")
    assert rows["digest"] == result()["digest"]
    assert rows["virtual time"] == "10 of 10" and rows["visits"] == "40" and rows["visits per time"] == "4"
    assert rows["times"] == "40: mean 4.5, from 0 to 9" and rows["nothing"] == "none"
    assert "40 executed" in rows["events"] and "2 threads" in rows["how"]
    assert {"thread 0", "thread 1", "windows", "memory"} <= rows.keys()


def test_quiet_says_nothing():
    done = toy("--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_lookahead_report_suggests_and_warns():
    shown = toy("--lookahead-report", "--delay", "1.299").stdout
    assert re.search(r"smallest +1\.299\n", shown)
    assert "Try --lookahead 1.2." in shown and "the model must guarantee it" in shown
    assert "There is no lookahead" in toy("--lookahead-report", "--kind", "hasty").stdout
    delays = result("--lookahead-report", "--delay", "1.299")["delays"]
    assert (delays["count"], delays["smallest"], delays["suggested_lookahead"]) == (32, 1.299, 1.2)
    assert "any lookahead would do" in toy("--lookahead-report", "--end", "0").stdout


def test_output_that_cannot_be_written_is_an_error():
    with open("/dev/full", "w") as full:
        for words in ([], ["--json"], ["--help"]):
            done = subprocess.run([TOY, *words], env=CLEAN, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
            assert done.returncode != 0 and done.stderr == "toy: standard output cannot be written\n"


# ---- Runs that fail or are stopped. -------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_failed_run_is_one_line_and_a_partial_summary(threads):
    failed = toy("--kind", "throwing", "--threads", threads)
    assert failed.returncode == 1 and failed.stderr == "toy: a model's own trouble\n"
    assert "of 10, the run failed" in failed.stdout and "digest" not in failed.stdout
    failed = toy("--kind", "throwing", "--threads", threads, "--json")
    assert failed.returncode == 1 and json.loads(failed.stdout)["error"] == "a model's own trouble"


def test_one_of_several_ranks_without_mpi_is_refused():
    done = subprocess.run([TOY], env=CLEAN | {"OMPI_COMM_WORLD_SIZE": "2"}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == "toy: mpirun started this program, which is not linked with hmalloc::pdes-mpi\n"


def test_a_lookahead_violation_fails_the_run():
    failed = toy("--delay", "0.5")
    assert failed.returncode == 1
    (line,) = failed.stderr.splitlines()
    assert line.startswith("toy: ") and "0.5" in line


def started(*words, **more) -> subprocess.Popen:
    """A run without end, once its time series says that it is running."""
    return subprocess.Popen([TOY, *ENDLESS, *words], env=CLEAN, stdout=subprocess.PIPE, text=True,
                            **({"stderr": subprocess.PIPE} | more))


def wait_for_points(series: Path, points: int = 3) -> None:
    for _ in range(600):
        if series.exists() and series.read_text().count("\n") > points:
            return
        time.sleep(0.05)
    pytest.fail("no time series")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_signal_ends_the_run_with_a_partial_report(tmp_path, number, threads):
    series = tmp_path / "s.csv"
    run = started("--series", series, "--threads", threads)
    wait_for_points(series)
    run.send_signal(number)
    output, errors = run.communicate(timeout=30)
    assert run.returncode == 128 + number and errors == ""
    assert "stopped early" in output and re.search(r"digest +0x", output)


def test_a_second_signal_ends_the_program(tmp_path):
    """The first cannot stop it here: the series is a pipe that nobody reads."""
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    run = started("--series", pipe, "--interval", "0.001")
    time.sleep(2)  # more than enough to fill a pipe and to stand still
    run.send_signal(signal.SIGINT)
    time.sleep(0.2)
    assert run.poll() is None
    run.send_signal(signal.SIGINT)
    output, _ = run.communicate(timeout=30)
    os.close(reader)
    assert run.returncode == 130 and output == ""


# ---- While it runs. -----------------------------------------------------------------------------------------------


def points_of(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def check(points: list[dict], said: dict) -> None:
    for before, after in zip(points, points[1:]):
        assert [what for what in ("wall_s", "now", "events") if before[what] > after[what]] == []
    last = points[-1]
    assert last["events"] == said["events"] == sum(last["thread_events"])
    assert last["now"] == said["reached"] and last["wall_s"] == said["seconds"]


def test_time_series_as_table_and_as_lines(tmp_path):
    for name in ("s.csv", "s.jsonl"):
        path = tmp_path / name
        said = result("--series", path, "--interval", "0.001", "--threads", "2", "--end", "20000")
        if name == "s.csv":
            rows = list(csv.DictReader(path.open()))
            assert list(rows[0]) == ["wall_s", "now", "percent", "events", "events_per_s", "window", "windows", "pending",
                                     "bytes", "blocked_0", "blocked_1", "thread_events_0", "thread_events_1"]
            points = [{"wall_s": float(row["wall_s"]), "now": float(row["now"]), "events": int(row["events"]),
                       "thread_events": [int(row["thread_events_0"]), int(row["thread_events_1"])],
                       "blocked": [float(row["blocked_0"]), float(row["blocked_1"])]} for row in rows]
        else:
            points = points_of(path.read_text())
        assert len(points) > 2
        check(points, said)
        assert all(0 <= share <= 1 for point in points for share in point["blocked"])


def test_a_run_that_is_over_at_once_has_a_point_too(tmp_path):
    said = result("--series", tmp_path / "s.jsonl", "--end", "1")
    check(points_of((tmp_path / "s.jsonl").read_text()), said)


def test_a_series_that_cannot_be_written_to_its_end_is_an_error():
    done = toy("--series", "/dev/full", "--quiet")
    assert done.returncode == 1 and done.stderr == "toy: --series: /dev/full could not be written to its end\n"


def test_progress_where_there_is_no_terminal():
    assert toy("--end", "20000").stderr == ""
    assert toy("--end", "20000", "--progress", "off").stderr == ""
    assert re.match(r"toy  \S+ of 2e\+04  \d+ %  \S+ .*events/s", toy("--end", "20000", "--progress", "on").stderr)
    done = toy("--end", "20000", "--progress", "json", "--json", "--interval", "0.001")
    check(points_of(done.stderr), json.loads(done.stdout))


def on_terminal(columns: int, *words) -> tuple[str, str]:
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 25, columns, 0, 0))
    done = subprocess.run([TOY, *words], env=CLEAN, stdout=subprocess.PIPE, stderr=its, text=True, timeout=60)
    os.close(its)
    drawn = b""
    try:
        while piece := os.read(ours, 65536):
            drawn += piece
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    return done.stdout, drawn.decode()


def test_the_live_line_is_drawn_over_and_erased():
    output, drawn = on_terminal(60, "--end", "100000", "--threads", "2", "--interval", "0.01")
    lines = drawn.split("\r")
    assert "\n" not in drawn and lines[0] == "" and lines[-1] == "\x1b[K" and len(lines) > 4
    texts = [line.removesuffix("\x1b[K") for line in lines[1:-1]]
    assert max(map(len, texts)) <= 59
    assert all(re.match(r"toy  \S+ of 1e\+05  \d+ %  \S+.*events/s", text) for text in texts)
    assert output.startswith("toy: ")


def test_the_live_line_tells_of_blocking_memory_and_time_to_go():
    _, drawn = on_terminal(200, "--end", "100000", "--threads", "2", "--interval", "0.001")
    assert re.search(r"window \S+  blocked \d+ %  \S+ (B|KiB)  \S+ (s|min) to go", drawn)


@pytest.mark.parametrize("words", [["--quiet"], ["--progress", "off"]])
def test_no_live_line_on_request(words):
    assert on_terminal(80, "--end", "20000", *words)[1] == ""
