"""Whole programs as cells: they run on the allocator that was meant, and what they print decides whether a run counts."""

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hmalloc_lab import job
from hmalloc_lab.bench import catalogue, participants, selection, statistics, store
from hmalloc_lab.bench.catalogue import apart, cells
from hmalloc_lab.bench.programs import report, runs, table
from hmalloc_lab.bench.programs.table import PROGRAMS, Program
from hmalloc_lab.bench.results import Results
from hmalloc_lab.bench.store import AllocatorRow, Campaign, Run
from hmalloc_lab.build_paths import BuildPaths
from hmalloc_lab.run import Sight

CELLS = {cell.workload: cell for cell in apart("paper")}
SLOW = ("cargo", "python")  # take seconds at their smallest; the campaign on all of them is made by hand
SERVED = ["glibc", "hmalloc"]


@pytest.fixture(scope="module")
def rows(built):
    return {row.name: row for row in participants.everybody(built, with_peers=False)}


def pretended(monkeypatch, **changes) -> None:
    """A program `echo` of the family."""
    program = Program(("/bin/sh", "-c", "echo $((1 + {size}))"), 1, "dash")
    monkeypatch.setitem(PROGRAMS, "echo", replace(program, **changes))


def cell(size: int = 1, **changes):
    return replace(CELLS["jq"], workload="echo", repeat={"size": size}, **changes)


# ---- The programs. --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in SLOW])
def test_a_program_runs_on_both_and_says_the_same(built, measure, rows, name):
    """As the laboratory runs it: for more than half a second, so that it is there when it is looked at."""
    if reason := runs.unable(built, CELLS[name]):
        pytest.skip(reason)
    results = measure([CELLS[name]], [rows[each] for each in SERVED])
    assert not results.failures(), results.failures()
    for allocator in SERVED:
        for metric in report.METRICS:
            assert results.median(CELLS[name], allocator, metric) > 0, metric


def test_the_family_is_measured_only_if_it_is_asked_for():
    planned = cells("paper") + apart("paper")
    assert not [each for each in selection.choose(planned, "", "") if runs.is_program(each)]
    assert {each.workload for each in selection.choose(planned, "", "programs")} == set(PROGRAMS)
    assert [each.name for each in selection.choose(planned, "jq", "")] == ["jq"]
    assert apart("paper") == apart("full") and not apart("quick")
    assert not [each for each in cells("paper") if runs.is_program(each)]


# ---- What does not count. -------------------------------------------------------------------------------------------


def test_another_output_is_a_failed_run(built, measure, rows, monkeypatch):
    pretended(monkeypatch, command=("/bin/sh", "-c", "sleep 0.5; echo $LD_PRELOAD"))
    results = measure([cell()], [rows["hmalloc"]])
    (failed,) = results.failures()
    assert (failed.status, failed.reason) == (store.FAILED, "its output differs from that on the system's malloc")


def test_a_file_that_it_writes_is_output_too(built, measure, rows, monkeypatch):
    pretended(monkeypatch, command=("/bin/sh", "-c", "sleep 0.5; echo $LD_PRELOAD >out"), result="out")
    (failed,) = measure([cell()], [rows["hmalloc"]]).failures()
    assert failed.reason == "its output differs from that on the system's malloc"


def test_a_process_that_escapes_the_allocator_is_noticed(built, measure, rows, monkeypatch):
    monkeypatch.setattr(runs, "_LOOK_AT_CHILDREN_S", 1)  # by then there is one, however busy the machine is
    pretended(monkeypatch, command=("/bin/sh", "-c", "LD_PRELOAD= sleep 4; echo done"))
    failed = measure([cell()], [rows["hmalloc"]]).failures()
    assert [run.status for run in failed] == [store.NOT_LOADED]
    assert failed[0].reason == "a process of it ran without the library"


def looked_at_late(monkeypatch, times: int) -> list[int]:
    """So many programs have ended before they are looked at; returns the processes that were."""
    look, seen = runs._sight, []

    def late(pid: int, library: Path) -> Sight:
        seen.append(pid)
        while len(seen) <= times and is_running(pid):
            pass
        return look(pid, library)

    monkeypatch.setattr(runs, "_sight", late)
    return seen


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_program_that_nobody_saw_is_not_said_to_be_without_the_library(built, measure, rows, monkeypatch):
    pretended(monkeypatch)
    looked_at_late(monkeypatch, 100)
    (failed,) = measure([cell()], [rows["hmalloc"]]).failures()
    assert (failed.status, failed.reason) == (store.FAILED, "it ended before its address space could be read, 4 times")


def test_a_program_that_nobody_saw_is_run_again(built, rows, monkeypatch, tmp_path):
    pretended(monkeypatch, command=("/bin/sh", "-c", "sleep 0.5; echo 1"))
    programs = runs.Programs(built, tmp_path)
    programs.measure(cell(), rows["hmalloc"])  # what is expected is known by now
    seen = looked_at_late(monkeypatch, 3)
    assert programs.measure(cell(), rows["hmalloc"])[0]["wall_s"] > 0
    assert len(seen) == 4


def test_what_has_ended_is_told_from_what_lacks_the_library(monkeypatch):
    with subprocess.Popen(["sleep", "60"]) as living:
        assert job.look_for("libc.so", living.pid) is Sight.SEEN
        monkeypatch.setattr(job, "_LOOK_FOR_S", 0.1)
        assert job.look_for("/no/such/library.so", living.pid) is Sight.ABSENT
        monkeypatch.setattr(job, "_LOOK_FOR_S", 60)
        living.kill()
        os.waitid(os.P_PID, living.pid, os.WEXITED | os.WNOWAIT)
        assert job.look_for("/no/such/library.so", living.pid) is Sight.ENDED  # at once: nobody waits for a minute
    assert job.look_for("/no/such/library.so", living.pid) is Sight.ENDED


@pytest.mark.parametrize("script, status, said", [
    ("echo no such thing >&2; exit 3", store.FAILED, "exit code 3: no such thing"),
    ("kill -SEGV $$", store.CRASHED, "killed by SIGSEGV"), ("sleep 60", store.HUNG, "no end within 3 s")])
def test_a_bad_end_is_no_result(built, measure, rows, monkeypatch, script, status, said):
    # Only with a preload: without one it has to end well, or there is nothing to compare with.
    pretended(monkeypatch, command=("/bin/sh", "-c", f"sleep 0.5; if [ -n \"$LD_PRELOAD\" ]; then {script}; fi"))
    (failed,) = measure([cell(limit_s=3 if status == store.HUNG else 30)], [rows["hmalloc"]]).failures()
    assert (failed.status, failed.reason) == (status, said)


def test_what_is_expected_is_asked_anew_of_another_program(built, measure, rows, monkeypatch):
    pretended(monkeypatch, command=("/bin/sh", "-c", "sleep 0.5; echo 1"))
    assert not measure([cell()], [rows["hmalloc"]]).failures()
    pretended(monkeypatch, command=("/bin/sh", "-c", "sleep 0.5; echo 2"))
    assert not measure([cell()], [rows["hmalloc"]]).failures()


# ---- What cannot be run. --------------------------------------------------------------------------------------------


def test_a_missing_program_is_left_out_with_its_reason(built, monkeypatch):
    pretended(monkeypatch, command=("frobnicate",), packages="frobnicator")
    assert runs.unable(built, cell()) == "frobnicate not installed (frobnicator)"
    pretended(monkeypatch, needs=("/usr/bin/frobnicate",))
    assert runs.unable(built, cell()) == "/usr/bin/frobnicate not installed (dash)"


def test_a_missing_module_is_left_out_with_its_reason(built, monkeypatch):
    pretended(monkeypatch, modules=("frobnicate",), packages="PyPI")
    assert runs.unable(built, cell()).startswith("frobnicate not installed (PyPI; hmalloc bench paper")


def test_a_program_with_a_malloc_of_its_own_is_left_out(built, monkeypatch, tmp_path):
    source = Path(__file__).parent / "programs" / "calls.c"
    own = tmp_path / "own.c"
    own.write_text("#include <stddef.h>\nvoid* malloc(size_t size) { (void)size; return 0; }\nint main(void) { return 0; }\n")
    assert source.is_file() and os.system(f"gcc -fno-builtin -rdynamic {own} -o {tmp_path}/own") == 0
    pretended(monkeypatch, command=(str(tmp_path / "own"),))
    assert runs.unable(built, cell()) == f"{tmp_path}/own brings a malloc of its own"


def test_inputs_are_the_same_bytes_each_time(built, tmp_path):
    made, few = [], replace(CELLS["perl"], repeat={"size": 300})
    for name in ("first", "second"):
        here = BuildPaths(built.library, tmp_path / name / "release" / "hmalloc-measure")
        assert runs.unable(here, few) in ("", "perl not installed (perl)")
        files = sorted((tmp_path / name / "bench" / "programs").rglob("records*"))
        made.append([file.read_bytes() for file in files if file.is_file()])
    assert len(made[0]) == 4 and made[0] == made[1]
    assert len(json.loads(made[0][1 if made[0][0][:1] != b"[" else 0])) == 300


# ---- What is said. --------------------------------------------------------------------------------------------------


def invented(family: str = "") -> Results:
    plan = [CELLS["jq"], CELLS["perl"]] + ([] if not family else [cells("paper")[0]])
    made = []
    for number, (glibc, hmalloc) in enumerate(((20.0, 11.0), (24.0, 10.0)), 1):
        for each in plan:
            for name, value in (("glibc", glibc), ("hmalloc", hmalloc)):
                metrics = dict.fromkeys((*report.METRICS, each.metric), value)
                made.append(Run(number, each.name, name, "", metrics=metrics))
    allocators = [AllocatorRow("glibc", "system", "2.36, 2022-08"), AllocatorRow("hmalloc", "hmalloc", "0.1.0")]
    return Results(Campaign(1, "2026-11-25T09:00", "", "paper", "hmalloc bench paper", 1, 2, {}, plan, allocators, [], made))


def test_the_tables_take_the_least_of_the_rounds():
    text = "\n".join(report.markdown(invented()))
    assert "| hmalloc | 1.00, 1.00 | 1.00, 1.00 | 1.00, 1.00 | 1.00, 1.00 |" in text
    assert "| glibc | 2.00, 2.00 | 2.00, 2.00 | 2.00, 2.00 | 2.00, 2.00 |" in text
    assert text.count("| jq | 20.0 +10% (2.00) | **10.0 +5%** (1.00) |") == 4
    assert not list(report.markdown(Results(replace(invented().campaign, cells=[]))))


def test_the_family_is_no_part_of_the_means_over_all_cells():
    together = statistics.family_means(invented(family="local"))
    assert together["programs"]["glibc"].cells == 2 and together["all"]["glibc"].cells == 1
    assert statistics.family_means(invented())["all"]["glibc"].cells == 2
    assert catalogue.APART == ("programs",) and table.PROGRAMS is PROGRAMS
