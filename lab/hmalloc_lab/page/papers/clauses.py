"""The clauses that several papers share: who against whom, and one allocator in different cells."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from ...bench.catalogue import Cell
from ...bench.results import Results
from ...bench.statistics import SAME, paired_ratio
from .common import Cells, Metric, Who, chosen, cpus, percent, runnable, values_of, with_threads
from .judging import Check, Clause, Finding, missing, on_cpus, span, weighed

# ---- Who against whom in the same cells. ----------------------------------------------------------------------------


def compared(who: Who, whom: Who, of: Cells, least: float = 0.0, most: float = math.inf, metric: Metric | None = None,
             what: str = "Time", at: Callable[[Cell], str] | None = None, in_most: bool = False,
             crowded: bool = False) -> Clause:
    """The ratio of who's to whom's metric in each of these cells.  crowded: also with more threads than CPUs."""
    def clause(results: Results) -> Finding:
        mine, theirs = chosen(results, who), chosen(results, whom)
        among = of(results) if crowded else runnable(results, of(results))
        if gap := missing(results, of(results), among, mine, theirs):
            return Finding(None, gap)
        checks = [Check((at or with_threads)(cell), paired_ratio(values_of(results, cell, mine, metric),
                                                                 values_of(results, cell, theirs, metric)), least, most)
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
            metric: Metric | None = None, crowded: bool = False) -> Clause:
    """crowded: also with more threads than CPUs."""
    def clause(results: Results) -> Finding:
        name = chosen(results, who)
        among = pairs(results, of(results) if crowded else runnable(results, of(results)))
        if gap := missing(results, of(results), among, name):
            return Finding(None, gap)
        checks = [Check(pair.at, paired_ratio(values_of(results, pair.cell, name, metric),
                                              values_of(results, pair.base, name, metric)), pair.least, pair.most)
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
                                      f"at most {percent(gain)} faster than linear up to {after} "
                                      f"thread{'s' * (after > 1)}"))


def slows_down(who: Who, of: Cells, by: float = SAME, metric: Metric | None = None) -> Clause:
    """The most threads that there are CPUs for take longer than one."""
    def pairs(_: Results, among: list[Cell]) -> list[Pair]:
        alone = [cell for cell in among if cell.threads == 1]
        return [Pair(f"from 1 to {among[-1].threads} threads", among[-1], alone[0], least=1 + by)
                ] if alone and among[-1].threads > 1 else []
    return on_cpus(2, related(who, of, pairs, "change in the time", span(1 + by), metric))
