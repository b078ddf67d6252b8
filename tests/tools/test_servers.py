"""Real servers as cells: they answer, on the allocator that was meant, and say what is missing."""

import json
import os
import shutil
import subprocess
from dataclasses import replace

import pytest
from hmalloc_lab.bench import participants, selection, servers
from hmalloc_lab.bench.catalogue import cells
from rich.console import Console

CELLS = {cell.name: cell for cell in cells("paper") if servers.is_server(cell)}
BRIEF = {"redis": {"requests": 4000}, "db_bench": {"num": 4000, "reads": 2000}}


def serve(cell, allocator) -> subprocess.CompletedProcess:
    brief = replace(cell, repeat=BRIEF[cell.workload])
    return subprocess.run(servers.command(allocator, brief), capture_output=True, text=True, timeout=300,
                          env={"PATH": os.environ["PATH"], "LC_ALL": "C"})


def rows(built):
    return {row.name: row for row in participants.everybody(built, with_peers=False)}


@pytest.mark.parametrize("allocator", ["glibc", "hmalloc"])
@pytest.mark.parametrize("name", [name for name in CELLS if "share" not in name])
def test_a_server_answers_on_the_allocator_that_was_meant(built, name, allocator):
    if reason := servers.unable(CELLS[name]):
        pytest.skip(reason)
    row = rows(built)[allocator]
    done = serve(CELLS[name], row)
    assert (done.returncode, done.stderr) == (0, "")
    said = json.loads(done.stdout)
    assert os.path.realpath(said["malloc_library"]) == os.path.realpath(row.library)
    assert said["ns_per_op"] > 0 and said["vm_hwm_kb"] > 4000


@pytest.mark.parametrize("name", [name for name in CELLS if "share" in name])
def test_the_share_of_the_allocator_is_a_part_of_the_time(built, name):
    if reason := servers.unable(CELLS[name]):
        pytest.skip(reason)
    if subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-o", "/dev/null", "true"], capture_output=True,
                      check=False).returncode != 0:
        pytest.skip("the kernel does not let us sample")
    done = serve(CELLS[name], rows(built)["hmalloc"])
    assert done.returncode == 0, done.stderr
    assert 0 <= json.loads(done.stdout)["allocator_share"] < 50


def test_glibc_has_no_share_for_its_library_is_more_than_an_allocator(built):
    shares = [cell for name, cell in CELLS.items() if "share" in name]
    assert shares
    for cell in shares:
        assert [allocator for allocator in ("glibc", "hmalloc", "hmalloc-explicit") if participants.serves(rows(built)[allocator], cell)] == [
            "hmalloc"]


def test_an_allocator_that_breaks_a_server_is_one_line(built, library):
    cell = CELLS["redis io-threads=2"]
    if reason := servers.unable(cell):
        pytest.skip(reason)
    broken = library("crashes")
    done = serve(cell, participants.AllocatorRow("broken", "user", "", str(broken), ""))
    assert done.returncode != 0 and done.stderr.splitlines()[-1] == "redis-server does not answer"


def test_a_server_that_is_not_installed_is_left_out_by_name(built, monkeypatch, capsys):
    found = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name, *rest: None if name == "db_bench" else found(name, *rest))
    able, _ = selection.possible(built, [cell for name, cell in CELLS.items() if "share" not in name], Console())
    assert [cell.workload for cell in able] == (["redis"] if found("redis-server") else [])
    assert "db_bench: db_bench not installed (rocksdb-tools)" in capsys.readouterr().out
