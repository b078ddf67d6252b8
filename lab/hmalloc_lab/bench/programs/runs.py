"""How a cell and an allocator become a run: what is measured of it, and whether it counts.

It counts if all of its processes had the allocator in their address space, and if its output is what the program gives on
the system's malloc.  One that nobody saw, because it ended before its address space could be read, is made again."""

import hashlib
import json
import os
import shutil
import time
from pathlib import Path

import psutil

from ... import allocators, elf, job, run
from ...build_paths import SOURCE, BuildPaths
from ...errors import Failure
from ...run import Sight
from .. import participants, store
from ..catalogue import Cell
from ..ends import BARE_ENVIRONMENT, SAMPLE_MS, Discounted, require_good_end
from ..store import AllocatorRow
from . import inputs
from .table import PROGRAMS, Program

HERE = SOURCE / "bench" / "programs"
_PATH = "/usr/bin:/bin"  # the distribution's, not what else the user has
_LOOK_AT_CHILDREN_S = 0.2  # by then its first children run
# A child that has no library at all yet is given so long to load them.
_LOADING_S, _BETWEEN_LOOKS_S = 5.0, 0.02
# A run that ended before anybody had looked at it is made again: on a busy machine that may befall a short one.
_MOST_TRIES = 4


def is_program(cell: Cell) -> bool:
    return cell.family == "programs"


def unable(built: BuildPaths, cell: Cell) -> str:
    """Why this cell cannot be run here; empty if it can.  Makes its inputs."""
    program = PROGRAMS[cell.workload]
    for name in program.executables:
        found = shutil.which(name, path=_PATH)
        if found is None:
            return f"{name} not installed ({program.packages})"
        if elf.exports_malloc(Path(found)):
            return f"{found} brings a malloc of its own"
    for name in program.modules:
        if not (_modules(built) / name).is_dir():
            return f"{name} not installed ({program.packages}; hmalloc bench paper --families programs does it)"
    try:
        for name in program.inputs:
            inputs.make(name, _inputs(built), _size(cell))
    except (Failure, OSError) as error:
        return f"its input cannot be made: {error}"
    return ""


def _size(cell: Cell) -> int:
    return int(cell.repeat.get("size", PROGRAMS[cell.workload].size))


def _inputs(built: BuildPaths) -> Path:
    return built.state / "bench" / "programs"


def _modules(built: BuildPaths) -> Path:
    return built.state / "programs"


class Programs:
    """Makes runs; `folder` is emptied for each."""

    def __init__(self, built: BuildPaths, folder: Path) -> None:
        self._built, self._work = built, folder / "work"

    def measure(self, cell: Cell, allocator: AllocatorRow) -> tuple[dict, list]:
        """The metrics of a run and its resident set over time; Discounted if it does not count."""
        expected = self._expected(cell)
        for _ in range(_MOST_TRIES):
            outcome, digest = self._run(cell, participants.preload(allocator), participants.environment(allocator, cell),
                                        Path(allocator.library))
            if outcome.sight is not Sight.ENDED:
                break
        if outcome.sight is Sight.ENDED:
            raise Discounted(store.FAILED, f"it ended before its address space could be read, {_MOST_TRIES} times")
        if outcome.sight is Sight.ABSENT:
            raise Discounted(store.NOT_LOADED, "a process of it ran without the library")
        if digest != expected:
            raise Discounted(store.FAILED, "its output differs from that on the system's malloc")
        return outcome.cost | {"vm_hwm_kb": outcome.cost["peak_kb"]}, outcome.resident

    def _expected(self, cell: Cell) -> str:
        """The digest of what it gives without any preload; kept as long as program and command are the same."""
        file = _inputs(self._built) / "expected.json"
        known = json.loads(file.read_text()) if file.is_file() else {}
        key = self._identity(cell)
        if key not in known:
            _, known[key] = self._run(cell, "", {}, allocators.own_libc())
            file.parent.mkdir(parents=True, exist_ok=True)
            written = file.with_suffix(".new")
            written.write_text(json.dumps(known, indent=1))
            written.replace(file)
        return known[key]

    def _identity(self, cell: Cell) -> str:
        program = PROGRAMS[cell.workload]
        files = [Path(shutil.which(name, path=_PATH)).resolve() for name in program.executables]
        files += [path for path in sorted(HERE.rglob("*")) if path.is_file()]
        facts = [(str(path), path.stat().st_size, path.stat().st_mtime) for path in files]
        text = json.dumps([program.command, _size(cell), program.environment, facts])
        return f"{cell.workload} {hashlib.sha256(text.encode()).hexdigest()[:16]}"

    def _command(self, program: Program, size: int) -> list[str]:
        return [self._filled(word, size) for word in program.command]

    def _filled(self, word: str, size: int = 0) -> str:
        return word.format(here=HERE, inputs=_inputs(self._built), work=self._work, size=size)

    def _run(self, cell: Cell, preload: str, more: dict[str, str], library: Path) -> tuple[run.Outcome, str]:
        program = PROGRAMS[cell.workload]
        shutil.rmtree(self._work, ignore_errors=True)
        self._work.mkdir()
        environment = BARE_ENVIRONMENT | {"PATH": _PATH, "PYTHONPATH": str(_modules(self._built))} | more
        environment |= {name: self._filled(value) for name, value in program.environment.items()}
        with open(self._work / "printed", "w+b") as printed, open(self._work / "errors", "w+b") as errors:
            try:
                outcome = run.run(
                    self._built.measurer, self._command(program, _size(cell)), preload, environment, printed, errors,
                    stop_after_s=cell.limit_s, watch_ms=SAMPLE_MS, folder=self._work,
                    attend=lambda pid, _: {"sight": _sight(pid, library)})
            except run.NotMeasured as error:
                raise Discounted(store.FAILED, error.reason) from error
        require_good_end(outcome, (self._work / "errors").read_text(errors="replace"), cell.limit_s)
        return outcome, _digest([self._work / "printed", *sorted(self._work.glob(program.result))])


def _digest(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()


def _sight(pid: int, library: Path) -> Sight:
    """Of the library in the process, and in those that it starts at first."""
    first = job.look_for(str(library), pid)
    if first is not Sight.SEEN:
        return first
    time.sleep(_LOOK_AT_CHILDREN_S)
    return Sight.ABSENT if any(_runs_without(member, library) for member in _family(pid)) else Sight.SEEN


def _family(pid: int) -> list[int]:
    try:
        return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
    except psutil.NoSuchProcess:
        return []


def _runs_without(pid: int, library: Path) -> bool:
    """Not if it has ended.  The loader maps what is preloaded before any library that the program needs: who has libc
    without it runs without it, and who has neither may not have come so far, until it has had its time.  One look is not
    enough: of a process that ends meanwhile only the first part is read."""
    wanted, end, looks = os.path.realpath(library), time.monotonic() + _LOADING_S, 0
    while True:
        try:
            maps = Path(f"/proc/{pid}/maps").read_text(errors="replace")
        except OSError:
            return False
        if not maps or wanted in maps:
            return False
        looks += "/libc.so." in maps
        if looks > 1 or time.monotonic() > end:
            return True
        time.sleep(_BETWEEN_LOOKS_S)
