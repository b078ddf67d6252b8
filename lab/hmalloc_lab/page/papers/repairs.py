"""hmalloc against HMalloc as published: what each repair (a row of claims.md) bought, or cost.

A repair is shown by one or several cells.  Its ratio is taken round by round, of several cells as their geometric mean.
Times with more threads than CPUs are left out, as in the papers' figures.
"""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import geometric_mean

from ...bench.catalogue import Cell
from ...bench.results import Results
from ...bench.statistics import BETTER, TOO_FEW, WORSE, Ratio
from ..figure import CONFIRMED, NOT_CONFIRMED, UNTOLD, PaperFigure, Table, Verdict
from ..questions import MEMORY, TIME, metric_for
from .measures import HMALLOC, PRELOADED, Cells, all_cpus, cells, cpus, joined, most_threads, several_threads, traces
from .predicates import level
from .special import workload
from .wording import section

WON, LOST, EVEN = "won", "lost", "no difference"
NOT_MEASURED, UNSHOWN, PRICED = "not measured", "no workload shows it", "its price"
_VERDICTS = (WON, LOST, EVEN, TOO_FEW, NOT_MEASURED, PRICED, UNSHOWN)


def _largest(of: Cells) -> Cells:
    return lambda results: sorted(of(results), key=lambda cell: int(cell.point["size"]))[-1:]


_EXCHANGE = {shape: cells("exchange", shape=shape, size=64, threads=2) for shape in ("symmetric", "asymmetric")}
_SCALABILITY = all_cpus(cells("linux-scalability"))
SHOWN_BY: dict[str, Cells] = {
    "state outside the block": joined(all_cpus(cells("threadtest", size=8)), traces("threadtest")),
    "whole sweep": cells("footprint"), "whose cache": _EXCHANGE["symmetric"],
    "bounded caches": _largest(cells("pairs", pattern="random")), "flush of half a cache": _EXCHANGE["asymmetric"],
    "pool": traces("python", "perl", "sqlite"), "chunks": cells("idle"),
    "40 size classes": joined(all_cpus(cells("shbench")), traces("shbench")), "constant-time lists": _SCALABILITY,
    "large blocks": all_cpus(cells("largetest")), "memory goes back": cells("drain"),
    "thread exit": most_threads(several_threads(cells("linux-successors", rounds=8)))}
# Of local memory, which only the explicit interfaces have.
LOCAL: dict[str, Cells] = {
    "local superblocks": all_cpus(cells("ar-random")), "sizes of local blocks": cells("pairs", pattern="once", size=64),
    "lists of local superblocks": _SCALABILITY, "large local blocks": all_cpus(workload(2)),
    "interface with sizes": _EXCHANGE["symmetric"]}


@dataclass(frozen=True)
class Repair:
    name: str
    change: str  # as published; now
    aim: str     # time | memory | correctness: then a cell shows its price
    also: str    # what else its cells show, or why none shows it

    @property
    def cells(self) -> Cells | None:
        return (SHOWN_BY | LOCAL).get(self.name)

    @property
    def sides(self) -> tuple[str, str]:
        return ("hmalloc-explicit", HMALLOC) if self.name in LOCAL else ("hmalloc", PRELOADED)


REPAIRS = [Repair(*row) for row in section("Repairs")[1]]


@dataclass(frozen=True)
class Outcome:
    """What was measured of a repair."""

    repair: Repair
    cells: list[Cell]
    ratios: dict[str, Ratio | None]  # of time and of memory

    @property
    def verdict(self) -> str:
        """In what the repair was made for."""
        if self.repair.cells is None:
            return UNSHOWN
        if self.repair.aim == "correctness":
            return PRICED if any(self.ratios.values()) else NOT_MEASURED
        return _said(self.ratios[self.repair.aim])

    @property
    def row(self) -> list[str | float | None]:
        repair, words = self.repair, {LOST: "costs", WON: "saves"}
        besides = [f"{words[said]} {name}" for name, ratio in self.ratios.items()
                   if name != repair.aim and (said := _said(ratio)) in words]
        numbers = [number for ratio in self.ratios.values()
                   for number in ((ratio.median, ratio.low, ratio.high) if ratio else (None,) * 3)]
        sides = " ({} over {})".format(*repair.sides) if repair.name in LOCAL else ""
        shown = "; ".join(filter(None, [", ".join(cell.name for cell in self.cells) + sides, repair.also]))
        if not self.cells:
            shown = repair.also if repair.cells is None else "nothing in this campaign"
        return [repair.name, "; ".join([self.verdict, *besides]), repair.aim, *numbers, shown]


def _said(ratio: Ratio | None) -> str:
    said = NOT_MEASURED if ratio is None else ratio.verdict
    return WON if said in BETTER else LOST if said in WORSE else said if said in (TOO_FEW, NOT_MEASURED) else EVEN


def outcome(results: Results, repair: Repair) -> Outcome:
    found = [cell for cell in (repair.cells(results) if repair.cells else [])
             if all(results.runs(cell.name, name) for name in repair.sides)]
    timed = [cell for cell in found if cell.threads <= cpus(results)]
    return Outcome(repair, found, {"time": _joint(results, repair, timed, lambda cell: metric_for(cell, TIME)),
                                   "memory": _joint(results, repair, found, _memory)})


def _memory(cell: Cell) -> str | None:
    """Of a replayed trace, what it had at most; of successors, the page faults that they began with left out."""
    own = {"replay": "max_allocated", "linux-successors": "faults_since_start"}
    return own.get(cell.workload) or metric_for(cell, MEMORY)


def _joint(results: Results, repair: Repair, among: list[Cell], metric_of: Callable[[Cell], str | None]) -> Ratio | None:
    """By round the geometric mean of the cells' ratios, of the rounds that have all of them."""
    by_cell = []
    for cell, metric in ((cell, metric) for cell in among if (metric := metric_of(cell))):
        mine, theirs = (results.values(cell, name, metric) for name in repair.sides)
        by_cell.append({each: mine[each] / theirs[each] for each in mine.keys() & theirs.keys()
                        if mine[each] > 0 and theirs[each] > 0})
    rounds = sorted(set.intersection(*map(set, by_cell))) if by_cell else []
    return level([geometric_mean(found[each] for found in by_cell) for each in rounds])


def _table(results: Results) -> list[Table]:
    found = [outcome(results, repair) for repair in REPAIRS]
    columns = ["repair", "verdict", "made for", "time", "from", "to", "memory", "from", "to", "shown by"]
    return [Table(columns, [each.row for each in found],
                  f"hmalloc's time and memory over {PRELOADED}'s, each with its 95 % interval"),
            Table(["repair", "as published; now"], [[repair.name, repair.change] for repair in REPAIRS],
                  "What was changed")] if any(each.cells for each in found) else []


def _judge(results: Results) -> Verdict:
    if absent := [f"runs of {name}" for name in ("hmalloc", PRELOADED) if name not in results.allocators]:
        return Verdict(UNTOLD, f"To tell, it takes {', '.join(absent)}.", ", ".join(absent))
    names: dict[str, list[str]] = {said: [] for said in _VERDICTS}
    for repair in REPAIRS:
        names[outcome(results, repair).verdict].append(repair.name)
    reason = " ".join(f"{said.capitalize()} ({len(among)}): {', '.join(among)}." for said, among in names.items() if among)
    if names[LOST] or names[EVEN]:
        return Verdict(NOT_CONFIRMED, reason)
    if names[WON] and not names[NOT_MEASURED] and not names[TOO_FEW]:
        return Verdict(CONFIRMED, reason)
    lacking = names[NOT_MEASURED] + names[TOO_FEW]
    return Verdict(UNTOLD, reason, f"more rounds or cells for {len(lacking)} of {len(REPAIRS)} repairs")


_PAPER = "hmalloc against HMalloc as published"
_NOTE, ((_LABEL, _TITLE, _CLAIM, _READING),) = section(_PAPER)
FIGURE = PaperFigure(_PAPER, _LABEL, _TITLE, _CLAIM, _table, _judge, _READING, _NOTE, id="repairs")
