"""A campaign, ready to be asked: the values of a cell and an allocator, round by round."""

import statistics
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from ..errors import Failure
from . import store
from .catalogue import Cell
from .store import AllocatorRow, Campaign, Run

# Kinds of allocators that serve any program: means over the whole table are taken among these.
DROP_IN = ("system", "peer", "hmalloc", "baseline", "user")

# Rounds from which a ratio is told (statistics.py): with so many quiet ones the noisy ones are left out.
ENOUGH_ROUNDS = 5


class Results:
    def __init__(self, campaign: Campaign) -> None:
        self.campaign = campaign
        self.cells = {cell.name: cell for cell in campaign.cells}
        self.allocators = {row.name: row for row in campaign.allocators}
        self._runs: dict[tuple[str, str], list[Run]] = {}
        for run in campaign.runs:
            self._runs.setdefault((run.cell, run.allocator), []).append(run)

    @classmethod
    def read(cls, path: Path, campaign: int | None = None) -> "Results":
        return cls(store.load(path, campaign))

    def require(self, *names: str) -> None:
        for name in names:
            if name not in self.allocators:
                raise Failure(f"{name}: not in this campaign, which has {', '.join(self.allocators)}")

    def among(self, names: Collection[str]) -> "Results":
        """The campaign as if these allocators alone had taken part."""
        self.require(*names)
        of = self.campaign
        return Results(replace(of, allocators=[row for row in of.allocators if row.name in names],
                               runs=[run for run in of.runs if run.allocator in names]))

    # ---- Who and what. ----------------------------------------------------------------------------------------------

    def of_kind(self, *kinds: str) -> list[AllocatorRow]:
        return [row for row in self.allocators.values() if row.kind in kinds]

    @property
    def drop_ins(self) -> list[AllocatorRow]:
        return self.of_kind(*DROP_IN)

    @property
    def peers(self) -> list[AllocatorRow]:
        """Those that hmalloc is judged against."""
        return self.of_kind("system", "peer", "baseline", "user")

    @property
    def families(self) -> list[str]:
        return list(dict.fromkeys(cell.family for cell in self.cells.values()))

    def select(self, workload: str, where: Callable[[Cell], bool] | None = None, **point) -> list[Cell]:
        """The cells of a workload at these values of the point; absent=None: cells without that parameter."""
        return [cell for cell in self.cells.values() if cell.workload == workload
                and all(cell.point.get(key) == value for key, value in point.items())
                and (where is None or where(cell))]

    # ---- Numbers. ---------------------------------------------------------------------------------------------------

    def runs(self, cell: str, allocator: str) -> list[Run]:
        """The runs that count, oldest first: those of quiet rounds, where they are enough."""
        good = self.good_runs(cell, allocator)
        quiet = [run for run in good if run.round not in self.noisy_rounds]
        enough = min(ENOUGH_ROUNDS, self.campaign.rounds, self.cells[cell].most_rounds)
        return quiet if len(quiet) >= enough else good

    def good_runs(self, cell: str, allocator: str) -> list[Run]:
        """Also those of noisy rounds."""
        return [run for run in self._runs.get((cell, allocator), []) if run.status == store.OK]

    def failures(self) -> list[Run]:
        return [run for run in self.campaign.runs if run.status != store.OK]

    def values(self, cell: Cell, allocator: str, metric: str | None = None) -> dict[int, float]:
        """round -> value; metric: the cell's own by default."""
        metric = metric or cell.metric
        return {run.round: float(run.metrics[metric]) for run in self.runs(cell.name, allocator)
                if run.metrics.get(metric) is not None}

    def median(self, cell: Cell, allocator: str, metric: str | None = None) -> float | None:
        values = self.values(cell, allocator, metric)
        return statistics.median(values.values()) if values else None

    def best(self, cell: Cell, among: Iterable[AllocatorRow], metric: str | None = None) -> tuple[str, float] | None:
        """Who has the smallest median, and how much that is."""
        found = [(median, row.name) for row in among if (median := self.median(cell, row.name, metric)) is not None]
        return (min(found)[1], min(found)[0]) if found else None

    @cached_property
    def noisy_rounds(self) -> set[int]:
        return {row.number for row in self.campaign.round_rows if row.noisy}
