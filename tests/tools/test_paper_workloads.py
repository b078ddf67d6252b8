"""What single workloads of the papers promise beyond a whole result: the shape of their work, by the recorder and by
their own figures."""

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from test_workloads import PROGRAMS, measure

TRACE = PROGRAMS.parent / "hmalloc-trace"


@pytest.fixture
def record(tmp_path):
    """Runs a workload under the recorder: its result, and what it asked of malloc."""

    def recorded(program: str) -> tuple[dict, dict]:
        name, *arguments = program.split()
        done = subprocess.run([TRACE, "record", "-o", tmp_path / "trace", "--", PROGRAMS / name, *arguments],
                              capture_output=True, text=True, timeout=300, check=True)
        info = subprocess.run([TRACE, "info", "--json", tmp_path / "trace"], capture_output=True, text=True, check=True)
        return json.loads(done.stdout.splitlines()[0]), json.loads(info.stdout)

    return recorded


def shares(info: dict) -> dict[int, float]:
    """Upper bound of a bucket of sizes -> share of the allocations."""
    return {size: count / info["mallocs"] for size, count in info["sizes"]}


def few(threads: int) -> int:
    """What a workload and the threads library ask for besides its operations: tables, threads."""
    return 20 + 10 * threads


# ---- linux-workers --------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("mode, processes", [("threads", 1), ("processes", 3)])
def test_workers_are_threads_or_processes(mode, processes):
    result = measure(f"linux-workers --mode {mode} --threads 3 --pairs 20000")
    assert result["processes"] == processes
    assert result["ops"] == 3 * 20_000
    assert 0 < result["worker_s_mean"] <= result["seconds"]
    assert 0 < result["worker_s_stddev"] < result["seconds"]


def test_a_single_worker_deviates_from_nobody():
    result = measure("linux-workers --threads 1 --pairs 1000")
    assert (result["worker_s_mean"], result["worker_s_stddev"]) == (pytest.approx(result["seconds"], abs=1e-6), 0)


def test_a_worker_process_that_dies_ends_the_run():
    command = [PROGRAMS / "linux-workers", "--mode", "processes", "--threads", "3", "--pairs", "4000000000"]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: len(children_of(parent.pid)) == 3)
        children = children_of(parent.pid)
        os.kill(children[1], signal.SIGKILL)
        output, error = parent.communicate(timeout=300)
    finally:
        parent.kill()
    assert (parent.returncode, output, error) == (1, "", "linux-workers: a worker process died\n")
    for child in children:
        wait_for(lambda child=child: has_ended(child))


def children_of(process: int) -> list[int]:
    return list(map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split()))


def has_ended(process: int) -> bool:
    try:
        return re.search(r"^State:\s+Z", Path(f"/proc/{process}/status").read_text(), re.M) is not None
    except OSError:
        return True


def wait_for(condition) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until


# ---- linux-successors -----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("threads, rounds, predicted", [(1, 1, 142.7), (3, 4, 410.0), (7, 8, 968.8)])
def test_faults_beside_the_predictor_of_the_paper(threads, rounds, predicted):
    result = measure(f"linux-successors --threads {threads} --rounds {rounds}")
    assert result["predicted_faults"] == pytest.approx(predicted)
    pages = threads * 10_000 * (40 + 8) / 4096  # objects and pointers
    assert pages < result["faults_since_start"] < 3 * pages + 20 * threads * rounds
    assert result["minor_faults"] > result["faults_since_start"] + 50  # loading the program and its libraries


def test_successors_replace_half_of_what_they_inherit(record):
    threads, rounds, objects = 2, 6, 2000
    result, info = record(f"linux-successors --threads {threads} --rounds {rounds} --objects {objects}")
    assert result["ops"] == pytest.approx(threads * rounds * objects / 2, rel=0.05)
    assert info["threads"] == 1 + threads * rounds
    assert 0 <= info["mallocs"] - (result["ops"] + threads * objects) <= few(threads * rounds)
    # A thread's freed objects are never its own: it replaces each at most once.
    assert 0 <= info["cross_thread_frees"] - result["ops"] <= few(threads * rounds)


# ---- linux-false-sharing --------------------------------------------------------------------------------------------

def test_objects_share_lines_unless_aligned_or_of_one_thread():
    packed, aligned = (measure(f"linux-false-sharing --threads 4 --writes 800 --aligned {each}") for each in (0, 1))
    assert {3, 8, 16, 24, 32, 40, 48, 52} <= {size for size, _ in packed["series"]}
    assert 5 < packed["shared_lines"] <= len(packed["series"])  # glibc's smallest chunks are half a line
    assert aligned["shared_lines"] == 0
    assert packed["ops"] == 4 * 800 * len(packed["series"])
    mean = sum(cost for _, cost in packed["series"]) / len(packed["series"])
    assert packed["ns_per_op"] == pytest.approx(mean, rel=1e-3)
    assert measure("linux-false-sharing --threads 1 --writes 800")["shared_lines"] == 0


# ---- ar-random, vvmalloc --------------------------------------------------------------------------------------------

@pytest.mark.parametrize("threads", [1, 4])
def test_ar_random_divides_its_steps_over_the_threads(record, threads):
    result, info = record(f"ar-random --threads {threads} --steps 40000")
    assert result["ops"] == pytest.approx(20_000, rel=0.1)
    assert 0 <= info["mallocs"] - result["ops"] <= few(threads)
    assert info["cross_thread_frees"] <= few(threads)
    assert info["mean_size"] == pytest.approx(516, rel=0.05)
    assert all(shares(info)[size] == pytest.approx(size / 2048, rel=0.2) for size in (256, 512, 1024))


# smallest, largest: bounds of buckets.  small: the share of 32 bytes and less.
@pytest.mark.parametrize("workload, calls, smallest, largest, small, mean", [
    (1, 128_000, 4, 128, 0.94, 24), (2, 80_000, 4096, 16384, 0, 7680), (3, 80_000, 4, 32768, 0.24, 2500)])
def test_vvmalloc_plays_the_calls_of_the_paper(record, workload, calls, smallest, largest, small, mean):
    result, info = record(f"vvmalloc --workload {workload} --threads 2 --repeats 10")
    assert result["ops"] == 2 * 10 * calls / 2
    assert 0 <= info["mallocs"] - result["ops"] <= few(2)
    assert info["cross_thread_frees"] <= few(2)
    inside = {size: share for size, share in shares(info).items() if smallest <= size <= largest}
    assert sum(inside.values()) > 0.999 and max(inside) == largest
    assert sum(share for size, share in inside.items() if size <= 32) == pytest.approx(small, abs=0.01)
    assert info["mean_size"] == pytest.approx(mean, rel=0.05)


@pytest.mark.parametrize("threads", [1, 3, 16])
def test_unequal_deals_the_same_traces_to_any_number_of_threads(record, threads):
    calls = [5748, 87830, 41080, 115380, 20547, 95276, 89623, 50583, 32540, 127912, 67012, 94828, *[80000] * 4]
    result, info = record(f"unequal --threads {threads} --repeats 2")
    assert result["ops"] == 2 * sum(number // 2 for number in calls)
    # Before it begins it draws them.
    assert 0 <= info["mallocs"] - result["ops"] <= few(threads) + 16 * 300
    assert max(info["never_freed"], info["cross_thread_frees"]) <= few(threads)
    # Nodes of 40 bytes are nearly half of it, the text's strings a quarter.
    assert shares(info)[64] == pytest.approx(0.47, abs=0.02) and shares(info)[32] == pytest.approx(0.25, abs=0.02)
    assert max(size for size, share in shares(info).items() if share > 0.001) == 32768


def test_unequal_adds_up_what_its_threads_took_and_ask_for():
    alone, dealt = (measure(f"unequal --threads {threads} --repeats 10") for threads in (1, 16))
    assert alone["thread_ns_per_op"] == pytest.approx(alone["ns_per_op"], rel=0.05)
    assert dealt["ns_per_op"] < dealt["thread_ns_per_op"] < 16.2 * dealt["ns_per_op"]
    # The largest: a thousand blocks of 3 to 12 KB.
    assert alone["payload_kb"] == pytest.approx(1000 * 7.5, rel=0.05)
    assert 2 * alone["payload_kb"] < dealt["payload_kb"] < 16 * alone["payload_kb"]
    assert dealt["vm_hwm_kb"] < 8 * dealt["payload_kb"]


# ---- barnes-hut -----------------------------------------------------------------------------------------------------

def test_barnes_hut_keeps_the_energy():
    # A ball of 500 bodies over two time units, in which a body crosses it: without pull, or a wrong one, it would
    # have lost itself or fallen together by then.
    result = measure("barnes-hut --bodies 500 --steps 200 --threads 2")
    assert result["energy_start"] == pytest.approx(-0.3, abs=0.02)
    assert result["energy_end"] == pytest.approx(result["energy_start"], rel=0.01)


def test_barnes_hut_computes_the_same_with_any_number_of_threads():
    results = [measure(f"barnes-hut --bodies 3000 --steps 5 --threads {threads}") for threads in (1, 3, 4)]
    results += [measure(f"barnes-hut-{api} --bodies 3000 --steps 5 --threads 2") for api in ("explicit", "all-shared")]
    assert len({(each["checksum"], each["energy_end"], each["ops"]) for each in results}) == 1
    assert results[0]["checksum"] != measure("barnes-hut --bodies 3000 --steps 4")["checksum"]


def test_barnes_hut_frees_each_node_where_it_was_made(record):
    result, info = record("barnes-hut --bodies 2000 --steps 3 --threads 4")
    assert result["ops"] > 3 * 2000
    assert 0 <= info["mallocs"] - result["ops"] <= few(4) + 64 * 12  # and the lists of the bodies of 64 cells
    assert info["never_freed"] <= few(4)
    assert info["cross_thread_frees"] <= few(4) + 64


# ---- exchange -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("shape, threads, server, client", [
    ("symmetric", 2, 0.5, 0.5), ("symmetric", 3, 0.5, 0.5),
    ("asymmetric", 2, 0.875, 0.125), ("asymmetric", 4, 0.875, 0.125)])
def test_exchange_sends_its_share(shape, threads, server, client):
    result = measure(f"exchange --shape {shape} --threads {threads} --seconds 0.1")
    assert result["server_sent_share"] == pytest.approx(server, abs=0.02)
    assert result["client_sent_share"] == pytest.approx(client, abs=0.02)
    assert result["server_received_share"] > 0
    assert result["thread_ns_per_op"] == pytest.approx(threads * result["ns_per_op"], rel=1e-3)


def test_exchange_frees_elsewhere_what_it_sends(record):
    result, info = record("exchange --seconds 0.02 --size 72")
    left = 2 * 1024  # live at the end, and freed by the main thread
    assert info["cross_thread_frees"] == pytest.approx(result["ops"] / 2 + left, rel=0.03)
    assert max(info["sizes"], key=lambda bucket: bucket[1])[0] == 128


@pytest.mark.parametrize("where", [["taskset", "-c", str(min(os.sched_getaffinity(0)))], []], ids=["one CPU", "all CPUs"])
def test_asymmetric_memory_flows_one_way(where):
    command = [*where, PROGRAMS / "exchange", *"--shape asymmetric --threads 4 --seconds 0.2".split()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert json.loads(done.stdout)["server_received_share"] == pytest.approx(0.125, abs=0.03)
