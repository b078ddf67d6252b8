"""Every simulation that the laboratory measures, on the real programs and hardly longer than its first window."""

import json
import os
import subprocess
from dataclasses import replace

import pytest
from hmalloc_lab.bench import simulations
from hmalloc_lab.bench.catalogue import cells
from hmalloc_lab.bench.engine.cells import PARTS, chosen, model
from hmalloc_lab.bench.store import AllocatorRow

CELLS = {cell.name: cell for cell in [*chosen(PARTS), *cells("paper")] if simulations.is_model(cell)}


def measure(built, cell, kind) -> dict:
    """kind: of the allocator."""
    if reason := simulations.unable(built, cell):
        pytest.skip(reason)
    brief = replace(cell, repeat=cell.repeat | {"end": 1.5})
    command = simulations.command(built, AllocatorRow("any", kind, ""), brief)
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, ""), done
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", CELLS)
def test_each_cell_gives_a_result(built, name):
    cell = CELLS[name]
    said = measure(built, cell, "explicit")
    threads = min(cell.threads, len(os.sched_getaffinity(0))) if "capped" in cell.point else cell.threads
    assert (said["model"], said["threads"], said["ranks"]) == (cell.workload, threads, cell.point.get("ranks", 1))
    assert said["ops"] == said["events"] > 0 and said["ns_per_op"] > 0 and 0 < said["cpu_share"] <= 1.05
    assert {"bytes_per_pending", "vm_hwm_kb", "malloc_library"} <= said.keys()


@pytest.mark.parametrize("kind, api", [("system", "malloc"), ("no-allocator", "free-list"), ("explicit", "explicit")])
@pytest.mark.parametrize("config", ["B", "pcs", "airport"])
def test_a_result_says_how_events_were_allocated(built, config, kind, api):
    assert measure(built, CELLS[model(config).name], kind)["api"] == api
