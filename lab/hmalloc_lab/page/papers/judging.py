"""How a claim is judged.  A claim has clauses; a clause is a list of ratios with a range that each has to lie in.

  a ratio holds      when its whole 95 % interval lies in the range
  a ratio fails      when its whole interval lies outside
  anything else      cannot be told: an interval across the border, too few rounds, nothing measured

A claim is confirmed when all clauses hold, not confirmed when one fails.  Times are compared with as many threads as
the machine has CPUs and no more: beyond that the scheduler is measured.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ...bench.catalogue import Cell
from ...bench.results import Results
from ...bench.statistics import SAME, TOO_FEW, Ratio, paired_ratio, ratio
from ..figure import CONFIRMED, NOT_CONFIRMED, UNTOLD, Verdict
from .common import Cells, Who, chosen, cpus


@dataclass(frozen=True)
class Check:
    at: str              # "with 2 threads"
    ratio: Ratio | None
    least: float = 0.0
    most: float = math.inf

    @property
    def too_few(self) -> bool:
        return self.ratio is not None and self.ratio.verdict == TOO_FEW

    @property
    def holds(self) -> bool | None:
        if self.ratio is None or self.too_few:
            return None
        if self.least <= self.ratio.low and self.ratio.high <= self.most:
            return True
        return False if self.ratio.high < self.least or self.ratio.low > self.most else None

    def __str__(self) -> str:
        if self.ratio is None:
            return f"nothing measured {self.at}"
        if self.too_few:
            return f"{self.ratio.median:.2f} {self.at}"
        return f"{self.ratio.median:.2f} ({self.ratio.low:.2f}\N{EN DASH}{self.ratio.high:.2f}) {self.at}"


@dataclass(frozen=True)
class Share:
    """A share that has no pairs and so no interval: the spread of a few runs."""

    at: str
    value: float | None
    least: float = 0.0
    most: float = math.inf

    @property
    def too_few(self) -> bool:
        return self.value is None

    @property
    def holds(self) -> bool | None:
        return None if self.value is None else self.least <= self.value <= self.most

    def __str__(self) -> str:
        return f"unknown {self.at}" if self.value is None else f"{percent(self.value)} {self.at}"


@dataclass(frozen=True)
class Finding:
    """What became of one clause."""

    holds: bool | None
    text: str
    limit: str = ""      # what of the claim this machine leaves out; said once for all clauses


Clause = Callable[[Results], Finding]
Judge = Callable[[Results], Verdict]


def judged(*clauses: Clause, note: str = "") -> Judge:
    def judge(results: Results) -> Verdict:
        findings = [clause(results) for clause in clauses]
        holds = [finding.holds for finding in findings]
        outcome = NOT_CONFIRMED if False in holds else UNTOLD if None in holds else CONFIRMED
        words = [finding.text for finding in findings] + [finding.limit for finding in findings] + [note]
        return Verdict(outcome, " ".join(dict.fromkeys(filter(None, words))))
    return judge


def untold(why: str) -> Judge:
    return lambda _: Verdict(UNTOLD, why)


def where_measured(of: Cells, judge: Judge, otherwise: str) -> Judge:
    """otherwise: why this campaign has no such cells."""
    return lambda results: judge(results) if of(results) else Verdict(UNTOLD, otherwise)


def on_cpus(fewest: int, clause: Clause) -> Clause:
    """A claim about a machine of so many CPUs."""
    return lambda results: clause(results) if cpus(results) >= fewest else Finding(
        None, f"The claim takes {fewest} CPUs, this machine has {cpus(results)}.")


def weighed(what: str, checks: Sequence["Check | Share"], asked: str, in_most: bool = False) -> Finding:
    """in_most: more than half of the checks decide; otherwise all have to hold and one may fail the clause."""
    holds = [check.holds for check in checks]
    if in_most:
        answer = True if 2 * holds.count(True) > len(holds) else False if 2 * holds.count(False) >= len(holds) else None
    else:
        answer = False if False in holds else None if None in holds else True
    few = "; from too few rounds" if any(check.too_few for check in checks) else ""
    return Finding(answer, f"{what}: {', '.join(map(str, checks))} (asked: {asked}{few}).")


# ---- Who against whom in the same cells. ----------------------------------------------------------------------------


def compared(who: Who, whom: Who, of: Cells, least: float = 0.0, most: float = math.inf, metric: str | None = None,
             what: str = "Time", at: Callable[[Cell], str] | None = None, in_most: bool = False,
             crowded: bool = False) -> Clause:
    """The ratio of who's to whom's metric in each of these cells.  crowded: also with more threads than CPUs."""
    def clause(results: Results) -> Finding:
        mine, theirs = chosen(results, who), chosen(results, whom)
        among = of(results) if crowded else runnable(results, of(results))
        if gap := missing(results, of(results), among, mine, theirs):
            return Finding(None, gap)
        checks = [Check((at or with_threads)(cell), ratio(results, cell, mine, theirs, metric), least, most)
                  for cell in among]
        found = weighed(f"{what} of {mine} over {theirs}'s", checks, span(least, most, in_most), in_most)
        if len(among) == len(of(results)):
            return found
        return replace(found, limit=f"More threads than the {cpus(results)} CPUs are not judged.")
    return clause


def faster(who: Who, whom: Who, of: Cells, by: float = 0.0, **more) -> Clause:
    """by: 0.15 for an improvement of 15 %, as the papers count it: the other's time is 1.15 times as long."""
    return compared(who, whom, of, most=min(1 / (1 + by), 1 - SAME), **more)


def slower(who: Who, whom: Who, of: Cells, by: float = 0.0, **more) -> Clause:
    return compared(who, whom, of, least=1 + max(by, SAME), **more)


def alike(who: Who, whom: Who, of: Cells, within: float, **more) -> Clause:
    return compared(who, whom, of, least=1 / (1 + within), most=1 + within, **more)


# ---- One allocator in different cells. ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """The ratio of the metric in one cell to that in another, and where it has to lie."""

    at: str
    cell: Cell
    base: Cell
    least: float = 0.0
    most: float = math.inf


def related(who: Who, of: Cells, pairs: Callable[[Results, list[Cell]], list[Pair]], what: str, asked: str,
            metric: str | None = None, crowded: bool = False) -> Clause:
    """crowded: also with more threads than CPUs."""
    def clause(results: Results) -> Finding:
        name = chosen(results, who)
        among = pairs(results, of(results) if crowded else runnable(results, of(results)))
        if gap := missing(results, of(results), among, name):
            return Finding(None, gap)
        checks = [Check(pair.at, paired_ratio(results.values(pair.cell, name, metric),
                                              results.values(pair.base, name, metric)), pair.least, pair.most)
                  for pair in among]
        return weighed(f"{name}, {what}", checks, asked)
    return clause


def linear(who: Who, of: Cells, up_to: int, share: float = 0.7) -> Clause:
    """The speed-up with t threads is at least this share of t, to the paper's number of processors."""
    def pairs(_: Results, among: list[Cell]) -> list[Pair]:
        alone = [cell for cell in among if cell.threads == 1]
        return [Pair(with_threads(cell), cell, alone[0], most=1 / (share * cell.threads))
                for cell in among if alone and cell.threads > 1]

    scales = related(who, of, pairs, "time against one thread", f"at least {percent(share)} of linear speed-up")

    def clause(results: Results) -> Finding:
        found = scales(results)
        if found.holds and cpus(results) < up_to:
            return Finding(None, found.text, f"The claim goes to {up_to} CPUs, this machine has {cpus(results)}.")
        return found
    return clause


def stops_scaling(who: Who, of: Cells, after: int, gain: float = 0.1) -> Clause:
    """The most threads are not faster than so many would be, but for that gain, although there are CPUs for them."""
    def pairs(_: Results, among: list[Cell]) -> list[Pair]:
        few = [cell for cell in among if cell.threads <= after]
        many = [cell for cell in among if cell.threads > after]
        return [Pair(f"from {few[-1].threads} to {many[-1].threads} threads", many[-1], few[-1],
                     least=few[-1].threads / after / (1 + gain))] if few and many else []
    return on_cpus(after + 1, related(who, of, pairs, "change in the time",
                                      f"at most {percent(gain)} faster than linear up to {after} threads"))


def runnable(results: Results, among: list[Cell]) -> list[Cell]:
    return [cell for cell in among if cell.threads <= cpus(results)]


def missing(results: Results, wanted: list[Cell], usable: list[Cell], *names: str) -> str | None:
    """Why nothing can be compared, where nothing can."""
    for name in names:
        if name not in results.allocators:
            return f"{name} was not measured."
    if not wanted:
        return "This campaign has no such cells."
    if not usable:
        return f"Not measured with the threads that it takes, or more than the {cpus(results)} CPUs of this machine."
    return None


def with_threads(cell: Cell) -> str:
    return "with 1 thread" if cell.threads == 1 else f"with {cell.threads} threads"


def span(least: float = 0.0, most: float = math.inf, in_most: bool = False) -> str:
    words = (f"at most {most:.2f}" if least == 0 else f"at least {least:.2f}" if most == math.inf
             else f"{least:.2f} to {most:.2f}")
    return words + (", in most" if in_most else "")


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"
