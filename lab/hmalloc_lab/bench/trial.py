"""One run of a cell on an allocator: its command line, whether its result counts, and the row that is kept of it."""

import json
import os
from datetime import datetime
from pathlib import Path

from .. import run as runner
from ..build_paths import BuildPaths
from ..run import NotMeasured
from . import counters, latency, participants, servers, simulations, store
from .catalogue import Cell
from .cores import simulator
from .ends import BARE_ENVIRONMENT, SAMPLE_MS, Discounted, require_good_end
from .programs import runs as programs
from .store import AllocatorRow, Run


def now() -> str:
    return datetime.now().astimezone().isoformat(timespec="milliseconds")


class Trials:
    """Makes runs; `folder` is for what the programs write beside their results."""

    def __init__(self, built: BuildPaths, traces: dict[str, Path], folder: Path) -> None:
        self._built, self._traces = built, traces
        self._latencies, self._counters, self._simulated = folder / "latencies", folder / "counters", folder / "simulated"
        self._programs = programs.Programs(built, folder)

    def run(self, number: int, cell: Cell, allocator: AllocatorRow) -> Run:
        """number: of the round."""
        started = now()
        try:
            if programs.is_program(cell):
                (metrics, resident), latencies = self._programs.measure(cell, allocator), {}
            else:
                metrics, resident, latencies = self._measured(cell, allocator)
        except Discounted as why:
            return Run(number, cell.name, allocator.name, started, why.status, str(why))
        return Run(number, cell.name, allocator.name, started, store.OK, "", metrics, resident, latencies)

    def _measured(self, cell: Cell, allocator: AllocatorRow) -> tuple[dict, list, dict]:
        if simulator.is_simulated(cell):
            return self._counted(cell, allocator), [], {}
        self._latencies.unlink(missing_ok=True)
        self._counters.unlink(missing_ok=True)
        environment = participants.environment(allocator, cell) | participants.counting(allocator, self._counters)
        metrics, resident = measure(self._built.measurer, self._command(cell, allocator), allocator, environment,
                                    cell.limit_s, simulations.api(allocator, cell))
        percentiles, latencies = latency.read(self._latencies) if "latency" in cell.point else ({}, {})
        try:
            metrics = metrics | percentiles | counters.read(self._counters)
        except ValueError as error:
            raise Discounted(store.FAILED, f"its counters cannot be read: {error}") from error
        if cell.metric not in metrics:
            raise Discounted(store.FAILED, f"its result has no {cell.metric}")
        return metrics, resident, latencies

    def _counted(self, cell: Cell, allocator: AllocatorRow) -> dict:
        self._simulated.unlink(missing_ok=True)
        words = simulator.command(self._built, allocator, cell, self._simulated)
        metrics, _ = measure(self._built.measurer, words, allocator, participants.environment(allocator, cell), cell.limit_s,
                             preload="")
        try:
            return metrics | simulator.read(self._simulated, metrics["ops"])
        except ValueError as error:
            raise Discounted(store.FAILED, str(error)) from error

    def _command(self, cell: Cell, allocator: AllocatorRow) -> list[str]:
        if cell.workload == "replay":
            trace = self._traces[cell.point["trace"]]
            return [str(self._built.natives / "hmalloc-trace"), "replay", str(trace), "--json"]
        if simulations.is_simulation(cell):
            return simulations.command(self._built, allocator, cell)
        if servers.is_server(cell):
            return servers.command(allocator, cell)
        words = cell.arguments
        if "latency" in cell.point:
            words[words.index("--latency") + 1] = str(self._latencies)
        return [str(self._built.workloads / participants.executable(allocator, cell)), *words]


def measure(measurer: Path, command: list[str], allocator: AllocatorRow, environment: dict[str, str], limit_s: float,
            api: str = "", preload: str | None = None) -> tuple[dict, list]:
    """The metrics of a run and its resident set over time; Discounted if it does not count.
    api: a program that can do without malloc has to say that it did, by this name.  preload: instead of its library."""
    # Files in memory: nobody has to read along, and a full disk does not matter.
    with os.fdopen(os.memfd_create("output"), "w+b") as output, os.fdopen(os.memfd_create("errors"), "w+b") as errors:
        try:
            library = participants.preload(allocator) if preload is None else preload
            outcome = runner.run(measurer, command, library, BARE_ENVIRONMENT | environment, output, errors,
                                 stop_after_s=limit_s, watch_ms=SAMPLE_MS)
        except NotMeasured as error:
            raise Discounted(store.FAILED, error.reason) from error
        said, complaints = _content(output), _content(errors)
    require_good_end(outcome, complaints, limit_s)
    # What the program says of itself comes first: its page faults are without those of loading it.
    return outcome.cost | _verified(said, allocator, api), outcome.resident


def _content(file) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _verified(output: str, allocator: AllocatorRow, api: str) -> dict:
    """Takes a result only if the allocator that served it is the one that was meant."""
    try:
        said = json.loads(output.splitlines()[-1])
        served_by = said.get("malloc_library", "")
    except (ValueError, IndexError, AttributeError) as error:
        raise Discounted(store.FAILED, "printed no result") from error
    if api:
        if said.get("api") != api:
            raise Discounted(store.NOT_LOADED, f"events came from {said.get('api') or 'nowhere known'}, not {api}")
    elif not served_by and allocator.kind == "system":
        pass  # a program of others says nothing of it, and nothing was preloaded
    elif allocator.library and os.path.realpath(served_by) != os.path.realpath(allocator.library):
        raise Discounted(store.NOT_LOADED, f"malloc came from {served_by or 'nowhere known'}")
    return {key: value for key, value in said.items() if isinstance(value, (int, float, list))}
