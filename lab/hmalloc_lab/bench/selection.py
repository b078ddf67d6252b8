"""Which cells are measured: those that the user names, of those that can run here."""

from pathlib import Path

from rich.console import Console

from ..build_paths import BuildPaths
from ..errors import Failure
from . import servers, simulations, traces
from .catalogue import APART, Cell
from .cores import simulator
from .programs import runs as programs


def choose(cells: list[Cell], workloads: str, families: str) -> list[Cell]:
    """workloads: W or W:PART-OF-NAME; families: with `-` for a space.  Both comma-separated; empty means all."""
    cells = _of_families(cells, families) if families else cells
    if not workloads:
        return cells if families else [cell for cell in cells if cell.family not in APART]
    chosen = []
    for word in workloads.split(","):
        workload, _, part = word.partition(":")
        hits = [cell for cell in cells if cell.workload == workload and part in cell.name]
        if not hits:
            known = dict.fromkeys(cell.workload for cell in cells)
            raise Failure(f"no cell {word}; the workloads are {', '.join(known)} (hmalloc bench list)")
        chosen += hits
    return [cell for cell in cells if cell in chosen]


def _of_families(cells: list[Cell], families: str) -> list[Cell]:
    wanted = [family.replace(" ", "-") for family in families.split(",")]
    known = list(dict.fromkeys(cell.family.replace(" ", "-") for cell in cells))
    for family in wanted:
        if family not in known:
            raise Failure(f"no family {family}; there are {', '.join(known)}")
    return [cell for cell in cells if cell.family.replace(" ", "-") in wanted]


def possible(built: BuildPaths, cells: list[Cell], console: Console) -> tuple[list[Cell], dict[str, Path]]:
    """The cells whose programs and traces are there, and the traces; a line for each that is not."""
    files, missing = traces.provide(built, cells)
    unable = {cell.name: why for cell in cells
              if cell.workload != "replay" and (why := _unable(built, cell))}
    lines = [f"{cell.workload}: {unable[cell.name]}" for cell in cells if cell.name in unable]
    for line in [*dict.fromkeys(lines), *(f"replay trace={name}: {why}" for name, why in missing.items())]:
        console.print(f"left out: {line}", markup=False, soft_wrap=True)
    able = [cell for cell in cells if cell.name not in unable and cell.point.get("trace") not in missing]
    if not able:
        raise Failure("nothing is left to measure", 1)
    return able, files


def _unable(built: BuildPaths, cell: Cell) -> str:
    if simulator.is_simulated(cell):
        return simulator.unable(built)
    if programs.is_program(cell):
        return programs.unable(built, cell)
    return servers.unable(cell) if servers.is_server(cell) else simulations.unable(built, cell)
