"""What paired measurements can say: medians, spread, and whether a ratio differs from 1 at all."""

import math
import random
import statistics
from dataclasses import dataclass

# Six pairs that all point the same way happen by chance in 3 of 100 cases; five in 6.
FEWEST_PAIRS = 6
# Verdicts that say nothing about who is ahead.
TOO_FEW, NOT_SHOWN = "too few runs", "not shown"
_RESAMPLES = 4000
_LEVEL = 0.95


@dataclass(frozen=True)
class Spread:
    """Median, and half the distance between the quartiles as a share of it."""

    median: float
    relative: float


def spread(values: list[float]) -> Spread:
    median = statistics.median(values)
    if len(values) < 2 or median == 0:
        return Spread(median, 0.0)
    lower, _, upper = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(median, (upper - lower) / 2 / median)


@dataclass(frozen=True)
class Ratio:
    """Median of the pairs' ratios with its 95 % interval; the interval is None when there are too few pairs."""

    median: float
    low: float | None
    high: float | None

    @property
    def verdict(self) -> str:
        if self.low is None or self.high is None:
            return TOO_FEW
        if self.low <= 1 <= self.high:
            return NOT_SHOWN
        share = abs(self.median - 1)
        amount = f"{self.median:.1f} times" if self.median >= 2 else f"{share:.0%}" if share >= 0.01 else "<1%"
        return f"{amount} {'less' if self.median < 1 else '' if self.median >= 2 else 'more'}".strip()


def paired(numerators: list[float], denominators: list[float]) -> Ratio | None:
    """The ratio of runs that were made next to each other; None where nothing was measured (all zero)."""
    ratios = [n / d for n, d in zip(numerators, denominators, strict=True) if d > 0]
    if not ratios or len(ratios) < len(numerators):
        return None
    median = statistics.median(ratios)
    if len(ratios) < FEWEST_PAIRS:
        return Ratio(median, None, None)
    # Seeded: the same measurements always read the same.
    draw = random.Random(len(ratios)).choices
    medians = sorted(statistics.median(draw(ratios, k=len(ratios))) for _ in range(_RESAMPLES))
    tail = (1 - _LEVEL) / 2
    return Ratio(median, medians[math.floor(tail * _RESAMPLES)], medians[math.ceil((1 - tail) * _RESAMPLES) - 1])
