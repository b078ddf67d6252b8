"""Real servers under real load (bench/servers): how a cell and an allocator become a command line."""

import shutil
import sys

from ..build_paths import SOURCE
from .catalogue import Cell
from .store import AllocatorRow

_PROGRAM = SOURCE / "bench" / "servers"
# What each needs, and the packages that have it.
_NEEDS = {"redis": (("redis-server", "redis-benchmark"), "redis-server redis-tools"),
          "db_bench": (("db_bench",), "rocksdb-tools")}
_SHARE_NEEDS = (("perf",), "linux-perf, on Ubuntu linux-tools-generic")


def is_server(cell: Cell) -> bool:
    return cell.workload in _NEEDS


def unable(cell: Cell) -> str:
    """Why this cell cannot be run here; empty if it can."""
    if not _PROGRAM.is_dir():
        return "its program is not installed"
    for programs, packages in (_NEEDS[cell.workload], *((_SHARE_NEEDS,) if "share" in cell.point else ())):
        if absent := [program for program in programs if shutil.which(program) is None]:
            return f"{' and '.join(absent)} not installed ({packages})"
    return ""


def command(allocator: AllocatorRow, cell: Cell) -> list[str]:
    """The server is started with the library in front, also the system's own: Debian links its redis with jemalloc."""
    return [sys.executable, "-I", "-B", str(_PROGRAM), cell.workload, "--library", allocator.library, *cell.arguments]
