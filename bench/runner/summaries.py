"""Medians, minima, spreads, and the means that issue and report speak of."""
import math
import statistics
from dataclasses import dataclass


@dataclass(frozen=True)
class Summary:
    median: float
    least: float
    spread: float  # interquartile range / median


def summarise(values):
    if not values:
        return None
    median = statistics.median(values)
    spread = 0.0
    if len(values) >= 4 and median:
        quarters = statistics.quantiles(values, n=4)
        spread = (quarters[2] - quarters[0]) / median
    return Summary(median, min(values), spread)


def geometric_mean(values):
    values = [value for value in values if value and value > 0]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


class Table:
    """The summaries of one metric: cell -> allocator name -> Summary."""

    def __init__(self, runs, cells, allocators, metric=None):
        self.cells = cells
        self.peers = [allocator.name for allocator in allocators if allocator.is_peer]
        self.rows = {}
        for cell in cells:
            row = {allocator.name: summarise(runs.metric(cell, allocator.name, metric or cell.metric))
                   for allocator in allocators}
            self.rows[cell.name] = {name: summary for name, summary in row.items() if summary}

    def value(self, cell, name, which):
        summary = self.rows[cell.name].get(name)
        return getattr(summary, which) if summary else None

    def best_peer(self, cell, which):
        """(name, value) of the best peer of one cell."""
        found = [(self.value(cell, name, which), name) for name in self.peers if self.value(cell, name, which)]
        return (min(found)[1], min(found)[0]) if found else (None, None)

    def of(self, workload):
        return [cell for cell in self.cells if cell.workload == workload]

    def ratios_to_best(self, workload, name, which):
        """cell name -> ratio to the best peer of that cell."""
        ratios = {}
        for cell in self.of(workload):
            value, (_, best) = self.value(cell, name, which), self.best_peer(cell, which)
            if value and best:
                ratios[cell.name] = value / best
        return ratios

    def ratio_to_peer(self, workload, name, peer, which):
        """Geometric mean, over the cells that both have, of the ratio to one single peer."""
        pairs = [(self.value(cell, name, which), self.value(cell, peer, which)) for cell in self.of(workload)]
        return geometric_mean([mine / theirs for mine, theirs in pairs if mine and theirs])


def peak_memory_means(table, names):
    """name -> (mean over cells, mean over workloads of their means) of the ratio to the leanest of each cell.  Among
    the allocators that any program can be run on: the explicit APIs are different programs."""
    workloads = dict.fromkeys(cell.workload for cell in table.cells if cell.counts_peak)
    means = {}
    for name in names:
        by_workload, everything = [], []
        for workload in workloads:
            ratios = []
            for cell in table.of(workload):
                row = {other: table.value(cell, other, "median") for other in names}
                leanest = min((value for value in row.values() if value), default=None)
                if row[name] and leanest:
                    ratios.append(row[name] / leanest)
            everything += ratios
            by_workload.append(geometric_mean(ratios))
        means[name] = (geometric_mean(everything), geometric_mean(by_workload))
    return means
