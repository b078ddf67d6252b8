"""Real servers as cells: they answer, on the allocator that was meant."""

import json
import os
import subprocess
from dataclasses import replace

import pytest
from hmalloc_lab.bench import participants, servers
from hmalloc_lab.bench.catalogue import cells

CELLS = {cell.name: cell for cell in cells("paper") if servers.is_server(cell)}
BRIEF = {"redis": {"requests": 4000}, "db_bench": {"num": 4000, "reads": 2000}}


def serve(name: str, allocator) -> subprocess.CompletedProcess:
    if reason := servers.unable(CELLS[name]):
        pytest.skip(reason)
    brief = replace(CELLS[name], repeat=BRIEF[CELLS[name].workload])
    return subprocess.run(servers.command(allocator, brief), capture_output=True, text=True, timeout=300,
                          env={"PATH": os.environ["PATH"], "LC_ALL": "C"})


@pytest.fixture(scope="module")
def rows(built):
    return {row.name: row for row in participants.everybody(built, with_peers=False)}


@pytest.mark.parametrize("allocator", ["glibc", "hmalloc"])
@pytest.mark.parametrize("name", [name for name in CELLS if "share" not in name])
def test_a_server_answers_on_the_allocator_that_was_meant(rows, name, allocator):
    done = serve(name, rows[allocator])
    assert (done.returncode, done.stderr) == (0, "")
    said = json.loads(done.stdout)
    assert os.path.realpath(said["malloc_library"]) == os.path.realpath(rows[allocator].library)
    assert said["ns_per_op"] > 0 and said["vm_hwm_kb"] > 4000


@pytest.mark.parametrize("name", [name for name in CELLS if "share" in name])
def test_the_share_of_the_allocator_is_a_part_of_the_time(rows, name):
    sample = ["perf", "record", "-q", "-e", "cpu-clock", "-o", "/dev/null", "true"]
    if not servers.unable(CELLS[name]) and subprocess.run(sample, capture_output=True).returncode != 0:
        pytest.skip("the kernel does not let us sample")
    done = serve(name, rows["hmalloc"])
    assert done.returncode == 0, done.stderr
    assert 0 <= json.loads(done.stdout)["allocator_share"] < 50


def test_an_allocator_that_breaks_a_server_is_one_line(library):
    done = serve("redis io-threads=2", participants.AllocatorRow("broken", "user", "", str(library("crashes"))))
    assert done.returncode != 0 and done.stderr.splitlines()[-1] == "redis-server does not answer"
