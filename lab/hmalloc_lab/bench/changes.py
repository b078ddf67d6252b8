"""What `bench compare` says of one cell, or of the mean of many: new divided by old, and whether that is chance."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from . import detection, statistics
from .statistics import FEWEST


@dataclass(frozen=True)
class Change:
    """New divided by old.  higher, lower: how likely that would be by chance if it were not by half the threshold."""

    allocator: str
    where: str
    factor: float
    low: float
    high: float
    memory: bool
    higher: float
    lower: float
    scatter: float = 0.0
    verdict: str = ""


def tested(name: str, where: str, shown: tuple[float, float, float], after: list[float], before: list[float] | None,
           threshold: float, memory: bool) -> Change:
    limit = detection.boundary(threshold)
    turned = [1 / ratio for ratio in after], before and [1 / ratio for ratio in before]
    return Change(name, where, *shown, memory, detection.chance(after, before, limit), detection.chance(*turned, limit),
                  detection.scatter(after, before))


def means(changes: Iterable[Change], threshold: float) -> list[Change]:
    found, limit = [], detection.boundary(threshold)
    for name in dict.fromkeys(change.allocator for change in changes):
        for memory in (False, True):
            factors = [change.factor for change in changes if change.allocator == name and change.memory == memory]
            mean = statistics.mean(factors)
            if mean and mean.cells >= FEWEST:
                where = f"mean of {mean.cells} {'memory' if memory else 'time'} ratios"
                found.append(Change(name, where, mean.value, mean.low, mean.high, memory,
                                    detection.chance_of_mean(factors, limit),
                                    detection.chance_of_mean([1 / factor for factor in factors], limit)))
    return found


def judged(changes: list[Change]) -> list[Change]:
    """The same with their verdicts: each depends on how many were looked at."""
    higher = detection.is_shown([change.higher for change in changes])
    lower = detection.is_shown([change.lower for change in changes])
    return [replace(change, verdict=_verdict(change, *shown)) for change, *shown in zip(changes, higher, lower)]


def _verdict(change: Change, higher: bool, lower: bool) -> str:
    if higher:
        return statistics.FATTER if change.memory else statistics.SLOWER
    if lower:
        return statistics.LEANER if change.memory else statistics.FASTER
    return statistics.EVEN if change.low <= 1 <= change.high else "not shown"
