"""How a claim is judged.  A claim has clauses; a clause is a list of numbers with a range that each has to lie in.

  a ratio holds      when its whole 95 % interval lies in the range
  a ratio fails      when its whole interval lies outside
  anything else      cannot be told: an interval across the border, too few rounds, nothing measured

A claim is confirmed when all clauses hold, not confirmed when one fails.  Times are compared with as many threads as
the machine has CPUs and no more: beyond that the scheduler is measured.
"""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ...bench.catalogue import Cell
from ...bench.results import Results
from ...bench.statistics import FEWEST, TOO_FEW, Ratio, interval
from ..figure import CONFIRMED, NOT_CONFIRMED, UNTOLD, Verdict
from .common import Cells, cpus, percent


def ratio_text(value: float) -> str:
    return f"{value:.2f}"


@dataclass(frozen=True)
class Check:
    at: str              # "with 2 threads"
    ratio: Ratio | None
    least: float = 0.0
    most: float = math.inf
    show: Callable[[float], str] = ratio_text

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
            return f"{self.show(self.ratio.median)} {self.at}"
        interval_text = f"{self.show(self.ratio.low)}\N{EN DASH}{self.show(self.ratio.high)}"
        return f"{self.show(self.ratio.median)} ({interval_text}) {self.at}"


@dataclass(frozen=True)
class Amount:
    """A number that has no interval: the spread of a few runs, the largest of counts."""

    at: str
    value: float | None
    least: float = 0.0
    most: float = math.inf
    show: Callable[[float], str] = percent

    @property
    def too_few(self) -> bool:
        return self.value is None

    @property
    def holds(self) -> bool | None:
        return None if self.value is None else self.least <= self.value <= self.most

    def __str__(self) -> str:
        return f"unknown {self.at}" if self.value is None else f"{self.show(self.value)} {self.at}"


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


def weighed(what: str, checks: Sequence[Check | Amount], asked: str, in_most: bool = False) -> Finding:
    """in_most: more than half of the checks decide; otherwise all have to hold and one may fail the clause."""
    holds = [check.holds for check in checks]
    if in_most:
        answer = True if 2 * holds.count(True) > len(holds) else False if 2 * holds.count(False) >= len(holds) else None
    else:
        answer = False if False in holds else None if None in holds else True
    few = "; from too few rounds" if any(check.too_few for check in checks) else ""
    return Finding(answer, f"{what}: {', '.join(map(str, checks))} (asked: {asked}{few}).")


def level(values: dict[int, float]) -> Ratio | None:
    """The median of the rounds with its interval, of numbers that are compared with nobody's."""
    found = list(values.values())
    if not found:
        return None
    low, high = interval([found], np.median) if len(found) >= FEWEST else (min(found), max(found))
    return Ratio(statistics.median(found), low, high, len(found))


def missing(results: Results, wanted: list[Cell], usable: Sequence, *names: str) -> str | None:
    """Why nothing can be compared, where nothing can."""
    for name in names:
        if name not in results.allocators:
            return f"{name} was not measured."
    if not wanted:
        return "This campaign has no such cells."
    if not usable:
        return f"Not measured with the threads that it takes, or more than the {cpus(results)} CPUs of this machine."
    return None


def span(least: float = 0.0, most: float = math.inf, in_most: bool = False,
         show: Callable[[float], str] = ratio_text) -> str:
    words = (f"at most {show(most)}" if least == 0 else f"at least {show(least)}" if most == math.inf
             else f"{show(least)} to {show(most)}")
    return words + (", in most" if in_most else "")
