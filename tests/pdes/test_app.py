"""What a model program says and when: options, mistakes, summary, progress, time series, Ctrl-C."""

import contextlib
import csv
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path

import pytest
from programs import BUILD, CLEAN, run

TOY = BUILD / "tests" / "pdes" / "pdes_app_program"
LONG = ("--end", "20000", "--interval", "1ms")  # and some points of progress


def toy(*words, **more):
    return run(TOY, *words, **more)


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
                   "--word TEXT a text (some)", "--flag yes or no", "--kind plain|throwing|wordy|wild|greedy|hasty|hot of run (plain)",
                   "--least NUMBER delay that it has at least (1)", "--file FILE to read --flag",
                   "--end TIME virtual time to simulate to (10)", "--lookahead TIME least delay of an event for another LP (1)"):
        assert option in words
    assert max(map(len, shown.stdout.splitlines())) <= 120


def test_options_arrive_and_the_last_of_equal_ones_counts():
    own = {"delay": 2.5, "least": 0.75, "odd": -0.5, "lps": 7, "large": 18446744073709551615, "word": "a b", "file": __file__, "kind": "plain"}
    engine = {"seed": 9, "end": 20, "lookahead": 0.5, "threads": 2, "allocator": "free-list", "queue": "heap",
              "sync": "neighbours", "generator": "philox", "ties": "hashed", "partition": "round-robin", "balance": "off"}
    said = result("--lps=3", *(f"--{name}={value}" for name, value in (own | engine).items()), "--flag")
    assert said["model_parameters"] == own | {"flag": True}
    assert {name: said[name] for name in engine} == engine and said["api"] == "free-list"


def test_the_lookahead_is_what_the_model_says_unless_the_user_does():
    assert [result(*words.split())["lookahead"] for words in ("", "--least 0.5", "--least 0.5 --lookahead 0.25")] == [1, 0.5, 0.25]
    assert result("--lookahead", "0.25", "--least", "0.5")["lookahead"] == 0.25
    assert "lookahead" in toy("--least", "0", "--threads", "2", "--oversubscribe").stderr


@pytest.mark.parametrize("time", ["3", "5000000ms", "10s", "5min", "2h"])
def test_times_have_units(time):
    assert result("--interval", time)["events"] > 0


@pytest.mark.parametrize("words, about", [
    ("--file /no/such", "--file: '/no/such' cannot be read: No such file or directory"),
    ("--file /", "--file: '/' is a folder"), ("--file=", "--file: 1 required FILE missing"),
    ("--lps abc", "--lps: 'abc' is not a whole number from 1 to 1000"),
    ("--lps 0", "--lps: '0'"), ("--lps 1001", "--lps: '1001'"), ("--lps -1", "--lps: '-1'"), ("--lps 1.5", "'1.5'"),
    ("--lps 5000000000", "'5000000000'"), ("--large -1", "'-1'"), ("--large 18446744073709551616", "--large"),
    ("--delay -1", "--delay: '-1' is not a number of at least 0"), ("--delay nan", "'nan'"), ("--delay inf", "'inf'"),
    ("--delay 1x", "'1x'"), ("--odd 4", "--odd: '4' is not a number from -1 to 3"), ("--odd 2", "--odd: 2 is even"),
    ("--kind odd", "--kind: 'odd' is not one of plain|throwing|wordy|wild|greedy|hasty|hot"), ("--queue list", "wheel|heap"),
    ("--unknown", "--unknown"), ("word", "word"), ("--seed", "--seed"), ("--end nan", "--end"), ("--end -1", "end"),
    ("--threads 0", "thread"), ("--threads -1", "--threads"), ("--threads 2 --lookahead 0", "lookahead"),
    ("--max-memory 5X", "'5X' is not a size like 512M or 2G"), ("--max-memory -5", "'-5'"), ("--max-memory M", "'M'"),
    ("--max-memory 99999999999999999G", "not a size"), ("--interval 0", "--interval"),
    ("--checkpoint-every 10x", "--checkpoint-every: '10x' is not a time like 10s"), ("--interval s", "'s' is not a time"),
    ("--interval -5s", "'-5s'"), ("--interval 500h", "'500h' is not a time like 10s, 500ms, 5min or 2h, from 0.001 to 1e+06 s"),
    ("--interval 1e400h", "'1e400h'"), ("--interval 0.5ms", "'0.5ms'"), ("--interval nans", "'nans'"),
    ("--series /no/such/folder/s.csv", "/no/such/folder/s.csv cannot be written: No such file"),
    ("--summary /no/such/folder/s.json", "--summary: /no/such/folder/s.json cannot be written: No such file"),
])
def test_what_makes_no_sense_is_one_line_and_nothing_runs(words, about):
    refused = toy(*words.split())
    assert (refused.returncode, refused.stdout) == (2, "")
    (line,) = refused.stderr.splitlines()
    assert line.startswith("toy: ") and about in line


def test_one_of_several_ranks_without_mpi_is_refused():
    done = toy(env=CLEAN | {"OMPI_COMM_WORLD_SIZE": "2"})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "toy: mpirun started this program, which is not linked with hmalloc::pdes-mpi\n"


@pytest.mark.parametrize("size", ["1024K", "1m", "1MiB", "1048576"])
def test_sizes_have_units(size):
    assert toy("--max-memory", size, "--quiet").returncode == 0
    assert "1048576 are allowed" in toy("--max-memory", size, "--kind", "greedy", "--lps", "1000", "--end", "1e6").stderr


# ---- The summary. -------------------------------------------------------------------------------------------------


def test_json_is_one_line_with_all_keys():
    said = result()
    assert set(said) >= {
        "model", "digest", "events", "seconds", "events_per_s", "ns_per_op", "ops", "end", "reached", "stopped",
        "threads", "ranks", "allocator", "queue", "sync", "generator", "partition", "balance", "blocks", "windows", "sent",
        "crossed", "dropped", "late", "blocked_share", "bytes_per_pending", "peak_bytes", "peak_pending", "vm_hwm_kb",
        "vm_peak_kb", "minor_faults", "cpu_share", "malloc_library", "api", "statistics", "model_parameters",
        "thread_activity", "waited_on", "cancelled", "ended_by_model", "parted", "emigrated", "made", "ended",
        "undelivered", "gather", "gathered", "balance_by"}
    assert said["model"] == "toy" and said["ranks"] == 1 and re.fullmatch(r"0x[0-9a-f]{16}", said["digest"])
    assert said["events"] == said["ops"] == 40 and said["dropped"] == 4 and said["events_by_type"] == {"Token": 40}
    assert said["ns_per_op"] == pytest.approx(1e9 / said["events_per_s"])
    assert said["api"] == "explicit" and "libc" in said["malloc_library"]
    assert said["statistics"] == {
        "visits": 40, "halves": 20, "times": {"count": 40, "mean": 4.5, "sum": 180, "least": 0, "most": 9},
        "nothing": {"count": 0, "mean": 0, "sum": 0, "least": None, "most": None}}
    assert said["derived"] == {"visits per time": 4}
    assert sum(thread["events"] for thread in said["thread_activity"]) == 40
    assert result("--word", b"\xff\"")["model_parameters"]["word"] == "\ufffd\""  # JSON, though that is no text


def test_the_summary_for_people():
    shown = toy("--threads", "2", "--gather", "off").stdout
    rows = dict(re.findall(r"^  (\S.*?)  +(.*)$", shown, re.MULTILINE))
    assert shown.startswith("toy: 40 events in ")
    assert rows["digest"] == result()["digest"]
    assert rows["virtual time"] == "10 of 10" and rows["visits"] == "40" and rows["visits per time"] == "4"
    assert rows["times"] == "40: mean 4.5, from 0 to 9" and rows["nothing"] == "none"
    assert "40 executed" in rows["events"] and "2 threads" in rows["how"]
    assert {"thread 0", "thread 1", "windows", "memory"} <= rows.keys()
    assert rows["windows"] == "10 of 4 events, 1 long on average"
    hint = "that is little for 2 threads: one may be faster"
    assert hint in shown and "is little" not in toy("--threads", "2", "--lps", "40").stdout + toy().stdout


def test_no_more_threads_start_than_there_are_cpus_unless_the_user_wants_them():
    def how(*words):
        shown = toy("--threads", "3", *words, preexec_fn=lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}))
        return re.search(r"how +(.*), windows", shown.stdout)[1]

    assert how() == "1 thread (3 asked for, but no more CPUs; --oversubscribe starts them)"
    assert how("--oversubscribe") == "3 threads"


def test_the_summary_for_programs_can_be_in_a_file_beside_the_one_for_people(tmp_path):
    shown = toy("--summary", tmp_path / "s.json", "--threads", "2")
    said = json.loads((tmp_path / "s.json").read_text())
    assert shown.stdout.startswith("toy: 40 events in ") and said["digest"] == result()["digest"]
    assert [len(row) for row in said["waited_on"]] == [len(said["thread_activity"])] * said["threads"]
    failed = toy("--summary", tmp_path / "f.json", "--kind", "throwing")
    assert failed.returncode == 1 and "a model's own trouble" in json.loads((tmp_path / "f.json").read_text())["error"]


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
    (link,) = delays["links"]
    assert (link["count"], link["smallest"], link["event"], link["suggested_lookahead"]) == (32, 1.299, "Token", 1.2)
    assert re.search(rf"by link +1\.299 and more, from {link['from']} to {link['to']}, 32 of Token\n", shown)
    assert "any lookahead would do" in toy("--lookahead-report", "--end", "0").stdout


def test_the_critical_path_says_how_many_threads_can_be_busy():
    shown = toy("--critical-path").stdout
    assert re.search(r"longest chain +\d+ events? to LP \d+ \(\w+\): at most \S+ threads can be busy\n", shown)
    said = result("--critical-path")
    path = said["critical_path"]
    assert 0 < path["events"] <= said["events"]
    assert path["parallelism"] == pytest.approx(said["events"] / path["events"])
    assert result("--critical-path", "--threads", "2", "--oversubscribe")["critical_path"] == path
    assert "none: nothing was executed" in toy("--critical-path", "--end", "0").stdout


@pytest.mark.parametrize("words", [[], ["--json"], ["--help"]])
def test_output_that_cannot_be_written_is_an_error(words):
    with open("/dev/full", "w") as full:
        done = toy(*words, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode != 0 and done.stderr == "toy: standard output cannot be written\n"


# ---- Runs that fail or are stopped. -------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("words, reason", [
    (["--kind", "throwing"], r"LP \d \(Place\), at time 6 on Token from LP \d: a model's own trouble"),
    (["--kind", "wordy"], r"LP \d \(Place\), at time 6 on Token from LP \d: a model's own trouble"),
    (["--kind", "wild"], r"LP \d \(Place\), at time 6 on Token from LP \d: an exception of type int"),
    (["--delay", "0.5"], "lookahead violation: .* 0.5 is below the lookahead 1")])
def test_a_failed_run_is_one_line_and_a_partial_summary(words, reason, threads):
    failed = toy(*words, "--threads", threads)
    assert failed.returncode == 1 and re.fullmatch(f"toy: {reason}\n", failed.stderr)
    assert "of 10, the run failed" in failed.stdout and "digest" not in failed.stdout
    failed = toy(*words, "--threads", threads, "--json")
    assert failed.returncode == 1 and re.fullmatch(reason, json.loads(failed.stdout)["error"])


def endless(*words) -> subprocess.Popen:
    return subprocess.Popen([TOY, "--end", "1e9", "--delay", "1e-2", "--lookahead", "1e-2", *words], env=CLEAN,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_signal_ends_the_run_with_a_partial_report(tmp_path, number, threads):
    series = tmp_path / "s.csv"
    run = endless("--series", series, "--threads", threads)
    started(run, series)
    run.send_signal(number)
    output, errors = run.communicate(timeout=300)
    assert run.returncode == 128 + number and errors == ""
    assert "stopped early" in output and re.search(r"digest +0x", output)


def until(run: subprocess.Popen, condition) -> None:
    """Waits as long as the program runs, but not for ever."""
    end = time.monotonic() + 300
    while not condition():
        assert run.poll() is None and time.monotonic() < end
        time.sleep(0.01)


def held_by(pipe: int) -> int:
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def sleeps(run: subprocess.Popen) -> bool:
    return Path(f"/proc/{run.pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


def is_pending(run: subprocess.Popen, number: int) -> bool:
    masks = re.findall(r"^S[ih][gd]Pnd:\s*(\w+)$", Path(f"/proc/{run.pid}/status").read_text(), re.MULTILINE)
    return any(int(mask, 16) >> (number - 1) & 1 for mask in masks)


def test_a_second_signal_ends_the_program(tmp_path):
    """The first cannot stop it here: the series is a pipe that nobody reads."""
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
    run = endless("--series", pipe, "--interval", "0.001")
    until(run, lambda: held_by(reader) > 0 and sleeps(run))  # it simulates, and nothing but the full pipe makes it sleep
    run.send_signal(signal.SIGINT)
    until(run, lambda: not is_pending(run, signal.SIGINT) and sleeps(run))
    run.send_signal(signal.SIGINT)
    output, _ = run.communicate(timeout=300)
    os.close(reader)
    assert run.returncode == 130 and output == ""


# ---- Checkpoints and traces. --------------------------------------------------------------------------------------


def started(run: subprocess.Popen, series) -> None:
    """Waits until it simulates."""
    until(run, lambda: series.exists() and series.read_text().count("\n") > 3)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_signal_saves_the_run_and_it_goes_on(tmp_path, number, threads):
    file, series = tmp_path / "c", tmp_path / "s.csv"
    run = endless("--series", series, "--interval", "0.01", "--threads", threads, "--checkpoint", file)
    started(run, series)
    run.send_signal(number)
    output, errors = run.communicate(timeout=300)
    assert run.returncode == 128 + number
    assert errors == f"toy: stopped and saved: --resume {file} goes on from there\n"
    assert re.search(rf"checkpoints +1, in {re.escape(str(file))}\n", output)
    # Only as far as another stop: the whole run is long.
    again = tmp_path / "again.csv"
    run = endless("--resume", file, "--checkpoint", file, "--series", again, "--json")
    started(run, again)
    run.send_signal(number)
    said = json.loads(run.communicate(timeout=300)[0])
    assert said["events"] > said["events_before"] > 0 and said["checkpoints"] == 1
    before = re.search(r"virtual time +(\S+) of", output)[1]
    assert said["reached"] >= float(before) * (1 - 1e-5)


def test_a_run_that_could_not_be_saved_when_it_was_stopped_has_failed(tmp_path):
    run = endless("--series", tmp_path / "s.csv", "--checkpoint", "/dev/full")
    started(run, tmp_path / "s.csv")
    run.terminate()
    _, errors = run.communicate(timeout=60)
    assert run.returncode == 1
    assert re.fullmatch(r"toy: not saved at time \S+: /dev/full cannot be written: No space left on device\n", errors)


def test_a_request_saves_the_run_which_goes_on(tmp_path):
    file, series = tmp_path / "c", tmp_path / "s.csv"
    run = endless("--series", series, "--checkpoint", file)
    started(run, series)
    run.send_signal(signal.SIGUSR1)
    assert re.fullmatch(rf"toy: saved at time \S+ in {re.escape(str(file))}\n", run.stderr.readline())
    assert run.poll() is None and file.exists()
    run.terminate()
    run.communicate(timeout=300)
    assert run.returncode == 143


def test_a_request_before_or_after_the_run_ends_nothing(tmp_path):
    """The program's output has to wait, so that requests come after the run too."""
    receiving, sending = os.pipe()
    fcntl.fcntl(sending, fcntl.F_SETPIPE_SZ, 4096)
    os.write(sending, b" " * 4096)
    run = subprocess.Popen([TOY, "--end", "100", "--json", "--checkpoint", tmp_path / "c"], stdout=sending, env=CLEAN)
    os.close(sending)
    with contextlib.closing(os.fdopen(receiving)) as output:
        expects_it = re.compile(r"^Sig(Ign|Cgt):.*[2367abef][0-9a-f]{2}$", re.MULTILINE)  # its bit is 0x200
        deadline = time.monotonic() + 60
        while not expects_it.search(Path(f"/proc/{run.pid}/status").read_text()):
            assert run.poll() is None and time.monotonic() < deadline
        for _ in range(300):
            run.send_signal(signal.SIGUSR1)
            time.sleep(0.002)
        assert json.loads(output.read())["events"] > 0
    assert run.wait(60) == 0


def test_a_resumed_run_comes_to_the_same(tmp_path):
    file = tmp_path / "c"
    words = ("--end", "3000", "--delay", "1.5")
    whole = result(*words, "--checkpoint", file, "--checkpoint-every", "0.1ms")
    assert whole["checkpoints"] > 0
    for how in ([], ["--threads", "2", "--oversubscribe"], ["--queue", "heap", "--sync", "neighbours"]):
        rest = result(*words, "--resume", file, *how)
        assert rest["events_before"] > 0
        for same in "digest", "events", "sent", "dropped", "statistics":
            assert rest[same] == whole[same], same


@pytest.mark.parametrize("words, about", [
    (["--lps", "5"], "is of another simulation: its lps is 4, not 5"),
    (["--word", "other"], 'is of another simulation: its word is "some", not "other"'),
    (["--seed", "2"], "is of another simulation: its seed is 1, not 2")])
def test_what_cannot_be_resumed_is_one_line(tmp_path, words, about):
    file = tmp_path / "c"
    assert result("--end", "3000", "--checkpoint", file, "--checkpoint-every", "1e-4")["checkpoints"] > 0
    refused = toy("--end", "3000", "--resume", file, *words)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert re.fullmatch(f"toy: {re.escape(str(file))} {about}.*\n", refused.stderr)


def test_a_checkpoint_that_cannot_be_written_ends_nothing():
    done = toy("--end", "3000", "--checkpoint", "/dev/full", "--checkpoint-every", "1e-4", "--quiet")
    assert done.returncode == 0
    assert re.match(r"toy: not saved at time \S+: /dev/full cannot be written: No space left on device\n", done.stderr)


def spans(trace: dict, name: str, thread: int) -> list[tuple[float, float]]:
    return sorted((event["ts"], event["ts"] + event["dur"]) for event in trace["traceEvents"]
                  if event["name"] == name and event["tid"] == thread)


@pytest.mark.parametrize("sync", ["windows", "neighbours"])
def test_a_trace_has_bursts_waits_windows_and_counters(tmp_path, sync):
    file = tmp_path / "t.json"
    said = result("--end", "500", "--threads", "2", "--oversubscribe", "--gather", "off", "--sync", sync, "--trace", file)
    trace = json.loads(file.read_text())
    events = trace["traceEvents"]
    assert said["trace_lost"] == trace["otherData"]["lost"] == 0
    assert sum(event["args"]["events"] for event in events if event["name"] == "burst") == said["events"]
    for thread in 0, 1:
        mine = sorted(spans(trace, "burst", thread) + spans(trace, "waiting", thread))
        assert len(spans(trace, "burst", thread)) > 10
        assert [1 for before, after in zip(mine, mine[1:]) if after[0] < before[1] - 0.002] == []
    assert {event["args"]["name"] for event in events if event["ph"] == "M"} == {"rank 0", "thread 0", "thread 1", "windows"}
    assert {event["name"] for event in events if event["ph"] == "C"} >= {"pending events", "memory"}
    windows = [event["args"] for event in events if event["name"] == "window"]
    if sync == "windows":
        assert len(windows) == said["windows"]
        assert all(before["from"] < before["to"] <= after["from"] for before, after in zip(windows, windows[1:]))


@pytest.mark.parametrize("how", [[], ["--threads", "2"], ["--threads", "2", "--sync", "neighbours"],
                                 ["--threads", "3", "--gather", "always"]])
def test_a_trace_says_which_lps_are_hot_and_when(tmp_path, how):
    """Place 3 sends itself each token nine times before it passes it on."""
    file = tmp_path / "t.json"
    words = ("--end", "3000", "--lps", "16", "--kind", "hot", "--oversubscribe", *how)
    said = result(*words, "--trace", file)
    courses = courses_of(file)
    hot = [re.fullmatch(r"hot (\d\d): LP (\d+) \(Place\), (\d+) events", name).groups()
           for name in courses if name.startswith("hot")]
    events = [int(lp[2]) for lp in hot]
    assert [int(lp[0]) for lp in hot] == list(range(1, 17)) and {int(lp[1]) for lp in hot} == set(range(16))
    assert hot[0][1] == "3" and events == sorted(events, reverse=True) and events[0] > 5 * events[1]
    assert sum(events) == said["events"]
    of_threads = [course for name, course in courses.items() if name.startswith("events/s of thread")]
    assert len(of_threads) == (1 if "always" in how else said["threads"])
    # The last interval is shorter, or the only one.
    until = [sum(sum(args.values()) * (after - at) / 1e6 for (at, args), (after, _) in zip(course, course[1:]))
             for course in of_threads]
    assert sum(until) <= said["events"] * 1.001
    for (at, _), (after, _) in (pair for course in courses.values() for pair in zip(course, course[1:])):
        assert round(after - at) % 4000 == 0
    assert result(*words)["digest"] == said["digest"]


def courses_of(trace: Path) -> dict:
    """Of the counters that are about LPs."""
    courses = {}
    for event in json.loads(trace.read_text())["traceEvents"]:
        if event["ph"] == "C" and event["name"] not in ("pending events", "memory"):
            courses.setdefault(event["name"], []).append((event["ts"], event["args"]))
    return courses


def test_of_many_lps_a_trace_has_the_hottest(tmp_path):
    file = tmp_path / "t.json"
    result("--end", "2000", "--lps", "400", "--trace", file)
    assert sum(name.startswith("hot") for name in courses_of(file)) == 16


def test_a_long_run_joins_the_intervals_of_its_trace(tmp_path):
    """Of 4 ms each 256 are a second; a pace makes the run longer."""
    file = tmp_path / "t.json"
    said = result("--end", "15", "--pace", "10", "--delay", "0.02", "--least", "0.02", "--trace", file)
    courses = courses_of(file)
    assert sum(int(name.split()[-2]) for name in courses if name.startswith("hot")) == said["events"] > 2000
    course = courses["events/s of thread 0"]
    assert course[1][0] - course[0][0] >= 8000 and len(course) <= 256
    until = sum(args["Place"] * (after - at) / 1e6 for (at, args), (after, _) in zip(course, course[1:]))
    assert 0.9 * said["events"] < until <= 1.001 * said["events"]


def test_a_trace_of_a_run_that_is_interrupted_is_whole(tmp_path):
    file, series = tmp_path / "t.json", tmp_path / "s.jsonl"
    run = endless("--threads", "2", "--oversubscribe", "--trace", file, "--series", series)
    started(run, series)
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=300)
    assert run.returncode == 130
    assert {"burst", "waiting", "window"} <= {event["name"] for event in json.loads(file.read_text())["traceEvents"]}


def test_a_long_trace_keeps_its_end(tmp_path):
    """A limit of 1 makes each event a burst."""
    file = tmp_path / "t.json"
    said = result("--end", "50000", "--max-simultaneous", "1", "--trace", file)
    trace = json.loads(file.read_text())
    bursts = spans(trace, "burst", 0)
    assert sum(event["ph"] == "X" and event["tid"] == 0 for event in trace["traceEvents"]) == 1 << 17
    assert 0 < said["events"] - len(bursts) <= said["trace_lost"]
    assert trace["otherData"]["lost"] == said["trace_lost"]
    whole = max(event["ts"] for event in trace["traceEvents"] if event["ph"] == "C")
    assert 0.1 * whole < bursts[0][0] < 0.9 * whole < bursts[-1][1]


def test_a_trace_that_cannot_be_written():
    refused = toy("--trace", "/no/such/folder/t")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == "toy: /no/such/folder/t cannot be written: No such file or directory\n"
    done = toy("--trace", "/dev/full", "--quiet")
    assert done.returncode == 1 and done.stderr == "toy: --trace: /dev/full could not be written to its end\n"


# ---- While it runs. -----------------------------------------------------------------------------------------------


def points_of(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def check(points: list[dict], said: dict) -> None:
    for before, after in zip(points, points[1:]):
        assert [what for what in ("wall_s", "now", "events") if before[what] > after[what]] == []
    last = points[-1]
    assert last["events"] == said["events"] == sum(last["thread_events"])
    assert last["now"] == said["reached"] and last["wall_s"] == said["seconds"]
    assert all(0 <= share <= 1 for point in points for share in point["blocked"])


def test_time_series_as_table_and_as_lines(tmp_path):
    table, lines = tmp_path / "s.csv", tmp_path / "s.jsonl"
    said = result(*LONG, "--series", table, "--threads", "2")
    rows = list(csv.DictReader(table.open()))
    assert list(rows[0]) == ["wall_s", "now", "percent", "events", "events_per_s", "window", "windows", "pending",
                             "bytes", "blocked_0", "blocked_1", "thread_events_0", "thread_events_1"]
    numbers = [{name: float(value) for name, value in row.items()} for row in rows]
    check([row | {of: [row[f"{of}_0"], row[f"{of}_1"]] for of in ("blocked", "thread_events")} for row in numbers], said)
    said = result(*LONG, "--series", lines, "--threads", "2")
    check(points_of(lines.read_text()), said)
    assert min(len(rows), len(points_of(lines.read_text()))) > 2


def test_a_run_that_is_over_at_once_has_a_point_too(tmp_path):
    said = result("--series", tmp_path / "s.jsonl", "--end", "1")
    check(points_of((tmp_path / "s.jsonl").read_text()), said)


def test_a_series_that_cannot_be_written_to_its_end_is_an_error():
    done = toy("--series", "/dev/full", "--quiet")
    assert done.returncode == 1 and done.stderr == "toy: --series: /dev/full could not be written to its end\n"


def test_progress_where_there_is_no_terminal():
    assert toy(*LONG).stderr == toy(*LONG, "--progress", "off").stderr == ""
    assert re.match(r"toy  \S+ of 2e\+04  \d+ %  \S+ .*events/s", toy(*LONG, "--progress", "on").stderr)
    done = toy(*LONG, "--progress", "json", "--json")
    check(points_of(done.stderr), json.loads(done.stdout))


def on_terminal(columns: int, *words) -> tuple[str, str]:
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 25, columns, 0, 0))
    drawn = bytearray()

    def read():  # all the time: a terminal holds 4 KB, and who draws more waits
        with contextlib.suppress(OSError):  # the other end is closed
            while piece := os.read(ours, 65536):
                drawn.extend(piece)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        done = toy(*words, capture_output=False, stdout=subprocess.PIPE, stderr=its)
    finally:
        os.close(its)
        reader.join()
        os.close(ours)
    return done.stdout, drawn.decode()


def test_the_live_line_is_drawn_over_and_erased():
    output, drawn = on_terminal(60, "--end", "1000000", "--threads", "2", "--interval", "0.01")
    lines = drawn.split("\r")
    assert "\n" not in drawn and lines[0] == "" and lines[-1] == "\x1b[K" and len(lines) > 4
    texts = [line.removesuffix("\x1b[K") for line in lines[1:-1]]
    assert max(map(len, texts)) <= 59
    assert all(re.match(r"toy  \S+ of 1e\+06  \d+ %  \S+.*events/s", text) for text in texts)
    assert output.startswith("toy: ")


def test_the_live_line_tells_of_blocking_memory_and_time_to_go():
    _, drawn = on_terminal(200, "--end", "100000", "--threads", "2", "--interval", "0.001")
    assert re.search(r"window \S+  blocked \d+ %  \S+ (B|KiB)  \S+ (s|min) to go", drawn)


@pytest.mark.parametrize("words", [["--quiet"], ["--progress", "off"]])
def test_no_live_line_on_request(words):
    assert on_terminal(80, *LONG, *words)[1] == ""
