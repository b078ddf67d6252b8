"""hmalloc against HMalloc as published: what each repair (a row of claims.md) bought, or cost.

A repair is shown by one or several cells.  Its ratio is taken round by round, of several cells as their geometric mean.
Times with more threads than CPUs are left out, as in the papers' figures.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from ...bench.catalogue import Cell
from ...bench.results import Results
from ...bench.statistics import BETTER, TOO_FEW, WORSE, Ratio
from ..figure import CONFIRMED, NOT_CONFIRMED, UNTOLD, PaperFigure, Table, Verdict
from ..questions import MEMORY, TIME, metric_for
from .hoard import SINGLE, traces
from .measures import EXPLICIT, PAPER, PRELOADED, TODAY, Cells, all_cpus, cells, cpus, joined, most_threads, several_threads
from .predicates import level
from .vvmalloc import workload
from .wording import rows

WON, LOST, EVEN = "won", "lost", "no difference"
NOT_MEASURED, UNSHOWN, PRICED = "not measured", "no workload shows it", "its price"


def _largest(of: Cells) -> Cells:
    return lambda results: sorted(of(results), key=lambda cell: int(cell.point["size"]))[-1:]


_EXCHANGE = {shape: cells("exchange", shape=shape, size=64, threads=2) for shape in ("symmetric", "asymmetric")}
_THREADTEST, _SCALABILITY = all_cpus(cells("threadtest", size=8)), all_cpus(cells("linux-scalability"))
SHOWN_BY: dict[str, Cells] = {
    "state outside the block": joined(_THREADTEST, traces("threadtest")), "whole sweep": cells("footprint"),
    "whose cache": _EXCHANGE["symmetric"], "bounded caches": _largest(cells("pairs", pattern="random")),
    "flush of half a cache": _EXCHANGE["asymmetric"], "pool": SINGLE, "chunks": cells("idle"),
    "40 size classes": joined(all_cpus(cells("shbench")), traces("shbench")), "constant-time lists": _SCALABILITY,
    "large blocks": all_cpus(cells("largetest")), "memory goes back": cells("drain"),
    "thread exit": most_threads(several_threads(cells("linux-successors", rounds=8)))}
# Of local memory, which only the explicit interfaces have.
LOCAL: dict[str, Cells] = {
    "units of 64 KB": all_cpus(cells("ar-random")), "sizes of local blocks": cells("pairs", pattern="once", size=64),
    "lists of local superblocks": _SCALABILITY, "large local blocks": all_cpus(workload(2)),
    "interface with sizes": _EXCHANGE["symmetric"]}


@dataclass(frozen=True)
class Repair:
    name: str
    change: str              # as published; now
    aim: str                 # time | memory | correctness: then a cell shows its price
    also: str                # what else its cells show, or why none shows it

    @property
    def cells(self) -> Cells | None:
        return (SHOWN_BY | LOCAL).get(self.name)

    @property
    def sides(self) -> tuple[str, str]:
        return (EXPLICIT, PAPER) if self.name in LOCAL else (TODAY, PRELOADED)


REPAIRS = [Repair(*row) for row in rows("Repairs")]


def _said(ratio: Ratio | None) -> str:
    said = NOT_MEASURED if ratio is None else ratio.verdict
    return WON if said in BETTER else LOST if said in WORSE else said if said in (TOO_FEW, NOT_MEASURED) else EVEN


@dataclass(frozen=True)
class Outcome:
    """What was measured of a repair."""

    repair: Repair
    cells: list[Cell]
    time: Ratio | None
    memory: Ratio | None

    @property
    def verdict(self) -> str:
        """In what the repair was made for."""
        if self.repair.cells is None:
            return UNSHOWN
        if self.repair.aim == "correctness":
            return PRICED if self.time or self.memory else NOT_MEASURED
        return _said(self.time if self.repair.aim == "time" else self.memory)

    @property
    def besides(self) -> str:
        """In what it was not made for."""
        words = {LOST: "costs", WON: "saves"}
        others = {"time": _said(self.time), "memory": _said(self.memory)}
        return "; ".join(f"{words[said]} {name}" for name, said in others.items()
                         if name != self.repair.aim and said in words)

    @property
    def row(self) -> list[str | float | None]:
        repair, shown = self.repair, "nothing in this campaign"
        if repair.cells is None:
            shown = repair.also
        elif self.cells:
            who = " ({} over {})".format(*repair.sides) if repair.name in LOCAL else ""
            shown = ", ".join(cell.name for cell in self.cells) + who + (f"; {repair.also}" if repair.also else "")
        numbers = [number for ratio in (self.time, self.memory)
                   for number in ((ratio.median, ratio.low, ratio.high) if ratio else (None, None, None))]
        return [repair.name, "; ".join(filter(None, [self.verdict, self.besides])), repair.aim, *numbers, shown]


def outcome(results: Results, repair: Repair) -> Outcome:
    found = [cell for cell in (repair.cells(results) if repair.cells else [])
             if all(results.runs(cell.name, who) for who in repair.sides)]
    timed = [cell for cell in found if cell.threads <= cpus(results)]
    return Outcome(repair, found, _joint(results, repair, timed, lambda cell: metric_for(cell, TIME)),
                   _joint(results, repair, found, _memory))


def _memory(cell: Cell) -> str | None:
    """Of a replayed trace, what it had at most; of successors, the page faults that they began with left out."""
    own = {"replay": "max_allocated", "linux-successors": "faults_since_start"}
    return own.get(cell.workload) or metric_for(cell, MEMORY)


def _joint(results: Results, repair: Repair, among: list[Cell],
           metric_of: Callable[[Cell], str | None]) -> Ratio | None:
    """By round the geometric mean of the cells' ratios, of the rounds that have all of them."""
    by_cell = []
    for cell in among:
        if metric := metric_of(cell):
            mine, theirs = (results.values(cell, who, metric) for who in repair.sides)
            by_cell.append({each: math.log(mine[each] / theirs[each]) for each in mine.keys() & theirs.keys()
                            if mine[each] > 0 and theirs[each] > 0})
    if not by_cell:
        return None
    rounds = sorted(set.intersection(*map(set, by_cell)))
    return level([math.exp(sum(found[each] for found in by_cell) / len(by_cell)) for each in rounds])


def _table(results: Results) -> list[Table]:
    found = [outcome(results, repair) for repair in REPAIRS]
    columns = ["repair", "verdict", "made for", "time", "from", "to", "memory", "from", "to", "shown by"]
    return [Table(columns, [each.row for each in found],
                  f"{TODAY}'s time and memory over {PRELOADED}'s, each with its 95 % interval"),
            Table(["repair", "as published; now"], [[repair.name, repair.change] for repair in REPAIRS],
                  "What was changed")] if any(each.cells for each in found) else []


def _judge(results: Results) -> Verdict:
    for name in (TODAY, PRELOADED):
        if name not in results.allocators:
            return Verdict(UNTOLD, f"{name} was not measured.")
    by_verdict: dict[str, list[str]] = {}
    for repair in REPAIRS:
        by_verdict.setdefault(outcome(results, repair).verdict, []).append(repair.name)
    answer = (NOT_CONFIRMED if {LOST, EVEN} & by_verdict.keys()
              else UNTOLD if {NOT_MEASURED, TOO_FEW} & by_verdict.keys() or WON not in by_verdict else CONFIRMED)
    order = (WON, LOST, EVEN, TOO_FEW, NOT_MEASURED, PRICED, UNSHOWN)
    return Verdict(answer, " ".join(f"{said.capitalize()} ({len(names)}): {', '.join(names)}."
                                    for said in order if (names := by_verdict.get(said))))


_PAPER = "hmalloc against HMalloc as published"
FIGURES = [PaperFigure(_PAPER, label, title, claim, _table, _judge, reading, id="repairs")
           for label, title, claim, reading in rows(_PAPER)]
