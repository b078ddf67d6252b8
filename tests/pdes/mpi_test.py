"""Ranks over MPI: messages arrive whole and in their window; a rank that dies, stops, leaves or fails ends the job with
a line that says so, and one that is only busy does not.  The models give the same answer for any number of ranks."""

import itertools
import json
import os
import re
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("HMALLOC_BUILD", ROOT / "build" / "release"))
PROGRAM = str(BUILD / "tests" / "pdes" / "pdes_mpi_ranks")
MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none", "--mca", "pml", "ob1", "--mca", "btl", "self,vader"]
ENVIRONMENT = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
ENVIRONMENT.pop("HMALLOC_BUILD", None)  # no option of hmalloc, which would say so


def run(ranks: int, *command: str | Path, limit: str = "60", within: float = 120) -> subprocess.CompletedProcess:
    return subprocess.run([*MPIRUN, "-n", str(ranks), *command], env=ENVIRONMENT | {"PDES_RANK_TIMEOUT": limit},
                          stdin=subprocess.DEVNULL, timeout=within, capture_output=True, text=True)


MODELS = {
    "phold": ["--lps", "1000", "--end", "10"],
    "phold of mixed sizes": ["--lps", "200", "--events-per-lp", "20", "--end", "10",
                             "--payload", "8:0.6,128:0.3,1024:0.1"],
    "phold, fewer LPs than threads": ["--lps", "3", "--end", "50"],
    "pcs": ["--width", "16", "--height", "16", "--end", "200"],
    "airport": ["--width", "8", "--height", "8", "--end", "50"],
}


@contextmanager
def running_for_ever(limit: str):
    """Two ranks that exchange without end: the job, and the process of each rank."""
    job = subprocess.Popen([*MPIRUN, "-n", "2", PROGRAM, "forever"], text=True, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           env=ENVIRONMENT | {"PDES_RANK_TIMEOUT": limit})
    try:
        says = (re.fullmatch(r"rank (\d) is process (\d+)", line.strip()) for line in job.stdout)  # or mpirun says it
        of_rank = dict(itertools.islice((rank.groups() for rank in says if rank), 2))
        yield job, [int(of_rank[rank]) for rank in "01"]
    finally:
        job.kill()
        job.wait()


@pytest.mark.parametrize("ranks, windows", [(2, 200), (3, 60), (4, 60)])
def test_messages_and_votes(ranks, windows):
    done = run(ranks, PROGRAM, "check", str(windows))
    assert done.returncode == 0, done.stderr
    assert sorted(re.findall(r"^rank (\d) of \d: ok", done.stdout, re.MULTILINE)) == [str(r) for r in range(ranks)]


def test_ranks_of_one_machine_share_its_cpus():
    allowed = len(os.sched_getaffinity(0))
    for ranks in (2, 4):
        shares = [float(share) for share in re.findall(r"ok, (\S+) CPUs", run(ranks, PROGRAM, "check", "1").stdout)]
        assert shares == pytest.approx([allowed / ranks] * ranks, abs=0.01)


def test_a_process_alone_does_not_start_mpi():
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("OMPI_", "PMIX_", "PMI_"))}
    assert subprocess.run([PROGRAM], env=plain, capture_output=True, text=True).stdout == "no ranks, no MPI\n"
    assert run(1, PROGRAM).stdout.strip() == "no ranks, no MPI"


def test_a_killed_rank_ends_the_job():
    with running_for_ever(limit="60") as (job, processes):
        os.kill(processes[1], signal.SIGKILL)
        output, _ = job.communicate(timeout=60)
    assert job.returncode != 0
    assert re.search(r"process rank 1 .*signal 9", output)


def test_a_stopped_rank_ends_the_job():
    with running_for_ever(limit="2") as (job, processes):
        os.kill(processes[1], signal.SIGSTOP)
        output, _ = job.communicate(timeout=60)
    assert job.returncode != 0
    assert "pdes: rank 0 of 2: rank 1 gave no sign of life for 2 s (PDES_RANK_TIMEOUT)" in output


def test_a_job_that_stands_still_as_a_whole_goes_on():
    """As on a laptop that sleeps: nobody was silent while nobody listened."""
    with running_for_ever(limit="2") as (job, processes):
        for process, sign, seconds in ((1, signal.SIGSTOP, 0.4), (0, signal.SIGSTOP, 3), (0, signal.SIGCONT, 0.4),
                                       (1, signal.SIGCONT, 1)):
            os.kill(processes[process], sign)
            time.sleep(seconds)
        assert job.poll() is None, job.stdout.read()
        for process in processes:
            os.kill(process, 0)


def test_a_rank_that_stops_at_the_very_end_ends_the_job():
    done = run(2, PROGRAM, "stop", limit="2", within=60)
    assert done.returncode != 0
    assert "pdes: rank 0 of 2: rank 1 gave no sign of life for 2 s" in done.stderr


@pytest.mark.parametrize("how", ["leave", "throw"])
def test_a_rank_that_ends_too_early_ends_the_job(how):
    done = run(3, PROGRAM, how, within=60)
    assert done.returncode != 0
    assert re.search(r"^pdes: rank [01] of 3: rank 2 ended before the simulation did$", done.stderr, re.MULTILINE)


def test_abort_says_why():
    done = run(2, PROGRAM, "abort", within=60)
    assert done.returncode != 0
    assert "pdes: rank 1 of 2: no more of this\n" in done.stderr


def test_a_busy_rank_is_waited_for():
    done = run(3, PROGRAM, "busy", "6", limit="2")
    assert done.returncode == 0, done.stderr


def test_a_limit_that_is_no_number():
    done = run(2, PROGRAM, "check", "1", limit="soon")
    assert done.returncode != 0
    assert "PDES_RANK_TIMEOUT is 'soon', not a number of seconds" in done.stderr


def model_program(name: str) -> Path:
    program = BUILD / "pdes" / f"hmalloc-pdes-{name}"
    if not program.exists():
        pytest.skip("no model programs in this build")
    return program


def summary(done: subprocess.CompletedProcess) -> dict:
    assert done.returncode == 0, done.stderr
    assert "pdes" not in done.stderr  # mpirun may have something to say
    return json.loads(done.stdout)


@pytest.mark.parametrize("model", MODELS)
def test_any_number_of_ranks_gives_the_same_answer(model):
    command = [model_program(re.match("[a-z]+", model)[0]), *MODELS[model], "--json"]
    alone = summary(subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True))
    assert alone["events"] > 0
    for ranks, threads in (2, 1), (2, 2), (4, 1), (4, 2):
        together = summary(run(ranks, *command, "--threads", str(threads)))
        assert together["ranks"] == ranks
        for same in "digest", "events", "sent", "dropped", "statistics":
            assert together[same] == alone[same], f"{same} with {ranks} ranks of {threads} threads"


def test_an_error_of_one_rank_ends_all_with_its_line():
    """The limit is reached somewhere; no rank is left behind, and none is ended from outside."""
    done = run(2, model_program("phold"), "--lps", "1000", "--end", "5", "--max-memory", "20K", within=60)
    assert done.returncode == 1
    assert "memory limit reached" in done.stderr
    assert "pdes: rank" not in done.stderr
