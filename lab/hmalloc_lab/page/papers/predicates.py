"""What a claim may ask.  A claim has predicates; a predicate is a range, and numbers that each have to lie in it.

  a number holds     when its whole 95 % interval lies in the range
  a number fails     when its whole interval lies outside
  anything else      cannot be told: an interval across the border, too few rounds, nothing measured

A claim is confirmed when all its predicates hold, not confirmed when one fails; where it cannot be told, the verdict says
what that would take.  Times are compared with as many threads as the machine has CPUs and no more: beyond that the
scheduler is measured.
"""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ...bench.catalogue import Cell
from ...bench.results import Results
from ...bench.statistics import FEWEST, SAME, TOO_FEW, Ratio, interval, paired_ratio
from ..figure import CONFIRMED, NOT_CONFIRMED, UNTOLD, Verdict
from ..formats import counted
from .measures import Allocator, Cells, Metric, chosen, cpus, percent, place, runnable, unlike, values_of

_LONGER = "a campaign of the profile paper or full"
Pairs = Callable[[Results, list[Cell]], list[tuple[Cell, Cell]]]  # each cell with the one that it is compared with


@dataclass(frozen=True)
class Number:
    at: str                # "with 2 threads"
    ratio: Ratio | None    # none where nothing was measured
    expected: float = 1.0  # the range is in multiples of it


@dataclass(frozen=True)
class Finding:
    """What became of one predicate; and where it cannot be told, how many CPUs and what else that would take."""

    holds: bool | None
    text: str = ""
    cpus: int = 0
    lacks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Predicate:
    allocators: Sequence[Allocator]
    numbers: Callable[..., list[Number]]  # of the results, the cells and the allocators' names
    what: str
    least: float = 0.0
    most: float = math.inf
    asked: str = ""
    show: Callable[[float], str] = "{:.2f}".format
    of: Cells | None = None         # its cells, where they are not the claim's
    oversubscribed: bool = False    # also with more threads than CPUs
    in_most: bool = False           # more than half of the numbers decide; otherwise one may fail the predicate
    cpus: int = 0                   # with fewer nothing can be told
    cpus_to_hold: int = 0           # with fewer it can fail, but not hold
    cpus_to_fall_short: int = 0     # with fewer a number below the range tells nothing
    lacks: tuple[str, ...] = ()     # what no campaign here can have

    def find(self, results: Results, of_claim: Cells) -> Finding:
        here, wanted = cpus(results), (self.of or of_claim)(results)
        names = [chosen(results, each) for each in self.allocators]
        if self.lacks or here < self.cpus:
            return Finding(None, cpus=self.cpus, lacks=self.lacks)
        if absent := [f"runs of {name}" for name in names if name not in results.allocators]:
            return Finding(None, lacks=tuple(absent))
        among = wanted if self.oversubscribed else runnable(lambda _: wanted)(results)
        numbers = self.numbers(results, among, *names)
        if not numbers:
            beyond = [cell.threads for cell in wanted if cell not in among]
            return Finding(None, cpus=min(beyond, default=0), lacks=() if beyond else (_LONGER,))
        return self._finding(numbers, names, here)

    def _finding(self, numbers: Sequence[Number], names: Sequence[str], here: int) -> Finding:
        holds = [self._holds(number, here) for number in numbers]
        answer = False if False in holds else None if None in holds else True
        if self.in_most:
            half = len(holds) / 2
            answer = True if holds.count(True) > half else False if holds.count(False) >= half else None
        asked = (self.asked or self._range()) + ", in most" * self.in_most
        few = "; from too few rounds" * any(number.ratio is not None and number.ratio.verdict == TOO_FEW
                                            for number in numbers)
        text = f"{self.what.format(*names)}: {'; '.join(map(self._said, numbers))} (asked: {asked}{few})."
        more = max(self.cpus_to_hold if answer else 0, self.cpus_to_fall_short if answer is None else 0)
        if more > here:
            return Finding(None, text, more)
        unmeasured = [f"results {number.at}" for number in numbers if number.ratio is None]
        return Finding(answer, text, lacks=tuple(unmeasured or ["more rounds"]) if answer is None else ())

    def _holds(self, number: Number, here: int) -> bool | None:
        ratio, least, most = number.ratio, self.least * number.expected, self.most * number.expected
        if ratio is None or ratio.verdict == TOO_FEW:
            return None
        if least <= ratio.low and ratio.high <= most:
            return True
        return False if ratio.low > most or ratio.high < least and here >= self.cpus_to_fall_short else None

    def _said(self, number: Number) -> str:
        ratio = number.ratio
        if ratio is None:
            return f"nothing measured {number.at}"
        exact = ratio.verdict == TOO_FEW or ratio.low == ratio.high
        between = "" if exact else f" ({self.show(ratio.low)}\N{EN DASH}{self.show(ratio.high)})"
        return f"{self.show(ratio.median)}{between} {number.at}"

    def _range(self) -> str:
        least, most = self.show(self.least), self.show(self.most)
        if self.least == 0:
            return f"at most {most}"
        return f"at least {least}" if self.most == math.inf else f"{least} to {most}"


def judge(results: Results, of: Cells, predicates: Sequence[Predicate]) -> Verdict:
    findings = [predicate.find(results, of) for predicate in predicates]
    holds = [finding.holds for finding in findings]
    outcome = NOT_CONFIRMED if False in holds else UNTOLD if None in holds else CONFIRMED
    fewest = max(finding.cpus for finding in findings)
    lacks = dict.fromkeys(lack for finding in findings for lack in finding.lacks)
    takes = ", ".join([*([counted(fewest, "CPU")] if fewest else []), *lacks])
    rest = f"To tell{' the rest' if outcome == NOT_CONFIRMED else ''}, it takes {takes}." if takes else ""
    texts = filter(None, [*dict.fromkeys(finding.text for finding in findings), rest])
    return Verdict(outcome, " ".join(texts), takes)


def unavailable(what: str) -> Predicate:
    return Predicate((), lambda *_: [], "", lacks=(what,))


# ---- One allocator against another in the same cells. ---------------------------------------------------------------


def compared(allocator: Allocator, reference: Allocator, least: float = 0.0, most: float = math.inf, metric: Metric = None,
             what: str = "time", **more) -> Predicate:
    def numbers(results: Results, among: list[Cell], *names: str) -> list[Number]:
        return [Number(place(cell, among), paired_ratio(*(values_of(results, cell, name, metric) for name in names)))
                for cell in among]
    return Predicate((allocator, reference), numbers, f"{{0}}'s {what} over {{1}}'s", least, most, **more)


def faster(allocator: Allocator, reference: Allocator, by: float = 0.0, **more) -> Predicate:
    """by: 0.15 for an improvement of 15 %, as the papers count it: the other's time is 1.15 times as long."""
    return compared(allocator, reference, most=min(1 / (1 + by), 1 - SAME), **more)


def slower(allocator: Allocator, reference: Allocator, by: float = 0.0, **more) -> Predicate:
    return compared(allocator, reference, 1 + max(by, SAME), **more)


def alike(allocator: Allocator, reference: Allocator, within: float, **more) -> Predicate:
    return compared(allocator, reference, 1 / (1 + within), 1 + within, **more)


# ---- One allocator in different cells. ------------------------------------------------------------------------------


def related(allocator: Allocator, pairs: Pairs, what: str = "time", metric: Metric = None,
            expected: Callable[[Cell, Cell, int], float] = lambda cell, base, cpus: 1.0, **more) -> Predicate:
    def numbers(results: Results, among: list[Cell], name: str) -> list[Number]:
        return [Number(f"{place(cell, among)} over {unlike(base, cell)}",
                       paired_ratio(values_of(results, cell, name, metric), values_of(results, base, name, metric)),
                       expected(cell, base, cpus(results))) for cell, base in pairs(results, among)]
    return Predicate((allocator,), numbers, f"{{0}}'s {what}", **more)


def pairs_where(test: Callable[[Cell, Cell], bool]) -> Pairs:
    return lambda _, among: [(cell, base) for base in among for cell in among if test(cell, base)]


to_one_thread = pairs_where(lambda cell, base: base.threads == 1 < cell.threads)


def most_to_one_thread(results: Results, among: list[Cell]) -> list[tuple[Cell, Cell]]:
    return to_one_thread(results, among)[-1:]


def last_to_first(_: Results, among: list[Cell]) -> list[tuple[Cell, Cell]]:
    return [(among[-1], among[0])] if len(among) > 1 else []


def linear(allocator: Allocator, up_to: int, share: float = 0.7) -> Predicate:
    """The speed-up with t threads is at least this share of t, to the paper's number of processors."""
    return related(allocator, to_one_thread, expected=lambda cell, *_: 1 / cell.threads, most=1 / share,
                   asked=f"at least {percent(share)} of linear speed-up", cpus_to_hold=up_to)


def stops_scaling(allocator: Allocator, after: int, gain: float = 0.1) -> Predicate:
    """The most threads are not faster than so many would be, but for that gain, although there are CPUs for them."""
    def pairs(_: Results, among: list[Cell]) -> list[tuple[Cell, Cell]]:
        few, many = ([cell for cell in among if (cell.threads > after) == beyond] for beyond in (False, True))
        return [(many[-1], few[-1])] if few and many else []
    return related(allocator, pairs, expected=lambda _, few, cpus: few.threads / after, least=1 / (1 + gain), cpus=after + 1,
                   asked=f"at most {percent(gain)} faster than linear up to {counted(after, 'thread')}")


def slows_down(allocator: Allocator, metric: Metric = None) -> Predicate:
    """The most threads that there are CPUs for take longer than one."""
    return related(allocator, most_to_one_thread, metric=metric, least=1 + SAME, cpus=2)


# ---- Numbers that are compared with nobody's. -----------------------------------------------------------------------


def lies(allocator: Allocator, what: str, metric: Metric, number: Callable[[list[float]], Ratio | None] | None = None,
         expected: Callable[[Cell], float] = lambda cell: 1.0, **more) -> Predicate:
    """number: what is made of the rounds, their median unless told."""
    def numbers(results: Results, among: list[Cell], name: str) -> list[Number]:
        return [Number(place(cell, among), (number or level)(list(values_of(results, cell, name, metric).values())),
                       expected(cell)) for cell in among]
    return Predicate((allocator,), numbers, f"{{0}}'s {what}", oversubscribed=True, **more)


def level(values: Sequence[float]) -> Ratio | None:
    """The median of the rounds with its interval."""
    if not values:
        return None
    low, high = interval([values], np.median) if len(values) >= FEWEST else (min(values), max(values))
    return Ratio(statistics.median(values), low, high, len(values))


def exactly(value: float, rounds: int = FEWEST) -> Ratio:
    return Ratio(value, value, value, rounds)
