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
from conftest import QUIET, RELEASE
from hmalloc_lab.bench import campaign, participants, selection, statistics, store, traces, trial
from hmalloc_lab.bench.catalogue import Cell
from hmalloc_lab.bench.engine.cells import model
from hmalloc_lab.bench.os_noise import OsNoise, probe, wait_for_quiet
from hmalloc_lab.bench.store import AllocatorRow, Run
from hmalloc_lab.build_paths import BuildPaths
from hmalloc_lab.errors import Failure
from rich.console import Console

NOISY = OsNoise(0.2, 9000.0)
THREADTEST = Cell("threadtest", "local", {"size": 64, "threads": 1}, {"objects": 20_000, "rounds": 2}, limit_s=1)
SMALLER = replace(THREADTEST, point={"size": 8, "threads": 1})


def named(name: str, path: Path) -> AllocatorRow:
    return AllocatorRow(name, "user", "", str(path), participants.checksum(path))


# ---- Allocators that break down. ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name, status, reason", [
    ("crashes", store.CRASHED, "killed by SIGILL"),
    ("hangs", store.HUNG, "no end within 1 s"),
    ("refuses", store.CRASHED, "killed by SIGABRT"),
    ("no_malloc", store.NOT_LOADED, "malloc came from .*libc.so.6"),
])
def test_a_broken_allocator_is_a_row_and_the_rest_goes_on(measure, library, glibc, name, status, reason):
    """It is tried twice in each cell."""
    results = measure([THREADTEST, SMALLER], [named(name, library(name)), glibc], rounds=3)
    failed = [run for run in results.failures() if run.allocator == name]
    assert [(run.status, bool(re.search(reason, run.reason))) for run in failed] == [(status, True)] * 4, failed
    assert failed[0].metrics == {}
    assert [run.status for run in results.campaign.runs if run.allocator == "glibc"] == ["ok"] * 6
    assert len(results.notes) == 2 and all(name in note for note in results.notes)


def test_what_gives_no_result_has_failed_and_the_rest_goes_on(measure, glibc):
    without_metric = replace(SMALLER, metric="frobs")
    results = measure([Cell("frobnicate", "local", {}), without_metric, THREADTEST], [glibc])
    failed = {run.cell: (run.status, run.reason) for run in results.failures()}
    assert failed.keys() == {"frobnicate", without_metric.name} and failed["frobnicate"][0] == store.FAILED
    assert failed[without_metric.name] == (store.FAILED, "its result has no frobs")


def test_a_slowed_hmalloc_is_called_slower(measure, library, built, tmp_path):
    archive = tmp_path / "slowed.a"
    subprocess.run(["objcopy", "--redefine-sym", "malloc=quick_malloc", RELEASE / "libhmalloc.a", archive], check=True)
    slowed = library("slowed", "-Wl,--whole-archive", archive, "-Wl,--no-whole-archive")
    hmalloc = next(row for row in participants.everybody(built, with_peers=False) if row.name == "hmalloc")
    results = measure([THREADTEST], [named("slowed", slowed), hmalloc], rounds=7)
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


@pytest.mark.parametrize("findings, noisy, count", [  # asked twice before a round counts as noisy
    pytest.param([NOISY, NOISY, QUIET, QUIET], [True, False, False], [2, 3], id="replaced"),
    pytest.param([NOISY] * 8, [True] * 4, [1, 2, 3, 4], id="at most as many again")])
def test_a_noisy_round_is_kept_marked_and_replaced(measure, glibc, findings, noisy, count):
    found = iter(findings)
    results = measure([THREADTEST], [glibc], rounds=2, os_noise=lambda: next(found))
    assert [(row.number, row.noisy) for row in results.campaign.round_rows] == list(enumerate(noisy, 1))
    assert [run.round for run in results.campaign.runs] == list(range(1, len(noisy) + 1))
    assert [run.round for run in results.runs(THREADTEST.name, "glibc")] == count


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


@pytest.mark.parametrize("shares, threads, rounds, made, kept", [  # the first is the warm-up
    pytest.param([1.0, 0.5, 0.9, 0.6, 0.7], 1, 1, 5, [0.9], id="the least disturbed is kept"),
    pytest.param([0.5] * 9, campaign.CPUS + 1, 1, 2, [0.5], id="more threads than CPUs are no disturbance"),
    pytest.param([0.5] * 9, 1, 3, 1 + 4 + 1 + 1, [0.5] * 3, id="threads that always sleep are not repeated for ever")])
def test_a_disturbed_run_is_repeated(measure, glibc, monkeypatch, shares, threads, rounds, made, kept):
    left = list(shares)

    def run(_, number, cell, allocator):
        metrics = {"ns_per_op": 1.0, "threads": threads, "cpu_share": left.pop(0)}
        return Run(number, cell.name, allocator.name, "", metrics=metrics)

    monkeypatch.setattr(trial.Trials, "run", run)
    results = measure([THREADTEST], [glibc], rounds)
    assert [run.metrics["cpu_share"] for run in results.campaign.runs] == kept
    assert len(shares) - len(left) == made


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


def test_latency_cells_have_percentiles_and_histograms(measure, glibc):
    cell = Cell("threadtest", "latency", {"size": 64, "threads": 1, "latency": 1}, {"objects": 20_000, "rounds": 2},
                metric="latency_p999_ns")
    run, = measure([cell], [glibc]).campaign.runs
    assert run.status == store.OK, run.reason
    assert run.latency.keys() == {"malloc", "free"}
    for kind in ("latency", "latency_malloc", "latency_free"):
        tail = [run.metrics[f"{kind}_{part}_ns"] for part in ("p50", "p99", "p999", "p9999", "max")]
        assert tail == sorted(tail) and 0 < tail[0] < 100_000 and tail[-1] < 60e9


# ---- Interrupts. ----------------------------------------------------------------------------------------------------


def rows_of(path: Path, what: str) -> list[tuple]:
    with sqlite3.connect(path) as db:
        return db.execute(what).fetchall()


def runs_of(path: Path) -> list[tuple]:
    try:
        return rows_of(path, "SELECT id, started, round, cell, allocator FROM run ORDER BY id")
    except sqlite3.OperationalError:
        return []


def test_ctrl_c_keeps_what_was_measured_and_resume_does_the_rest(bench, tmp_path):
    path = tmp_path / "lab.db"
    command = bench.command("quick", "--no-peers", "--allocators", "glibc,hmalloc", "--rounds", "3", "--workloads",
                            "pairs,threadtest", "--db", path)
    running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True)
    while not path.exists() or len(runs_of(path)) < 5:
        assert running.poll() is None
        time.sleep(0.02)
    another = bench("resume")
    assert (another.returncode, another.stderr) \
        == (2, f"hmalloc: another hmalloc bench is measuring into {tmp_path}: one after the other\n")
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=300)
    assert running.returncode == 130, err
    assert f"interrupted: what was measured is in {path}; hmalloc bench resume goes on with --db {path}" in err
    assert "How far from the best" in out
    before = runs_of(path)

    done = bench("resume")
    assert done.returncode == 0, done.stderr
    after = runs_of(path)
    assert after[:len(before)] == before, "what was measured is not measured again"
    assert len({row[2:] for row in after}) == len(after) == 5 * 2 * len(rows_of(path, "SELECT * FROM round"))
    assert rows_of(path, "SELECT count(*) FROM campaign WHERE finished IS NOT NULL") == [(1,)]
    done = bench("resume")
    assert (done.returncode, done.stderr) == (2, f"hmalloc: {path}: no campaign in it is unfinished\n")


def test_a_changed_library_is_not_gone_on_with(bench, library, tmp_path):
    mine = tmp_path / "libmine.so"
    mine.write_bytes(library("crashes").read_bytes())
    assert bench("quick", "--no-peers", "--allocators", "glibc", "--allocator", f"mine={mine}", "--rounds", "1",
                 "--workloads", "nothing").returncode == 0
    rows_of(tmp_path / "lab.db", "UPDATE campaign SET finished = NULL")
    with mine.open("ab") as file:
        file.write(b"changed")
    done = bench("resume")
    assert (done.returncode, done.stderr) \
        == (2, f"hmalloc: mine: {mine} has changed since the campaign began: it cannot go on, begin a new one\n")


def test_a_full_disk_is_one_line_and_what_was_measured_stays(bench, tmp_path):
    path = tmp_path / "lab.db"

    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    done = bench("quick", "--no-peers", "--rounds", "200", "--workloads", "nothing", preexec_fn=little_room)
    assert done.returncode == 1
    assert re.fullmatch(rf"hmalloc: {path}: .*; what was measured before is kept",
                        done.stderr.splitlines()[-1]), done.stderr
    assert "Traceback" not in done.stderr
    assert len(store.load(path).runs) > 10


def test_what_cannot_be_measured_here_is_left_out_by_name(built, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(traces, "TRACES", {"nothing": ("/nowhere/program", [])})
    monkeypatch.setenv("PATH", "/nowhere")
    here = BuildPaths(built.library, tmp_path / "release" / "hmalloc-measure")
    for program in (here.workloads / "nothing", here.natives / "pdes" / "hmalloc-pdes-phold"):
        program.parent.mkdir(parents=True)
        program.touch()
    cells = [Cell("nothing", "memory", {}), Cell("frob", "local", {}), model("pcs"), model("B", ranks=2),
             Cell("db_bench", "servers", {}), Cell("replay", "replay", {"trace": "nothing"})]
    able, _ = selection.possible(here, cells, Console())
    assert able == cells[:1]
    assert capsys.readouterr().out.splitlines() == [f"left out: {line}" for line in (
        "frob: it is not built", "pcs: it is not built", "phold: mpirun is not installed",
        "db_bench: db_bench not installed (rocksdb-tools)", "replay trace=nothing: there is no /nowhere/program")]
    with pytest.raises(Failure, match="nothing is left to measure"):
        selection.possible(here, cells[1:], Console())


# ---- The command line. ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments, said", [
    (["quick", "--workloads", "frobnicate"], "no cell frobnicate; the workloads are pairs,"),
    (["quick", "--workloads", "threadtest:threads=99"], "no cell threadtest:threads=99; the workloads are"),
    (["quick", "--families", "frob"], "no family frob; there are local, large, mixed, shared, false-sharing,"),
    (["quick", "--no-peers", "--allocators", "frob"], "no allocator frob here; there are glibc, hmalloc,"),
    (["quick", "--no-peers", "--against", "frob"], "--against frob: not among those measured: glibc,"),
    (["quick", "--rounds", "0"], "bench quick: Invalid value for '--rounds'"),
    (["quick", "--resume", "--rounds", "3"], "--resume goes on with the campaign as it was begun"),
    (["quick", "--resume", "--baselines"], "--resume goes on with the campaign as it was begun"),
    (["frobnicate"], "bench: No such command 'frobnicate'"),
    (["list", "frobnicate"], "no profile frobnicate: quick, paper, full"),
    *(([command], "{folder}/lab.db: no such database (hmalloc bench quick makes one)")
      for command in ("show", "report", "resume")),
    (["plot", "{folder}/run.csv"], "{folder}/run.csv: No such file or directory"),
], ids=lambda each: " ".join(each) if isinstance(each, list) else "")
def test_wrong_usage_is_one_line(bench, tmp_path, arguments, said):
    done = bench(*(word.format(folder=tmp_path) for word in arguments))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"hmalloc: {said.format(folder=tmp_path)}") and done.stderr.count("\n") == 1, done.stderr


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
