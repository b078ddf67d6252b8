"""Ranks over MPI: messages arrive whole and in their window; a rank that dies, stops, leaves or fails ends the job with
a line that says so, and one that is only busy does not.  The models give the same answer for any number of ranks."""

import json
import os
import re
import signal
import subprocess
import time
from contextlib import contextmanager

import programs
import pytest
from programs import BUILD, CLEAN, model

RANKS = BUILD / "tests" / "pdes" / "pdes_mpi_ranks"
PROGRAM = BUILD / "tests" / "pdes" / "pdes_mpi_program"


def mpirun(ranks: int) -> list[str]:
    return ["mpirun", "--bind-to", "none", "--mca", "pml", "ob1", "--mca", "btl", "self,vader", "-n", str(ranks)]


# A window's messages go to all ranks, or to those that there is something for.
BOTH_WAYS = pytest.mark.parametrize("messages", ["all", "needed"])


def environment(limit: str, messages: str) -> dict[str, str]:
    return CLEAN | {"PDES_RANK_TIMEOUT": limit, "PDES_RANK_MESSAGES": messages}


def run(ranks: int, *command, limit: str = "60", messages: str = "auto") -> subprocess.CompletedProcess:
    return programs.run(*mpirun(ranks), *command, env=environment(limit, messages), stdin=subprocess.DEVNULL)


@contextmanager
def running_for_ever(limit: str, messages: str):
    """Two ranks that exchange without end: the job, and the process of each rank."""
    job = subprocess.Popen([*mpirun(2), RANKS, "forever"], text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, env=environment(limit, messages))
    try:
        of_rank = {}
        while len(of_rank) < 2:
            line = job.stdout.readline()
            assert line, f"mpirun has ended with {job.wait()}"
            if said := re.fullmatch(r"rank (\d) is process (\d+)\n", line):  # or mpirun says something
                of_rank[int(said[1])] = int(said[2])
        yield job, of_rank
    finally:
        job.kill()
        job.wait()


@BOTH_WAYS
@pytest.mark.parametrize("ranks, windows", [(2, 200), (3, 60), (4, 60)])
def test_messages_and_votes_and_that_ranks_of_one_machine_share_its_cpus(ranks, windows, messages):
    done = run(ranks, RANKS, "check", str(windows), messages=messages)
    assert done.returncode == 0, done.stderr
    said = sorted(re.findall(r"^rank (\d) of \d: ok, (\S+) CPUs", done.stdout, re.MULTILINE))
    assert [rank for rank, _ in said] == [str(rank) for rank in range(ranks)]
    assert [float(share) for _, share in said] == pytest.approx([len(os.sched_getaffinity(0)) / ranks] * ranks, abs=0.01)


def test_a_process_alone_does_not_start_mpi():
    assert programs.run(RANKS).stdout == "no ranks, no MPI\n"
    assert run(1, RANKS).stdout.strip() == "no ranks, no MPI"


def test_the_votes_of_an_odd_number_of_ranks_meet_in_a_tree():
    done = run(9, RANKS, "check", "12", messages="needed")
    assert done.returncode == 0, done.stderr


@BOTH_WAYS
@pytest.mark.parametrize("sign, limit, said", [
    (signal.SIGKILL, "60", r"process rank 1 .*signal 9"),
    (signal.SIGSTOP, "2", r"pdes: rank 0 of 2: rank 1 gave no sign of life for 2 s \(PDES_RANK_TIMEOUT\)")])
def test_a_killed_or_stopped_rank_ends_the_job(sign, limit, said, messages):
    with running_for_ever(limit, messages) as (job, processes):
        os.kill(processes[1], sign)
        output, _ = job.communicate(timeout=300)
    assert job.returncode != 0 and re.search(said, output)


@BOTH_WAYS
def test_a_job_that_stands_still_as_a_whole_goes_on(messages):
    """As on a laptop that sleeps: nobody was silent while nobody listened."""
    with running_for_ever("6", messages) as (job, processes):
        for rank, sign, seconds in ((1, signal.SIGSTOP, 0.4), (0, signal.SIGSTOP, 8), (0, signal.SIGCONT, 0.4),
                                    (1, signal.SIGCONT, 1)):
            os.kill(processes[rank], sign)
            time.sleep(seconds)
        assert job.poll() is None, job.stdout.read()
        for process in processes.values():
            os.kill(process, 0)


@BOTH_WAYS
@pytest.mark.parametrize("ranks, how, limit, said", [
    (2, "stop", "2", "0 of 2: rank 1 gave no sign of life for 2 s .*"),  # at the very end
    (3, "leave", "60", "[01] of 3: rank 2 ended before the simulation did"),
    (3, "throw", "60", "[01] of 3: rank 2 ended before the simulation did"),
    (2, "abort", "60", "1 of 2: no more of this"),
    (2, "check", "soon", ".*PDES_RANK_TIMEOUT is 'soon', not a number of seconds.*")])
def test_a_rank_that_fails_ends_the_job_with_a_line(ranks, how, limit, said, messages):
    done = run(ranks, RANKS, how, limit=limit, messages=messages)
    assert done.returncode != 0
    assert re.search(f"^(pdes: rank |mpi_ranks: ){said}$", done.stderr, re.MULTILINE)


@BOTH_WAYS
def test_a_busy_rank_is_waited_for(messages):
    done = run(3, RANKS, "busy", "12", limit="5", messages=messages)
    assert done.returncode == 0, done.stderr


def test_all_write_as_the_first_rank_was_told():
    """As on several machines: mpirun does not hand the environment to others."""
    def rank(messages):
        return "env", f"PDES_RANK_MESSAGES={messages}", RANKS, "check", "30"

    done = run(1, *rank("needed"), ":", "-n", "1", *rank("all"))
    assert done.returncode == 0, done.stderr


def test_messages_for_nobody_known_are_refused():
    done = run(2, RANKS, messages="some")
    assert done.returncode != 0
    assert "mpi_ranks: PDES_RANK_MESSAGES of the first rank is not auto, all or needed\n" in done.stderr


@pytest.mark.parametrize("words", [
    "phold --lps 1000 --end 10",
    "phold --lps 200 --events-per-lp 20 --end 10 --payload 8:0.6,128:0.3,1024:0.1",
    "phold --lps 3 --end 50",  # fewer LPs than threads
    "pcs --width 16 --height 16 --end 200 --portables 12 --channels 4 --reserve 1 --move 300",
    "airport --width 8 --height 8 --end 50"])
def test_any_number_of_ranks_gives_the_same_answer(words):
    name, *options = words.split()
    command = [model(name), *options, "--json"]
    alone = json.loads(programs.run(*command).stdout)
    for ranks, how, messages in [(2, "--threads=1", "all"), (2, "--threads=2", "needed"), (2, "--partition=random", "needed"),
                                 (4, "--queue=heap", "all"), (4, "--threads=2", "needed"), (9, "--threads=1", "needed")]:
        done = run(ranks, *command, how, messages=messages)
        assert done.returncode == 0 and "pdes" not in done.stderr, done.stderr  # mpirun may have something to say
        together = json.loads(done.stdout)
        assert together["ranks"] == ranks
        for same in "digest", "events", "sent", "dropped", "statistics":
            assert together[same] == alone[same], f"{same} with {ranks} ranks, {how}"


@pytest.mark.skipif(not programs.has_metis(), reason="METIS is missing")
def test_ranks_get_the_lps_as_the_first_divides_their_graph():
    command = [model("pcs"), "--width", "16", "--height", "16", "--end", "200", "--json"]
    alone = json.loads(programs.run(*command).stdout)
    for ranks, threads in (2, 1), (3, 2):
        done = run(ranks, *command, "--partition=graph", f"--threads={threads}")
        assert done.returncode == 0, done.stderr
        together = json.loads(done.stdout)
        assert together["digest"] == alone["digest"] and together["partition"] == "graph"


@pytest.mark.skipif(not programs.has_metis(), reason="METIS is missing")
def test_ranks_without_a_graph_end_with_one_line():
    done = run(2, model("phold"), "--partition", "graph")
    assert done.returncode == 2
    assert done.stderr.count("phold: there is no graph to divide among threads") == 1
    assert "pdes: rank" not in done.stderr


@pytest.mark.parametrize("words", [
    "jackson --stations 30 --end 100 --warm-up 0", "closed --stations 30 --customers 90 --end 200 --warm-up 9",
    "epidemic --people 300 --end 60", "pandemic --width 5 --height 4 --end 10", "network --width 5 --height 4 --end 150",
    "network --shape dragonfly --end 60 --warm-up 9", "traffic --cells 500 --segments 30 --cars 150 --end 50 --warm-up 9",
    "arq --wires 20 --precision 0.1 --batch 10", "colonies --colonies 30 --room 40 --end 30"])
def test_the_library_gives_the_same_answer_on_two_ranks_and_three(words):
    name, *options = words.split()
    command = [model(name), *options, "--json"]
    alone = json.loads(programs.run(*command).stdout)
    for ranks, how, messages in (2, "--balance=ranks", "all"), (3, "--balance=threads", "needed"):
        done = run(ranks, *command, how, messages=messages)
        assert done.returncode == 0, done.stderr
        together = json.loads(done.stdout)
        assert together["ranks"] == ranks
        for same in "digest", "events", "statistics", "derived":
            assert together[same] == alone[same], f"{same} with {ranks} ranks"


def test_lps_move_to_other_ranks_and_change_no_answer():
    command = [model("phold"), *"--lps 2000 --end 60 --hot 10 --hot-turn 60 --state 100 --json --balance ranks".split()]
    alone = json.loads(programs.run(*command).stdout)
    assert alone["emigrated"] == 0
    for ranks, threads, messages in (2, 1, "all"), (3, 2, "needed"), (4, 1, "needed"):
        done = run(ranks, *command, f"--threads={threads}", messages=messages)
        assert done.returncode == 0, done.stderr
        together = json.loads(done.stdout)
        for same in "digest", "events", "sent", "dropped", "statistics":
            assert together[same] == alone[same], f"{same} with {ranks} ranks of {threads} threads"
        assert together["parted"] >= together["emigrated"] > 100


@pytest.mark.parametrize("words", [
    "phold --lps 400 --end 100 --payload 8:0.6,128:0.3,1024:0.1 --state 100",
    "pcs --width 16 --height 16 --end 2000 --portables 12 --channels 4 --reserve 1 --move 300",
    "airport --width 8 --height 8 --end 500"])
def test_a_run_goes_on_with_another_number_of_ranks(tmp_path, words):
    file = str(tmp_path / "c")
    name, *options = words.split()
    command = [model(name), *options, "--json"]
    saving = ["--checkpoint", file, "--checkpoint-every", "1e-3"]
    whole = json.loads(run(2, *command, *saving).stdout)
    assert whole["checkpoints"] > 0
    again = [run(3, *command, "--resume", file, "--threads", "1"), run(2, *command, "--resume", file, "--threads", "2"),
             programs.run(*command, "--resume", file)]
    for done in again:
        assert done.returncode == 0, done.stderr
        rest = json.loads(done.stdout)
        for same in "digest", "events", "sent", "dropped", "statistics":
            assert rest[same] == whole[same], same


def test_what_the_first_rank_cannot_open_ends_all_with_one_line():
    done = run(2, model("phold"), "--resume", "/no/such/file")
    assert done.returncode == 2
    assert "phold: /no/such/file cannot be read: No such file or directory\n" in done.stderr
    assert "pdes: rank" not in done.stderr


def test_a_trace_has_all_ranks(tmp_path):
    file = tmp_path / "t.json"
    done = run(2, model("phold"), "--lps", "100", "--end", "5", "--trace", str(file), "--quiet")
    assert done.returncode == 0, done.stderr
    events = json.loads(file.read_text())["traceEvents"]
    assert {event["pid"] for event in events if event["ph"] == "X"} == {0, 1}


def test_an_error_of_one_rank_ends_all_with_its_line():
    """The limit is reached somewhere; no rank is left behind, and none is ended from outside."""
    done = run(2, model("phold"), "--lps", "1000", "--end", "5", "--max-memory", "20K")
    assert done.returncode == 1
    assert "memory limit reached" in done.stderr
    assert "pdes: rank" not in done.stderr


@pytest.mark.parametrize("kind, said", [("wordy", "a model's own trouble"), ("wild", "an exception of type int")])
def test_what_a_handler_throws_is_a_line_whatever_it_is(kind, said):
    done = run(2, PROGRAM, "--kind", kind, "--lps", "1")
    assert done.returncode == 1
    assert f"toy: LP 0 (Place), at time 6 on Token from LP 0: {said}\n" in done.stderr
    assert "pdes: rank" not in done.stderr
