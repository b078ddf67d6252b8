"""The programs of the simulation engine (pdes/models) and its yardstick `bare`: how a cell and an allocator become a
command line.  One program serves every way to allocate: the allocator is an argument."""

import shutil
from pathlib import Path

from ..build_paths import BuildPaths
from .catalogue import Cell
from .store import AllocatorRow

MODELS = ("phold", "pcs", "airport")
BARE = "bare"
ENGINES = ("nexosim", "simrs", "ns3", "simpy", "salabim")  # of others: PHOLD on each (bench/engines)

# What a point may say in one word instead of many: `config`.  A, B, C and E are those that ROSS was measured with.
CONFIGURATIONS = {
    "A": {"lps": 8192, "events-per-lp": 16, "remote": 0.1, "end": 8},
    "B": {"lps": 8192, "events-per-lp": 1, "remote": 0.25, "end": 80},
    "C": {"lps": 1024, "events-per-lp": 1, "remote": 0.25, "end": 400},
    "E": {"lps": 8192, "events-per-lp": 16, "remote": 1, "end": 8},
    "1M": {"lps": 65536, "events-per-lp": 16, "remote": 0.1, "end": 8},
    # The worst for a bucketed queue: all events at whole times, and a tail without variance.
    "ties": {"lps": 8192, "events-per-lp": 16, "remote": 0.1, "end": 8, "mean": 1, "lookahead": 1},
    "pareto": {"lps": 8192, "events-per-lp": 16, "remote": 0.1, "end": 8, "distribution": "pareto"},
    # In steady state: fresh memory is touched in the first few of 400.
    "mixed": {"lps": 8192, "events-per-lp": 1, "remote": 0.25, "end": 400,
              "payload": ",".join(f"{8 << kind}:1" for kind in range(8))},
    "pcs": {"width": 64, "height": 64, "portables": 50, "end": 4000},
    "airport": {"width": 32, "height": 32, "planes": 50, "end": 4000},
}

# A parameter of a paper's figure -> the program's option, and one of it in the program's unit.
_PAPERS = {("phold", "remote"): ("remote", 0.01), ("pcs", "events"): ("portables", 1)}

# Kind of allocator -> --allocator, and what the result then calls its API.
_EXPLICIT = {"explicit": ("hmalloc", "explicit"), "no-allocator": ("free-list", "free-list")}

# As the launcher starts ranks: memory that they share, no search for a network.
_MPIRUN = ("mpirun", "-q", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "pml", "ob1",
           "--mca", "btl", "self,vader")


def is_simulation(cell: Cell) -> bool:
    return cell.workload in (*MODELS, BARE, *ENGINES)


def is_model(cell: Cell) -> bool:
    return cell.workload in MODELS


def program(built: BuildPaths, cell: Cell) -> Path:
    if is_model(cell):
        return built.natives / "pdes" / f"hmalloc-pdes-{cell.workload}"
    if cell.workload in ENGINES:
        return built.state / "engines" / cell.workload
    return built.workloads / cell.workload


def unable(built: BuildPaths, cell: Cell) -> str:
    """Why this cell cannot be run here; empty if it can."""
    if not program(built, cell).is_file():
        return "it is not built"
    return "mpirun is not installed" if "ranks" in cell.point and shutil.which("mpirun") is None else ""


def command(built: BuildPaths, allocator: AllocatorRow, cell: Cell) -> list[str]:
    words = [str(program(built, cell)), *arguments(cell)]
    if is_model(cell):
        words += ["--json", "--allocator", _EXPLICIT.get(allocator.kind, ("malloc", ""))[0]]
        # A cell's threads are meant; `capped` leaves it to the program to start no more than there are CPUs.
        words += [] if "capped" in cell.point else ["--oversubscribe"]
    if "ranks" in cell.point:
        words = [*_MPIRUN, "-n", str(cell.point["ranks"]), *words]
    return words


def api(allocator: AllocatorRow, cell: Cell) -> str:
    """What the result has to say of itself where malloc proves nothing; empty: malloc does."""
    return _EXPLICIT.get(allocator.kind, ("", ""))[1] if is_model(cell) else ""


def arguments(cell: Cell) -> list[str]:
    """`repeat` has the last word: it may make a configuration longer."""
    given = {key: value for key, value in cell.point.items() if key not in ("config", "ranks", "capped")}
    given = dict(_translated(cell.workload, key, value) for key, value in given.items())
    found = CONFIGURATIONS.get(str(cell.point.get("config")), {}) | given | cell.repeat
    return [word for key, value in found.items() for word in (f"--{key}", str(value))]


def _translated(workload: str, key: str, value: int | float | str) -> tuple[str, int | float | str]:
    name, unit = _PAPERS.get((workload, key), (key, 1))
    return name, value if unit == 1 else round(value * unit, 6)
