"""The matrix of threads: who allocates (rows) and who frees (columns), threads of one name in a group."""

import math
import re
from dataclasses import dataclass
from functools import cached_property

from .names import OTHER_THREADS
from .page_amounts import NOTHING, Amount

GROUPED_FROM = 12  # more threads than these are grouped
MOST_LINES = 96  # a table of more is neither read nor quickly drawn; the list of pairs has them all
MOST_OPENED = 64  # of one group
_DECADES = 3  # from the palest colour to the strongest


@dataclass(frozen=True)
class Line:
    """A row, and the column of the same place."""
    name: str
    id: int | None  # of a single thread
    threads: tuple[int, ...]
    group: int | None = None  # of a group: its number; of a member: its group's
    is_member: bool = False


@dataclass(frozen=True)
class Cell:
    amount: Amount
    kept: float  # bytes that the thread which allocated them freed
    kind: str  # kept, handed, mixed, or unknown
    depth: float  # of the colour


class Matrix:
    def __init__(self, document: dict) -> None:
        self._threads = document["threads"]
        self._cells = [(each["allocated_by"], each["freed_by"], Amount.read(each["amount"])) for each in document["matrix"]]
        self.is_grouped = len(self._threads) > GROUPED_FROM

    @cached_property
    def lines(self) -> list[Line]:
        if not self.is_grouped:
            return [self._single(index) for index in range(len(self._threads))]
        names: dict[str, list[int]] = {}
        for index, thread in enumerate(self._threads):
            names.setdefault(_pattern(thread), []).append(index)
        groups = self._bounded(list(names.items()))
        room, found = MOST_LINES - len(groups), []
        for number, (name, members) in enumerate(groups):
            if len(members) == 1:
                found.append(self._single(members[0]))
                continue
            opened = self._members(members, number, min(MOST_OPENED, room)) if name and room > 1 else []
            found += [self._group(name, members, number if opened else None), *opened]
            room -= len(opened)
        return found

    def _bounded(self, groups: list[tuple[str, list[int]]]) -> list[tuple[str, list[int]]]:
        """The lightest of too many share the last one, which has no name."""
        if len(groups) <= MOST_LINES // 2:
            return groups
        heavy = {name for name, _ in sorted(groups, key=lambda each: -self._weight(each[1]))[:MOST_LINES // 2 - 1]}
        rest = [member for name, members in groups if name not in heavy for member in members]
        return [each for each in groups if each[0] in heavy] + [("", rest)]

    def _members(self, members: list[int], number: int, most: int) -> list[Line]:
        if len(members) <= most:
            return [self._single(index, number) for index in members]
        by_weight = sorted(members, key=lambda index: -self._weights[index])
        alone, rest = by_weight[:most - 1], by_weight[most - 1:]
        return [*(self._single(index, number) for index in sorted(alone)),
                Line(f"{len(rest):,} more of them", None, tuple(rest), number, True)]

    def _single(self, index: int, group: int | None = None) -> Line:
        thread = self._threads[index]
        return Line(thread["name"], thread["id"] or None, (index,), group, group is not None)

    def _group(self, name: str, members: list[int], number: int | None) -> Line:
        # A row without a number is of several threads.
        count = f"{len(members):,}{'' if all(self._threads[index]['id'] for index in members) else '+'}"
        return Line(f"{name} ({count})" if name else f"{count} more threads", None, tuple(members), number)

    @cached_property
    def _weights(self) -> list[float]:
        found = [0.0] * len(self._threads)
        for allocating, freeing, amount in self._cells:
            found[allocating] += amount.bytes
            found[freeing] += amount.bytes
        return found

    def _weight(self, members: list[int]) -> float:
        return sum(self._weights[index] for index in members)

    @cached_property
    def _sums(self) -> dict[tuple[int, int], tuple[Amount, float]]:
        """By row and column; a thread of a group counts in its own line and in the group's."""
        lines_of: list[list[int]] = [[] for _ in self._threads]
        for place, line in enumerate(self.lines):
            for index in line.threads:
                lines_of[index].append(place)
        found: dict[tuple[int, int], tuple[Amount, float]] = {}
        for allocating, freeing, amount in self._cells:
            own = amount.bytes if allocating == freeing else 0.0
            for row in lines_of[allocating]:
                for column in lines_of[freeing]:
                    before, kept = found.get((row, column), (NOTHING, 0.0))
                    found[row, column] = before + amount, kept + own
        return found

    @cached_property
    def rows(self) -> list[tuple[Line, list[Cell | None], Amount]]:
        """Each with its cells, None where there is nothing, and the sum of all."""
        places = range(len(self.lines))
        return [(line, [self._cell(row, column) for column in places], self._sum(row=row))
                for row, line in enumerate(self.lines)]

    @cached_property
    def freed(self) -> list[Amount]:
        return [self._sum(column=column) for column in range(len(self.lines))]

    def _sum(self, row: int | None = None, column: int | None = None) -> Amount:
        threads = self.lines[column if row is None else row].threads
        return sum((amount for allocating, freeing, amount in self._cells
                    if (freeing if row is None else allocating) in threads), NOTHING)

    @cached_property
    def most(self) -> float:
        return max((amount.bytes for _, _, amount in self._cells), default=0.0)

    def _cell(self, row: int, column: int) -> Cell | None:
        if (row, column) not in self._sums:
            return None
        amount, kept = self._sums[row, column]
        depth = 1 + math.log10(amount.bytes / self.most) / _DECADES if amount.bytes > 0 else 0
        return Cell(amount, kept, self._kind(row, column, amount, kept), min(max(depth, 0.06), 1))

    def _kind(self, row: int, column: int, amount: Amount, kept: float) -> str:
        if row == column and self._is_crowd(self.lines[row]):
            return "unknown"
        return "handed" if not kept else "kept" if kept >= amount.bytes else "mixed"

    def _is_crowd(self, line: Line) -> bool:
        """Threads that the library had no room to tell apart: one of them may have freed what another allocated."""
        return any(self._threads[index] == {"name": OTHER_THREADS, "id": 0} for index in line.threads)


def _pattern(thread: dict) -> str:
    """io_thd_1 and io_thd_2 are io_thd_*."""
    return re.sub(r"\d+$", "*", thread["name"])


def pairs(document: dict) -> list[tuple[dict, dict, Amount]]:
    """Every number of the matrix, the heaviest first."""
    threads = document["threads"]
    found = [(threads[each["allocated_by"]], threads[each["freed_by"]], Amount.read(each["amount"]))
             for each in document["matrix"]]
    return sorted(found, key=lambda each: -each[2].bytes)
