"""How a cell is run under the simulator (lab/native/cores), and what it has counted."""

import json
import platform
import shutil
import subprocess
from bisect import bisect_right
from functools import lru_cache
from pathlib import Path

from ...build_paths import BuildPaths
from .. import participants
from ..catalogue import Cell
from ..store import AllocatorRow
from . import cells

_QEMU = "qemu-x86_64"


def is_simulated(cell: Cell) -> bool:
    return cell.workload == cells.WORKLOAD


def unable(built: BuildPaths) -> str:
    """Why nothing can be simulated here; empty if it can."""
    if platform.machine() != "x86_64":
        return "the simulator knows instructions of x86-64 alone"
    if shutil.which(_QEMU) is None:
        return f"{_QEMU} not installed (qemu-user)"
    return "" if _plugin(built).is_file() else "the simulator is not built"


def _plugin(built: BuildPaths) -> Path:
    return built.natives / "hmalloc-cores.so"


def command(built: BuildPaths, allocator: AllocatorRow, cell: Cell, counted: Path) -> list[str]:
    """The library is preloaded into the program, not into the emulator."""
    library = participants.preload(allocator)
    system = str(_system(counted.parent, cell.threads))
    return [shutil.which(_QEMU) or _QEMU, "-cpu", "max", "-seed", "1", "-L", system,
            *(["-E", f"LD_PRELOAD={library}"] if library else []),
            "-plugin", f"{_plugin(built)},cores={cell.threads},out={counted}",
            str(built.workloads / cell.workload), *cell.arguments]


def _system(folder: Path, cores: int) -> Path:
    """Files that the program finds there in place of the machine's own: by this one glibc counts CPUs for its arenas."""
    system = folder / f"system-{cores}"
    online = system / "sys" / "devices" / "system" / "cpu" / "online"
    online.parent.mkdir(parents=True, exist_ok=True)
    online.write_text(f"0-{cores - 1}\n" if cores > 1 else "0\n", encoding="ascii")
    return system


def read(counted: Path, operations: float) -> dict:
    """Metrics for each malloc with its free; `sites` are the functions of the allocator that move most lines:
    [function, whose line it is, transfers, upgrades], ...  A ValueError says that it cannot be read."""
    said = json.loads(counted.read_text(encoding="utf-8")) if counted.is_file() else {}
    if not said or operations <= 0:
        raise ValueError("the simulator has counted nothing")
    sites: dict[tuple[str, str], list[float]] = {}
    for library, offset, whose, transfers, upgrades in said.pop("sites"):
        sums = sites.setdefault((_function(library, offset), whose), [0.0, 0.0])
        sums[0] += transfers / operations
        sums[1] += upgrades / operations
    found = {name: value / operations for name, value in said.items()}
    for part in ("", "whole_"):
        found[f"{part}{cells.METRIC}"] = found[f"{part}transfers"] + found[f"{part}upgrades"]
    return found | {"sites": [[*of, *sums] for of, sums in sites.items()]}


def _function(library: str, offset: int) -> str:
    """By the library's symbols; the library alone where it has none."""
    starts, names = _symbols(library)
    at = bisect_right(starts, offset) - 1
    return names[at] if at >= 0 else Path(library).name or "?"


@lru_cache
def _symbols(library: str) -> tuple[list[int], list[str]]:
    try:
        text = subprocess.run(["nm", "-C", "--defined-only", library], capture_output=True, text=True, check=False).stdout
    except OSError:
        text = ""
    found = sorted((int(address, 16), name) for address, kind, name in
                   (line.split(maxsplit=2) for line in text.splitlines()) if kind in "tTwW")
    names = [name.replace("(anonymous namespace)::", "").split("(")[0] for _, name in found]
    return [address for address, _ in found], names
