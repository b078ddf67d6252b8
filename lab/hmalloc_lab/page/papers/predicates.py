"""What a claim may ask.  A claim has clauses; a clause is a list of numbers with a range that each has to lie in.

  a number holds     when its whole 95 % interval lies in the range
  a number fails     when its whole interval lies outside
  anything else      cannot be told: an interval across the border, too few rounds, nothing measured

A claim is confirmed when all clauses hold, not confirmed when one fails.  Times are compared with as many threads as
the machine has CPUs and no more: beyond that the scheduler is measured.
"""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...bench.catalogue import Cell
from ...bench.results import Results
from ...bench.statistics import FEWEST, SAME, TOO_FEW, Ratio, interval, paired_ratio
from ..figure import CONFIRMED, NOT_CONFIRMED, UNTOLD, Verdict
from .measures import Cells, Metric, Who, alone, chosen, cpus, percent, runnable, values_of, with_threads

Show = Callable[[float], str]
Limit = float | Callable[..., float]  # of a number; or what makes it of a cell, and of the one it is compared with


@dataclass(frozen=True)
class Check:
    at: str              # "with 2 threads"
    ratio: Ratio | None
    least: float = 0.0
    most: float = math.inf
    show: Show = "{:.2f}".format
    below: bool = True   # a number below the range fails; else it tells nothing

    @property
    def too_few(self) -> bool:
        return self.ratio is not None and self.ratio.verdict == TOO_FEW

    @property
    def holds(self) -> bool | None:
        if self.ratio is None or self.too_few:
            return None
        if self.least <= self.ratio.low and self.ratio.high <= self.most:
            return True
        return False if self.ratio.high < self.least and self.below or self.ratio.low > self.most else None

    def __str__(self) -> str:
        if self.ratio is None:
            return f"nothing measured {self.at}"
        exact = self.too_few or self.ratio.low == self.ratio.high
        between = "" if exact else f" ({self.show(self.ratio.low)}\N{EN DASH}{self.show(self.ratio.high)})"
        return f"{self.show(self.ratio.median)}{between} {self.at}"


@dataclass(frozen=True)
class Finding:
    """What became of one clause."""

    holds: bool | None
    text: str
    limit: str = ""      # what of the claim this machine leaves out; said once for all clauses


Clause = Callable[[Results, Cells], Finding]  # the cells are the claim's, for a clause that has none of its own
Pairs = Callable[[Results, list[Cell]], list[tuple[Cell, Cell]]]


def judge(results: Results, of: Cells, clauses: Sequence[Clause], note: str) -> Verdict:
    findings = [clause(results, of) for clause in clauses]
    holds = [finding.holds for finding in findings]
    outcome = NOT_CONFIRMED if False in holds else UNTOLD if None in holds else CONFIRMED
    words = [finding.text for finding in findings] + [finding.limit for finding in findings] + [note]
    return Verdict(outcome, " ".join(dict.fromkeys(filter(None, words))))


def held(who: Sequence[Who], build: Callable[..., list[Check]], what: str, asked: str, of: Cells | None = None,
         crowded: bool = False, in_most: bool = False) -> Clause:
    """All checks hold.  build(results, cells, *names) makes them.  crowded: also with more threads than CPUs.
    in_most: more than half of the checks decide; otherwise one may fail the clause."""
    def clause(results: Results, usual: Cells) -> Finding:
        names, wanted = [chosen(results, each) for each in who], (of or usual)(results)
        gap = [f"{name} was not measured." for name in names if name not in results.allocators]
        gap += [] if wanted else ["This campaign has no such cells; a longer profile may."]
        checks = [] if gap else build(results, wanted if crowded else runnable(results, wanted), *names)
        if not checks:
            return Finding(None, gap[0] if gap else "Not measured with the threads that it takes, or more than the "
                                                    f"{cpus(results)} CPUs of this machine.")
        holds = [check.holds for check in checks]
        answer = False if False in holds else None if None in holds else True
        if in_most:
            half = len(holds) / 2
            answer = True if holds.count(True) > half else False if holds.count(False) >= half else None
        few = "; from too few rounds" if any(check.too_few for check in checks) else ""
        return Finding(answer, f"{what.format(*names)}: {', '.join(map(str, checks))} (asked: {asked}{few}).")
    return clause


def span(least: float = 0.0, most: float = math.inf, in_most: bool = False, show: Show = "{:.2f}".format) -> str:
    words = (f"at most {show(most)}" if least == 0 else f"at least {show(least)}" if most == math.inf
             else f"{show(least)} to {show(most)}")
    return words + (", in most" if in_most else "")


def _limit(limit: Limit, *about) -> float:
    return limit(*about) if callable(limit) else limit


# ---- Who against whom in the same cells. ----------------------------------------------------------------------------


def compared(who: Who, whom: Who, least: float = 0.0, most: float = math.inf, metric: Metric = None, what: str = "Time",
             at: Callable[[Cell], str] = with_threads, of: Cells | None = None, in_most: bool = False,
             crowded: bool = False) -> Clause:
    """The ratio of who's to whom's metric in each cell."""
    def build(results: Results, among: list[Cell], mine: str, theirs: str) -> list[Check]:
        return [Check(at(cell), paired_ratio(values_of(results, cell, mine, metric),
                                             values_of(results, cell, theirs, metric)), least, most) for cell in among]

    ratios = held((who, whom), build, what + " of {0} over {1}'s", span(least, most, in_most), of, crowded, in_most)

    def clause(results: Results, usual: Cells) -> Finding:
        found, wanted = ratios(results, usual), (of or usual)(results)
        among = runnable(results, wanted)
        left_out = among and len(among) < len(wanted) and "(asked" in found.text and not crowded
        limit = f"More threads than the {cpus(results)} CPUs are not judged." if left_out else ""
        return replace(found, limit=limit)
    return clause


def faster(who: Who, whom: Who, by: float = 0.0, **more) -> Clause:
    """by: 0.15 for an improvement of 15 %, as the papers count it: the other's time is 1.15 times as long."""
    return compared(who, whom, most=min(1 / (1 + by), 1 - SAME), **more)


def slower(who: Who, whom: Who, by: float = 0.0, **more) -> Clause:
    return compared(who, whom, least=1 + max(by, SAME), **more)


def alike(who: Who, whom: Who, within: float, **more) -> Clause:
    return compared(who, whom, least=1 / (1 + within), most=1 + within, **more)


# ---- One allocator in different cells. ------------------------------------------------------------------------------


def related(who: Who, pairs: Pairs, what: str, asked: str = "", least: Limit = 0.0, most: Limit = math.inf,
            at: Callable[[Cell, Cell], str] = lambda cell, base: with_threads(cell), metric: Metric = None, **more
            ) -> Clause:
    """The ratio of the metric in one cell to that in another, of each pair.  Limits may be made of both
    cells and the number of CPUs."""
    def build(results: Results, among: list[Cell], name: str) -> list[Check]:
        return [Check(at(cell, base), paired_ratio(values_of(results, cell, name, metric),
                                                   values_of(results, base, name, metric)),
                      _limit(least, cell, base, cpus(results)),
                      _limit(most, cell, base, cpus(results))) for cell, base in pairs(results, among)]
    return held((who,), build, f"{{0}}, {what}", asked or span(least, most), **more)


def to_one_thread(_: Results, among: list[Cell]) -> list[tuple[Cell, Cell]]:
    return [(cell, base) for base in alone(among) for cell in among if cell.threads > 1]


def most_to_one_thread(results: Results, among: list[Cell]) -> list[tuple[Cell, Cell]]:
    return to_one_thread(results, among)[-1:]


def ends(_: Results, among: list[Cell]) -> list[tuple[Cell, Cell]]:
    return [(among[-1], among[0])] if len(among) > 1 else []


def from_to(cell: Cell, base: Cell) -> str:
    return f"from {base.threads} to {cell.threads} threads"


def linear(who: Who, up_to: int, share: float = 0.7, **more) -> Clause:
    """The speed-up with t threads is at least this share of t, to the paper's number of processors."""
    scales = related(who, to_one_thread, "time against one thread", f"at least {percent(share)} of linear speed-up",
                     most=lambda cell, *_: 1 / (share * cell.threads), **more)

    def clause(results: Results, of: Cells) -> Finding:
        found = scales(results, of)
        if found.holds and cpus(results) < up_to:
            return Finding(None, found.text, f"The claim goes to {up_to} CPUs, this machine has {cpus(results)}.")
        return found
    return clause


def stops_scaling(who: Who, after: int, gain: float = 0.1) -> Clause:
    """The most threads are not faster than so many would be, but for that gain, although there are CPUs for them."""
    def pairs(_: Results, among: list[Cell]) -> list[tuple[Cell, Cell]]:
        few, many = ([cell for cell in among if (cell.threads > after) == beyond] for beyond in (False, True))
        return [(many[-1], few[-1])] if few and many else []
    return on_cpus(after + 1, related(
        who, pairs, "change in the time",
        f"at most {percent(gain)} faster than linear up to {after} thread{'s' * (after > 1)}",
        least=lambda _, few, cpus: few.threads / after / (1 + gain), at=from_to))


def slows_down(who: Who, by: float = SAME, metric: Metric = None) -> Clause:
    """The most threads that there are CPUs for take longer than one."""
    return on_cpus(2, related(who, most_to_one_thread, "change in the time", least=1 + by, at=from_to, metric=metric))


# ---- Numbers that are compared with nobody's. -----------------------------------------------------------------------


def level(values: Sequence[float]) -> Ratio | None:
    """The median of the rounds with its interval."""
    if not values:
        return None
    low, high = interval([values], np.median) if len(values) >= FEWEST else (min(values), max(values))
    return Ratio(statistics.median(values), low, high, len(values))


def exactly(value: float, rounds: int = FEWEST) -> Ratio:
    return Ratio(value, value, value, rounds)


def lies(who: Who, what: str, metric: Metric, least: float = 0.0, most: Limit = math.inf, show: Show = "{:.2f}".format,
         at: Callable[[Cell], str] = with_threads, number: Callable[[list[float]], Ratio | None] = level,
         asked: str = "", of: Cells | None = None, below_from: int = 0) -> Clause:
    """number: what is made of the rounds.  The most may be made of the cell.  below_from: with fewer CPUs a number that
    is too small tells nothing."""
    def build(results: Results, among: list[Cell], name: str) -> list[Check]:
        return [Check(at(cell), number(list(values_of(results, cell, name, metric).values())), least,
                      _limit(most, cell), show, cpus(results) >= below_from) for cell in among]

    lie = held((who,), build, f"{{0}}, {what}", asked or span(least, most, show=show), of, crowded=True)

    def clause(results: Results, usual: Cells) -> Finding:
        found = lie(results, usual)
        few = found.holds is None and cpus(results) < below_from
        return replace(found, limit=f"The claim is about {below_from} threads, this machine has {cpus(results)} CPUs: "
                                    "fewer threads wait less.") if few else found
    return clause


# ---- What there is no telling here. ---------------------------------------------------------------------------------


def on_cpus(fewest: int, clause: Clause) -> Clause:
    """A claim about a machine of so many CPUs."""
    return lambda results, of: clause(results, of) if cpus(results) >= fewest else Finding(
        None, f"The claim takes {fewest} CPUs, this machine has {cpus(results)}.")


def untold(why: str) -> Clause:
    return lambda *_: Finding(None, why)
