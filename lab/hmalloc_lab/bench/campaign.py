"""The rounds of a campaign.  In each round every allocator runs every cell once, in a process of its own: the cells in
random order, the allocators of one cell (and cells of one group) one right after the other in random order, so that
whatever disturbs the machine disturbs them alike.  Every run is stored at once; what is stored already is not run again."""

import fcntl
import os
import random
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..build_paths import BuildPaths
from ..errors import Failure
from ..progress import Progress
from . import os_noise, participants, store
from .catalogue import Cell
from .os_noise import OsNoise
from .store import AllocatorRow, RoundRow, Run, Store
from .trial import Trials, now

CPUS = len(os.sched_getaffinity(0))
# Below this share of a CPU per worker somebody else had the machine, or the allocator let its threads sleep.
_ENOUGH_CPU = 0.95
# An allocator that failed so often in a cell is not tried there again.
_MOST_FAILURES = 2
_LEAST_ROUNDS = 2


@dataclass(frozen=True)
class ProfileSettings:
    """How a profile is run.  Ten seconds are left to a quick one for its tables and its report."""

    rounds: int
    budget_s: float | None = None   # ends at the end of the last round that fits
    probes: int = 5                 # so often is asked whether the machine is quiet, before a round counts as noisy
    pause_s: float = 5
    tries: int = 4                  # of a run that was disturbed
    simulated: bool = False         # nothing is timed: no warm-up, and no round is noisy


BUDGET = "time budget in seconds"  # in the environment of a campaign that has one
SETTINGS = {"quick": ProfileSettings(10, budget_s=100, probes=2, pause_s=1, tries=2), "paper": ProfileSettings(10),
            "full": ProfileSettings(20), "baselines": ProfileSettings(10, tries=2), "engine": ProfileSettings(10),
            "mixes": ProfileSettings(5, probes=3, pause_s=2, tries=2), "cores": ProfileSettings(1, simulated=True)}


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Two campaigns at once would measure each other, and one that runs must not be resumed."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise Failure(f"another hmalloc bench is measuring into {folder}: one after the other") from error
    finally:
        os.close(handle)


class Runner:
    """Measures what a campaign in the store still lacks."""

    def __init__(self, built: BuildPaths, kept: Store, number: int, progress: Progress, traces: dict[str, Path],
                 probe: Callable[[], OsNoise] | None = None) -> None:
        self._built, self._kept, self._progress, self._traces = built, kept, progress, traces
        self._probe = probe or (lambda: os_noise.probe(built.natives))
        self._campaign = kept.load(number)
        self._budget_s, self._begin = self._campaign.environment.get(BUDGET), time.monotonic()
        self._settings = SETTINGS[self._campaign.profile]
        self._done = kept.done(number)
        self._rounds = {row.number: row for row in self._campaign.round_rows}
        self._failures = Counter((run.cell, run.allocator) for run in self._campaign.runs if run.status != store.OK)
        self._sleepers: set[tuple[str, str]] = set()
        self._took: dict[tuple[str, str], float] = {}

    def run(self) -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        with tempfile.TemporaryDirectory(prefix="hmalloc-bench-") as folder:
            self._trials = Trials(self._built, self._traces, Path(folder))
            if not self._settings.simulated:
                self._warm_up()
            for number in self._numbers():
                self._round(number)
        self._kept.finish(self._campaign.id, now(), None if self._budget_s is None else max(self._rounds, default=None))

    # ---- Rounds. ----------------------------------------------------------------------------------------------------

    def _numbers(self) -> Iterator[int]:
        """As many rounds as planned; a noisy one is replaced at the end, at most as many again."""
        planned, number = self._campaign.rounds, 0
        while self._clean_before(number + 1) < planned and number < 2 * planned:
            number += 1
            out_of_time = self._budget_s is not None and self._elapsed() + self._round_takes() > self._budget_s
            if number > _LEAST_ROUNDS and out_of_time:
                return
            yield number

    def _clean_before(self, number: int) -> int:
        return sum(1 for row in self._rounds.values() if row.number < number and not row.noisy)

    def _round(self, number: int) -> None:
        todo = [pair for pair in self._order(number) if (number, pair[0].name, pair[1].name) not in self._done
                and self._failures[pair[0].name, pair[1].name] < _MOST_FAILURES]
        if not todo:
            return
        self._begin_round(number)
        self._progress.stage(f"round {number} of {number + self._rounds_after(number)}", self._left(number, todo))
        for at, (cell, allocator) in enumerate(todo):
            self._progress.step(f"{cell.name}  {allocator.name}", self._left(number, todo[at:]))
            self._keep(self._measured(number, cell, allocator))

    def _order(self, number: int) -> list[tuple[Cell, AllocatorRow]]:
        """Drawn from seed and number alone: a round that goes on has the order that it began with."""
        chance = random.Random(f"{self._campaign.seed} {number}")
        before = self._clean_before(number)
        groups: dict[str, list[tuple[Cell, AllocatorRow]]] = {}
        for cell in self._campaign.cells:
            if before < cell.most_rounds:
                groups.setdefault(cell.group, []).extend(
                    (cell, allocator) for allocator in self._campaign.allocators if participants.serves(allocator, cell))
        order = list(groups.values())
        chance.shuffle(order)
        for turn in order:
            chance.shuffle(turn)
        return [pair for turn in order for pair in turn]

    def _begin_round(self, number: int) -> None:
        if self._settings.simulated:
            self._rounds[number] = RoundRow(number, now())
            self._kept.add_round(self._campaign.id, self._rounds[number])
            return
        found = os_noise.wait_for_quiet(self._probe, self._settings.probes, self._settings.pause_s)
        before = self._rounds.get(number)
        noisy = found.noisy or (before is not None and before.noisy)
        if noisy and not any(row.noisy for row in self._rounds.values()):
            self._progress.note(f"others take {found.lost_share:.0%} of the machine: noisy rounds are marked, and replaced "
                                "at the end")
        row = RoundRow(number, before.started if before else now(), found.lost_share, found.longest_gap_us, noisy)
        self._rounds[number] = row
        self._kept.add_round(self._campaign.id, row)

    def _warm_up(self) -> None:
        """Each cell once, on one allocator after the other: files come into memory, nothing is kept."""
        turn = 0
        for cell in self._campaign.cells:
            able = [allocator for allocator in self._campaign.allocators if participants.serves(allocator, cell)]
            if able:
                allocator, turn = able[turn % len(able)], turn + 1
                self._progress.step(f"{cell.name}  {allocator.name}", None)
                self._timed(0, cell, allocator)

    # ---- One run. ---------------------------------------------------------------------------------------------------

    def _measured(self, number: int, cell: Cell, allocator: AllocatorRow) -> Run:
        best = self._timed(number, cell, allocator)
        pair = cell.name, allocator.name
        for _ in range(self._settings.tries - 1):
            if pair in self._sleepers or not _disturbed(cell, best):
                break
            again = self._timed(number, cell, allocator)
            if again.status != store.OK or _cpu_share(again) > _cpu_share(best):
                best = again
        if _disturbed(cell, best):
            # The same in every try: its threads wait for each other.  It is not asked so often again.
            self._sleepers.add(pair)
        return best

    def _timed(self, number: int, cell: Cell, allocator: AllocatorRow) -> Run:
        begin = time.monotonic()
        run = self._trials.run(number, cell, allocator)
        self._took[cell.name, allocator.name] = time.monotonic() - begin
        return run

    def _keep(self, run: Run) -> None:
        self._kept.add(self._campaign.id, run)
        if run.status != store.OK:
            pair = run.cell, run.allocator
            self._failures[pair] += 1
            if self._failures[pair] == 1:
                self._progress.note(f"{run.allocator}, {run.cell}: {run.status}: {run.reason}")

    # ---- Time to go. ------------------------------------------------------------------------------------------------

    def _elapsed(self) -> float:
        return time.monotonic() - self._begin

    def _takes(self, pairs: list[tuple[Cell, AllocatorRow]]) -> float:
        """By the last run of the same; before there was one, by the cell's runs on others."""
        of_cell: dict[str, float] = {}
        for (cell, _), seconds in self._took.items():
            of_cell[cell] = max(seconds, of_cell.get(cell, 0))
        return sum(self._took.get((cell.name, allocator.name), of_cell.get(cell.name, 0)) for cell, allocator in pairs)

    def _round_takes(self) -> float:
        return self._takes(self._order(max(self._rounds, default=0) + 1))

    def _rounds_after(self, number: int) -> int:
        """If none of them is noisy."""
        planned = self._campaign.rounds
        rounds = min(planned - self._clean_before(number + 1), 2 * planned - number)
        if self._budget_s is None:
            return rounds
        fit = int((self._budget_s - self._elapsed()) / max(self._round_takes(), 0.001)) - 1
        return max(min(rounds, fit), _LEAST_ROUNDS - number, 0)

    def _left(self, number: int, todo: list[tuple[Cell, AllocatorRow]]) -> float:
        return self._takes(todo) + self._rounds_after(number) * self._round_takes()


def _cpu_share(run: Run) -> float:
    return run.metrics.get("cpu_share", 1.0)


def _disturbed(cell: Cell, run: Run) -> bool:
    threads = run.metrics.get("threads", cell.threads)
    return run.status == store.OK and threads <= CPUS and _cpu_share(run) < _ENOUGH_CPU
