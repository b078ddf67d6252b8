"""Campaigns: what becomes of allocators that break down, of interrupts, of noise, of a full disk."""

import re
import resource
import signal
import sqlite3
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import RELEASE
from hmalloc_lab.bench import campaign, participants, selection, statistics, store, traces, trial
from hmalloc_lab.bench.catalogue import Cell
from hmalloc_lab.bench.os_noise import OsNoise, probe, wait_for_quiet
from hmalloc_lab.bench.results import Results
from hmalloc_lab.bench.store import AllocatorRow, Run, Store
from hmalloc_lab.build_paths import BuildPaths
from hmalloc_lab.errors import Failure
from rich.console import Console

QUIET, NOISY = OsNoise(0.001, 50.0), OsNoise(0.2, 9000.0)
THREADTEST = Cell("threadtest", "local", {"size": 64, "threads": 1}, {"objects": 20_000, "rounds": 2}, limit_s=1)


class Silent:
    """Progress that nobody looks at."""

    def __init__(self) -> None:
        self.notes = []

    def note(self, text) -> None:
        self.notes.append(text)

    def stage(self, what, left_s) -> None:
        pass

    def step(self, what, left_s) -> None:
        pass


@pytest.fixture
def measure(built, tmp_path):
    """Runs a campaign, with a machine as quiet as the test wants it."""

    def run(cells, rows, rounds=1, os_noise=lambda: QUIET, environment=None) -> Results:
        path = tmp_path / "lab.db"
        with Store(path, create=True) as kept:
            number = kept.begin(trial.now(), "quick", "test", 1, rounds, environment or {}, cells, rows)
            campaign.Runner(built, kept, number, progress := Silent(), {}, os_noise).run()
        results = Results.read(path, number)
        results.notes = progress.notes
        return results

    return run


@pytest.fixture
def glibc(built):
    return participants.everybody(built, with_peers=False)[0]


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(campaign, "SETTINGS", {name: replace(each, probes=2, pause_s=0, tries=4)
                                              for name, each in campaign.SETTINGS.items()})


def given(name: str, path: Path) -> AllocatorRow:
    return AllocatorRow(name, "user", "", str(path), participants.checksum(path))


def statuses(results: Results, allocator: str) -> list[str]:
    return [run.status for run in results.campaign.runs if run.allocator == allocator]


# ---- Allocators that break down. ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name, status, reason", [
    ("crashes", store.CRASHED, "killed by SIGILL"),
    ("hangs", store.HUNG, "no end within 1 s"),
    ("refuses", store.CRASHED, "killed by SIGABRT"),
    ("no_malloc", store.NOT_LOADED, "malloc came from .*libc.so.6"),
])
def test_a_broken_allocator_is_a_row_and_the_rest_goes_on(measure, library, glibc, name, status, reason):
    results = measure([THREADTEST], [given(name, library(name)), glibc], rounds=3)
    failed = [run for run in results.failures() if run.allocator == name]
    assert [(run.status, bool(re.search(reason, run.reason))) for run in failed] == [(status, True)] * 2, failed
    assert failed[0].metrics == {}
    assert statuses(results, "glibc") == ["ok"] * 3
    assert len(results.notes) == 1 and name in results.notes[0]


def test_it_is_tried_again_in_other_cells(measure, library):
    other = Cell("threadtest", "local", {"size": 8, "threads": 1}, {"objects": 20_000, "rounds": 2})
    results = measure([THREADTEST, other], [given("crashes", library("crashes"))], rounds=3)
    assert statuses(results, "crashes") == [store.CRASHED] * 4


def test_a_workload_that_is_not_there_is_a_row(measure, glibc):
    results = measure([Cell("frobnicate", "local", {}), THREADTEST], [glibc])
    assert sorted(statuses(results, "glibc")) == [store.FAILED, store.OK]


def test_a_result_without_its_metric_has_failed(measure, glibc):
    results = measure([Cell("threadtest", "local", {"size": 64, "threads": 1}, {"objects": 1000, "rounds": 1},
                            metric="frobs")], [glibc])
    assert [run.reason for run in results.failures()] == ["its result has no frobs"]


def test_a_slowed_hmalloc_is_called_slower(measure, library, built, tmp_path):
    archive = tmp_path / "slowed.a"
    subprocess.run(["objcopy", "--redefine-sym", "malloc=quick_malloc", RELEASE / "libhmalloc.a", archive], check=True)
    slowed = library("slowed", "-Wl,--whole-archive", archive, "-Wl,--no-whole-archive")
    hmalloc = next(row for row in participants.everybody(built, with_peers=False) if row.name == "hmalloc")
    results = measure([THREADTEST], [given("slowed", slowed), hmalloc], rounds=7)
    assert statistics.ratio(results, THREADTEST, "slowed", "hmalloc").verdict == statistics.SLOWER


# ---- Rounds. --------------------------------------------------------------------------------------------------------


def test_every_allocator_runs_once_a_round_beside_the_others_in_an_order_that_varies(measure, built):
    cells = [Cell("nothing", "memory", {"size": size}, metric="rss_kb") for size in (0, 64)]
    rows = participants.everybody(built, with_peers=False)[:2]
    results = measure(cells, rows, rounds=6)
    order = [(run.round, run.cell, run.allocator) for run in results.campaign.runs]
    assert len(order) == len(set(order)) == 6 * 2 * 2
    assert [row[:2] for row in order[::2]] == [row[:2] for row in order[1::2]]
    by_round = {number: tuple(row[1:] for row in order if row[0] == number) for number in range(1, 7)}
    assert len({rows[0][0] for rows in by_round.values()}) == len({rows[0][1] for rows in by_round.values()}) == 2


def test_a_noisy_round_is_kept_marked_and_replaced(measure, glibc):
    found = iter([NOISY, NOISY, QUIET, QUIET])  # asked twice before a round counts as noisy
    results = measure([THREADTEST], [glibc], rounds=2, os_noise=lambda: next(found))
    assert [(row.number, row.noisy) for row in results.campaign.round_rows] == [(1, True), (2, False), (3, False)]
    assert [run.round for run in results.runs(THREADTEST.name, "glibc")] == [2, 3]
    assert len(results.campaign.runs) == 3


def test_a_machine_that_is_never_quiet_is_measured_twice_as_long(measure, glibc):
    results = measure([THREADTEST], [glibc], rounds=2, os_noise=lambda: NOISY)
    assert [row.noisy for row in results.campaign.round_rows] == [True] * 4
    assert len(results.runs(THREADTEST.name, "glibc")) == 4


def test_a_cell_has_no_more_rounds_than_it_wants(measure, glibc):
    once = Cell("nothing", "memory", {"size": 0}, metric="rss_kb", most_rounds=1)
    found = iter([NOISY, NOISY, QUIET, QUIET, QUIET])
    results = measure([once, THREADTEST], [glibc], rounds=3, os_noise=lambda: next(found))
    assert [run.round for run in results.campaign.runs if run.cell == once.name] == [1, 2]
    assert [run.round for run in results.runs(once.name, "glibc")] == [2]


def test_a_budget_ends_at_a_round_but_never_before_the_second(measure, glibc):
    results = measure([THREADTEST], [glibc], rounds=10, environment={campaign.BUDGET: 0})
    assert [run.round for run in results.campaign.runs] == [1, 2]
    assert results.campaign.finished and results.campaign.rounds == 2


def test_a_disturbed_run_is_repeated_and_the_least_disturbed_kept(measure, glibc, monkeypatch):
    shares = iter([1.0, 0.5, 0.9, 0.6, 0.7])  # the first is the warm-up

    def run(_, number, cell, allocator):
        return Run(number, cell.name, allocator.name, "", metrics={"ns_per_op": 1.0, "cpu_share": next(shares)})

    monkeypatch.setattr(trial.Trials, "run", run)
    results = measure([THREADTEST], [glibc])
    assert [run.metrics["cpu_share"] for run in results.campaign.runs] == [0.9]


def test_more_threads_than_cpus_are_no_disturbance(measure, glibc, monkeypatch):
    calls = []

    def run(_, number, cell, allocator):
        calls.append(1)
        return Run(number, cell.name, allocator.name, "", metrics={"ns_per_op": 1.0, "cpu_share": 0.5, "threads": campaign.CPUS + 1})

    monkeypatch.setattr(trial.Trials, "run", run)
    measure([THREADTEST], [glibc])
    assert len(calls) == 1 + 1


def test_threads_that_sleep_by_themselves_are_not_repeated_for_ever(measure, glibc, monkeypatch):
    calls = []

    def run(_, number, cell, allocator):
        calls.append(1)
        return Run(number, cell.name, allocator.name, "", metrics={"ns_per_op": 1.0, "cpu_share": 0.5})

    monkeypatch.setattr(trial.Trials, "run", run)
    measure([THREADTEST], [glibc], rounds=3)
    assert len(calls) == 1 + 4 + 1 + 1


# ---- The gap probe. -------------------------------------------------------------------------------------------------


def test_the_probe_notices_when_others_have_the_cpus(built):
    hogs = [subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"]) for _ in range(2 * campaign.CPUS)]
    try:
        time.sleep(0.1)
        found = probe(built.natives)
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
    assert found.noisy and found.lost_share > 0.2 and found.longest_gap_us > 500


def test_quiet_is_waited_for():
    found = iter([NOISY, NOISY, QUIET, NOISY])
    assert wait_for_quiet(lambda: next(found), 5, 0) == QUIET


# ---- Latencies. -----------------------------------------------------------------------------------------------------


def test_latency_cells_have_percentiles_and_histograms(measure, glibc):
    cell = Cell("threadtest", "latency", {"size": 64, "threads": 1, "latency": 1}, {"objects": 20_000, "rounds": 2},
                metric="latency_p999_ns")
    run, = measure([cell], [glibc]).campaign.runs
    assert run.status == store.OK, run.reason
    assert run.latency.keys() == {"malloc", "free"}
    for kind in ("latency", "latency_malloc", "latency_free"):
        tail = [run.metrics[f"{kind}_{part}_ns"] for part in ("p50", "p99", "p999", "p9999", "max")]
        assert tail == sorted(tail) and 0 < tail[0] < 100_000 and tail[-1] < 1e9


# ---- Interrupts. ----------------------------------------------------------------------------------------------------


def rows_of(path: Path, what: str) -> list[tuple]:
    with sqlite3.connect(path) as db:
        return db.execute(what).fetchall()


def test_ctrl_c_keeps_what_was_measured_and_resume_does_the_rest(bench, tmp_path):
    path = tmp_path / "lab.db"
    command = bench.command("quick", "--no-peers", "--allocators", "glibc,hmalloc", "--rounds", "3", "--workloads",
                            "pairs,threadtest", "--db", path)
    running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True)
    while not path.exists() or len(_runs(path)) < 5:
        assert running.poll() is None
        time.sleep(0.02)
    another = bench("resume")
    assert (another.returncode, another.stderr) \
        == (2, f"hmalloc: another hmalloc bench is measuring into {tmp_path}: one after the other\n")
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    assert f"interrupted: what was measured is in {path}; hmalloc bench resume goes on with --db {path}" in err
    assert "How far from the best" in out
    before = _runs(path)
    assert 5 <= len(before)

    done = bench("resume")
    assert done.returncode == 0, done.stderr
    after = _runs(path)
    assert after[:len(before)] == before, "what was measured is not measured again"
    assert len({row[2:] for row in after}) == len(after) == 5 * 2 * len(rows_of(path, "SELECT * FROM round"))
    assert rows_of(path, "SELECT count(*) FROM campaign WHERE finished IS NOT NULL") == [(1,)]
    done = bench("resume")
    assert (done.returncode, done.stderr) == (2, f"hmalloc: {path}: no campaign in it is unfinished\n")


def _runs(path: Path) -> list[tuple]:
    try:
        return rows_of(path, "SELECT id, started, round, cell, allocator FROM run ORDER BY id")
    except sqlite3.OperationalError:
        return []


def test_a_changed_library_is_not_gone_on_with(bench, library, tmp_path):
    mine = tmp_path / "libmine.so"
    mine.write_bytes(library("crashes").read_bytes())
    assert bench("quick", "--no-peers", "--allocators", "glibc", "--allocator", f"mine={mine}", "--rounds", "1",
                 "--workloads", "nothing").returncode == 0
    with sqlite3.connect(tmp_path / "lab.db") as db:
        db.execute("UPDATE campaign SET finished = NULL")
    with mine.open("ab") as file:
        file.write(b"changed")
    done = bench("resume")
    assert done.returncode == 2
    assert done.stderr == f"hmalloc: mine: {mine} has changed since the campaign began: it cannot go on, begin a new one\n"


# ---- Databases and disks. -------------------------------------------------------------------------------------------


def test_a_database_of_an_older_version_is_refused(bench, tmp_path):
    path = tmp_path / "lab.db"
    with Store(path, create=True):
        pass
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 0")
    for command in (["quick", "--workloads", "nothing"], ["resume"], ["show"], ["report"]):
        done = bench(*command, "--db", path)
        assert done.returncode == 2
        assert done.stderr.startswith(f"hmalloc: {path}: a database of version 0, ") and done.stderr.count("\n") == 1


def test_a_full_disk_is_one_line_and_what_was_measured_stays(bench, tmp_path):
    path = tmp_path / "lab.db"

    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    done = bench("quick", "--no-peers", "--rounds", "200", "--workloads", "nothing", preexec_fn=little_room)
    assert done.returncode == 1
    assert re.fullmatch(rf"hmalloc: {path}: .*; what was measured before is kept",
                        done.stderr.splitlines()[-1]), done.stderr
    assert "Traceback" not in done.stderr
    assert len(_runs(path)) > 10


# ---- What cannot run here. ------------------------------------------------------------------------------------------


def test_a_trace_that_cannot_be_had_leaves_out_its_cell_only(built, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(traces, "TRACES", {"nothing": ("/nowhere/program", [])})
    here = BuildPaths(built.library, tmp_path / "release" / "hmalloc-measure")
    here.workloads.mkdir(parents=True)
    (here.workloads / "nothing").touch()
    cells = [Cell("nothing", "memory", {}), Cell("frob", "local", {}), Cell("replay", "replay", {"trace": "nothing"})]
    able, _ = selection.possible(here, cells, Console())
    assert able == cells[:1]
    assert capsys.readouterr().out == ("left out: frob: it is not built\n"
                                       "left out: replay trace=nothing: there is no /nowhere/program\n")
    with pytest.raises(Failure, match="nothing is left to measure"):
        selection.possible(here, cells[1:], Console())


# ---- The command line. ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments, said", [
    (["quick", "--workloads", "frobnicate"], "no cell frobnicate; the workloads are pairs,"),
    (["quick", "--workloads", "threadtest:threads=99"], "no cell threadtest:threads=99; the workloads are"),
    (["quick", "--families", "frob"], "no family frob; there are local, large, mixed, shared, false-sharing,"),
    (["quick", "--no-peers", "--against", "frob"], "--against frob: not among those measured: glibc,"),
    (["quick", "--rounds", "0"], "bench quick: Invalid value for '--rounds'"),
    (["quick", "--resume", "--rounds", "3"], "--resume goes on with the campaign as it was begun"),
    (["frobnicate"], "bench: No such command 'frobnicate'"),
    (["list", "frobnicate"], "no profile frobnicate: quick, paper, full"),
])
def test_wrong_usage_is_one_line(bench, arguments, said):
    done = bench(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"hmalloc: {said}") and done.stderr.count("\n") == 1, done.stderr


def test_what_is_not_there_is_one_line(bench, tmp_path):
    for command in ("show", "report", "resume"):
        done = bench(command)
        assert (done.returncode, done.stderr) \
            == (2, f"hmalloc: {tmp_path}/lab.db: no such database (hmalloc bench quick makes one)\n")


def test_help_is_shown_everywhere(bench):
    for arguments in ([], ["-h"], ["quick", "--help"]):
        done = subprocess.run(bench.command(*arguments), capture_output=True, text=True, check=True)
        assert done.stdout.startswith("hmalloc bench quick|paper|full")


def test_a_quick_look_ends_with_tables_and_a_report(bench, tmp_path):
    done = bench("quick", "--no-peers", "--rounds", "1", "--workloads", "threadtest:threads=1,nothing", "--against", "glibc")
    assert done.returncode == 0, done.stderr
    assert "How far from the best" in done.stdout
    assert done.stdout.splitlines()[-1] == f"Report: {tmp_path}/lab.html"
    assert "<html" in (tmp_path / "lab.html").read_text()
    assert "Traceback" not in done.stderr
