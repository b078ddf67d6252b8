"""hmalloc against HMalloc as published: what each repair bought, or cost.  The repairs are in repair_list.py.

A repair is shown by one or several cells.  Its ratio is taken round by round, of several cells as their geometric mean.
Times with more threads than CPUs are left out, as in the papers' figures.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from ...bench.catalogue import Cell
from ...bench.results import Results
from ...bench.statistics import BETTER, SAME, TOO_FEW, WORSE, Ratio
from ..figure import CONFIRMED, NOT_CONFIRMED, UNTOLD, PaperFigure, Table, Verdict
from ..questions import MEMORY, TIME, metric_for
from .baselines import HMALLOC_PAPER, TODAY
from .common import cpus, percent
from .judging import level
from .repair_list import REPAIRS, Repair

PAPER = "hmalloc against HMalloc as published"
WON, LOST, NO_DIFFERENCE = "won", "lost", "no difference"
NOT_MEASURED, UNSHOWN, PRICED = "not measured", "no workload shows it", "its price"
CORRECTNESS = "correctness"


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
        if self.repair.aim == CORRECTNESS:
            return PRICED if self.time or self.memory else NOT_MEASURED
        return _said(self.time if self.repair.aim == "time" else self.memory)

    @property
    def besides(self) -> str:
        """In what it was not made for."""
        others = {name: _said(ratio) for name, ratio in (("time", self.time), ("memory", self.memory))
                  if name != self.repair.aim}
        return "; ".join(f"{'costs' if said == LOST else 'saves'} {name}" for name, said in others.items()
                         if said in (WON, LOST))


def _said(ratio: Ratio | None) -> str:
    if ratio is None:
        return NOT_MEASURED
    verdict = ratio.verdict
    return WON if verdict in BETTER else LOST if verdict in WORSE else TOO_FEW if verdict == TOO_FEW else NO_DIFFERENCE


# ---- Ratios. --------------------------------------------------------------------------------------------------------


def outcome(results: Results, repair: Repair) -> Outcome:
    chosen = repair.cells(results) if repair.cells else []
    both = [cell for cell in chosen
            if results.runs(cell.name, repair.mine) and results.runs(cell.name, repair.theirs)]
    timed = [cell for cell in both if cell.threads <= cpus(results)]
    return Outcome(repair, both, _joint(results, repair, timed, _time), _joint(results, repair, both, _memory))


def _time(cell: Cell) -> str | None:
    return metric_for(cell, TIME)


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
            mine, theirs = (results.values(cell, who, metric) for who in (repair.mine, repair.theirs))
            by_cell.append({each: math.log(mine[each] / theirs[each]) for each in mine.keys() & theirs.keys()
                            if mine[each] > 0 and theirs[each] > 0})
    if not by_cell:
        return None
    rounds = sorted(set.intersection(*map(set, by_cell)))
    return level({each: math.exp(sum(found[each] for found in by_cell) / len(by_cell)) for each in rounds})


# ---- Table and verdict. ---------------------------------------------------------------------------------------------


def _outcomes(results: Results) -> list[Outcome]:
    return [outcome(results, repair) for repair in REPAIRS]


def _table(results: Results) -> list[Table]:
    found = _outcomes(results)
    if not any(each.cells for each in found):
        return []
    columns = ["repair", "verdict", "made for", "time", "from", "to", "memory", "from", "to", "shown by"]
    return [Table(columns, [_row(each) for each in found],
                  f"{TODAY}'s time and memory over {HMALLOC_PAPER}'s, each with its 95 % interval"),
            Table(["repair", "as published; now"], [[repair.name, repair.change] for repair in REPAIRS],
                  "What was changed")]


def _row(found: Outcome) -> list[str | float | None]:
    repair = found.repair
    shown = repair.unshown if repair.cells is None else _shown_by(found)
    verdict = "; ".join(filter(None, [found.verdict, found.besides]))
    return [repair.name, verdict, repair.aim, *_numbers(found.time), *_numbers(found.memory), shown]


def _shown_by(found: Outcome) -> str:
    if not found.cells:
        return "nothing in this campaign"
    who = "" if found.repair.mine == TODAY else f" ({found.repair.mine} over {found.repair.theirs})"
    return ", ".join(cell.name for cell in found.cells) + who + (f"; {found.repair.also}" if found.repair.also else "")


def _numbers(ratio: Ratio | None) -> tuple[float | None, float | None, float | None]:
    return (None, None, None) if ratio is None else (ratio.median, ratio.low, ratio.high)


def _judge(results: Results) -> Verdict:
    for name in (TODAY, HMALLOC_PAPER):
        if name not in results.allocators:
            return Verdict(UNTOLD, f"{name} was not measured.")
    by_verdict: dict[str, list[str]] = {}
    for each in _outcomes(results):
        by_verdict.setdefault(each.verdict, []).append(each.repair.name)
    answer = (NOT_CONFIRMED if {LOST, NO_DIFFERENCE} & by_verdict.keys()
              else UNTOLD if {NOT_MEASURED, TOO_FEW} & by_verdict.keys() or WON not in by_verdict else CONFIRMED)
    order = (WON, LOST, NO_DIFFERENCE, TOO_FEW, NOT_MEASURED, PRICED, UNSHOWN)
    return Verdict(answer, " ".join(f"{said.capitalize()} ({len(names)}): {', '.join(names)}."
                                    for said in order if (names := by_verdict.get(said))))


FIGURES = [PaperFigure(
    PAPER, "Repairs", "What each repair bought",
    f"Deviations: each of {len(REPAIRS)} repairs, that closes a hole of the paper or replaces a rule of it, buys what "
    "it was made for, time or memory, where a workload shows it.",
    _table, _judge,
    f"Below 1 is better. Won and lost are told where the whole interval is on one side of 1 and the median at least "
    f"{percent(SAME)} from it; the first word is about what the repair was made for. Times are taken with at most as "
    "many threads as CPUs. The repairs are in one allocator together: a cell that shows one may show others as well.",
    id="repairs")]
