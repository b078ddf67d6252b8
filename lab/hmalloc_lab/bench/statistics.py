"""What the raw runs can say, and what not.

A ratio compares two allocators in one cell.  Runs of one round were made next to each other, in the same mood of the
machine, so they are divided round by round; the median of these ratios is shown, which one disturbed round cannot move,
with the percentile bootstrap's 95 % interval.  "Not distinguishable" is said where the interval includes 1, and also
where the median is within 1 % of it: a link order, an address or a page colour moves a program by as much, is drawn
once per build, and no number of rounds averages it out.  Below five rounds nothing is said: even the range from the
smallest to the largest of four ratios covers the true median in 87 campaigns of 100 only (of five: 94).

A mean over a family is the geometric mean of the cells' ratios to the best drop-in allocator of each cell; its interval
resamples the cells.  It says how much the mean owes to the choice of cells, not how noisy they were.

Not claimed: that a cell's interval holds for another machine or another build; that all intervals of a table hold at once
(about one in twenty will miss); that the best of many allocators is as good as it looks: the smallest of noisy medians
flatters its owner a little, in every cell.  With seven to twenty rounds the interval covers 88 to 95 of 100, not exactly 95.
"""

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import bootstrap

from .catalogue import APART, Cell
from .results import Results

FEWEST = 5        # rounds for a ratio, cells for a mean: below, the interval is just their range
SAME = 0.01       # closer to 1 is "not distinguishable", however narrow the interval
_RESAMPLES = 1999
_SEED = 1         # the same data always give the same report

FASTER, SLOWER, LEANER, FATTER = "faster", "slower", "leaner", "fatter"
EVEN, TOO_FEW = "not distinguishable", "too few rounds"
BETTER, WORSE = (FASTER, LEANER), (SLOWER, FATTER)
VERDICTS = (*BETTER, *WORSE, EVEN, TOO_FEW)

_MEMORY = frozenset({"vm_hwm_kb", "vm_peak_kb", "peak_kb", "rss_kb", "kb_per_thread", "footprint", "end_ratio",
                     "drift_rss_kb", "minor_faults", "faults_since_start", "a_over_u", "max_allocated"})


def is_memory(metric: str) -> bool:
    return metric in _MEMORY


@dataclass(frozen=True)
class Ratio:
    """Mine divided by theirs: below 1 is better.  Of fewer than FEWEST rounds, low and high are the smallest and the
    largest."""

    median: float
    low: float
    high: float
    rounds: int
    memory: bool = False

    @property
    def verdict(self) -> str:
        if self.rounds < FEWEST:
            return TOO_FEW
        if self.low <= 1 <= self.high or abs(self.median - 1) < SAME:
            return EVEN
        return (LEANER if self.memory else FASTER) if self.median < 1 else (FATTER if self.memory else SLOWER)


@dataclass(frozen=True)
class Mean:
    """A geometric mean over cells.  Of fewer than FEWEST cells, low and high are the smallest and the largest."""

    value: float
    low: float
    high: float
    cells: int


@dataclass(frozen=True)
class Duel:
    """An allocator against the best of its peers in one cell."""

    cell: Cell
    peer: str
    ratio: Ratio


def round_ratios(mine: dict[int, float], theirs: dict[int, float]) -> list[float]:
    """By round, of the rounds that both have; where nothing was counted (0) there is no ratio."""
    return [mine[number] / theirs[number] for number in sorted(mine.keys() & theirs.keys())
            if mine[number] > 0 and theirs[number] > 0]


def paired_ratio(mine: dict[int, float], theirs: dict[int, float], memory: bool = False) -> Ratio | None:
    """round -> value of both; None without a common round."""
    ratios = round_ratios(mine, theirs)
    if not ratios:
        return None
    return Ratio(statistics.median(ratios), *_interval_or_range(ratios, np.median), len(ratios), memory)


def ratio(results: Results, cell: Cell, allocator: str, reference: str, metric: str | None = None) -> Ratio | None:
    return paired_ratio(results.values(cell, allocator, metric), results.values(cell, reference, metric),
                        is_memory(metric or cell.metric))


def interval(samples: Sequence[Sequence[float]], statistic: Callable) -> tuple[float, float]:
    """The bootstrap's 95 % interval of statistic(*samples, axis=); each sample is resampled on its own."""
    # Not BCa: its jackknife tells nothing about a median.
    found = bootstrap(samples, statistic, n_resamples=_RESAMPLES, method="percentile", vectorized=True, rng=_SEED)
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


def _interval_or_range(values: Sequence[float], statistic: Callable) -> tuple[float, float]:
    return interval([values], statistic) if len(values) >= FEWEST else (min(values), max(values))


def geometric_mean(values: Iterable[float]) -> float | None:
    """None of nothing, and where a value is not above 0."""
    values = list(values)
    return statistics.geometric_mean(values) if values and min(values) > 0 else None


def mean(values: Sequence[float]) -> Mean | None:
    """The geometric mean with its interval."""
    value = geometric_mean(values)
    if value is None:
        return None
    low, high = _interval_or_range([math.log(each) for each in values], np.mean)
    return Mean(value, math.exp(low), math.exp(high), len(values))


def to_best(results: Results, cell: Cell, metric: str | None = None) -> dict[str, float]:
    """Drop-in allocator -> its median divided by the smallest one."""
    medians = {row.name: median for row in results.drop_ins
               if (median := results.median(cell, row.name, metric)) is not None}
    best = min(medians.values(), default=0)
    return {name: median / best for name, median in medians.items()} if best > 0 else {}


def family_means(results: Results, metric: str | None = None) -> dict[str, dict[str, Mean]]:
    """Family -> drop-in allocator -> mean of its ratios to the best.  "all": over all cells; where every cell is asked
    for its own metric, over those that count time, without a clock in their way."""
    cells = list(results.cells.values())
    families = {family: [cell for cell in cells if cell.family == family] for family in results.families}
    families["all"] = [cell for cell in together(cells)
                       if metric or not (is_memory(cell.metric) or cell.family == "latency")]
    found = {family: means_over(results, members, metric) for family, members in families.items()}
    return {family: means for family, means in found.items() if means}


def together(cells: list[Cell]) -> list[Cell]:
    """Without the families that stand apart, unless they alone were measured."""
    return [cell for cell in cells if cell.family not in APART] or cells


def memory_means(results: Results) -> dict[str, Mean]:
    """The same for the peak of the resident memory, over the cells whose peak says something."""
    cells = together(list(results.cells.values()))
    return means_over(results, [cell for cell in cells if cell.counts_peak], "vm_hwm_kb")


def explicit_means(results: Results) -> dict[str, dict[str, Mean]]:
    """Each explicit interface -> family -> mean of its ratios to the same allocator preloaded, over the cells that both
    run."""
    found: dict[str, dict[str, Mean]] = {}
    for row in results.of_kind("explicit"):
        for family in results.families:
            ratios = [against.median for cell in results.cells.values() if cell.family == family
                      and (against := ratio(results, cell, row.name, row.name.partition("-")[0]))]
            if over_family := mean(ratios):
                found.setdefault(row.name, {})[family] = over_family
    return found


def duels(results: Results, allocator: str, metric: str | None = None) -> list[Duel]:
    """In every cell that both run, against the peer with the smallest median; the worst for the allocator first."""
    peers = [row for row in results.drop_ins if row.name != allocator]
    found = []
    for cell in results.cells.values():
        counts = not cell.is_study and (metric is None or cell.counts_peak)
        if counts and (best := results.best(cell, peers, metric)):
            against = ratio(results, cell, allocator, best[0], metric)
            if against:
                found.append(Duel(cell, best[0], against))
    return sorted(found, key=lambda duel: -duel.ratio.median)


def means_over(results: Results, cells: Iterable[Cell], metric: str | None = None) -> dict[str, Mean]:
    """Drop-in allocator -> mean of its ratios to the best over these cells, but for studies."""
    ratios: dict[str, list[float]] = {}
    for cell in cells:
        if not cell.is_study:
            for name, value in to_best(results, cell, metric).items():
                ratios.setdefault(name, []).append(value)
    return {name: found for name, values in ratios.items() if (found := mean(values))}
