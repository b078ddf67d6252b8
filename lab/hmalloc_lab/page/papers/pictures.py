"""Pictures of the usual shapes."""

import statistics
from collections.abc import Callable, Sequence

import numpy as np

from ...bench.catalogue import Cell
from ...bench.results import Results
from ..figure import Chart, Point, Series, Table
from .common import GLIBC, Cast, Cells, Draw, Metric, Who, chosen, measured_in, values_of


def spread(x: float | str, values: Sequence[float]) -> Point:
    """The median of the rounds and their middle half."""
    low, median, high = np.quantile(values, (0.25, 0.5, 0.75))
    return Point(x, float(median), float(low), float(high))


def median_of(results: Results, cell: Cell, who: str, metric: Metric | None = None) -> float | None:
    values = values_of(results, cell, who, metric)
    return statistics.median(values.values()) if values else None


def lines(of: Cells, y_title: str, x: str = "threads", x_title: str = "threads", metric: Metric | None = None,
          convert: Callable[[float], float] = float, ideal: Callable[[Results, list[Cell]], list[Series]] | None = None,
          title: str = "", cast: Cast | None = None) -> Draw:
    """The metric over a parameter of the cells, a line for each allocator.  ideal: what the paper compares it to."""
    def draw(results: Results) -> list[Chart]:
        among = sorted(of(results), key=lambda cell: float(cell.point.get(x, 0)))
        found = []
        for who in measured_in(results, among, cast):
            points = [spread(float(cell.point[x]), [convert(value) for value in values.values()])
                      for cell in among if (values := values_of(results, cell, who, metric))]
            if points:
                found.append(Series(who, points))
        if not found:
            return []
        return [Chart("lines", x_title, y_title, [*found, *(ideal(results, among) if ideal else ())], title=title)]
    return draw


def speed_up(of: Cells, reference: Who | None = None, cast: Cast | None = None) -> Draw:
    """Over one thread of the reference, or without one over each allocator's own thread; with the ideal line."""
    def draw(results: Results) -> list[Chart]:
        among = of(results)
        alone = [cell for cell in among if cell.threads == 1]
        first = reference and chosen(results, reference)
        found = []
        for who in measured_in(results, among, cast):
            base = results.median(alone[0], first or who) if alone else None
            points = [spread(cell.threads, [base / value for value in values.values()])
                      for cell in among if base and (values := results.values(cell, who))]
            if points:
                found.append(Series(who, points))
        if not found:
            return []
        ideal = Series("linear", [Point(cell.threads, cell.threads) for cell in among], dashed=True)
        than = f"over one thread of {first}" if first else "over its own thread"
        return [Chart("lines", "threads", f"speed-up {than}", [*found, ideal])]
    return draw


def times_as_fast(of: Cells, reference: str = GLIBC, cast: Cast | None = None) -> Draw:
    """How many times as fast as the reference each allocator is with the same number of threads."""
    def draw(results: Results) -> list[Chart]:
        among = of(results)
        found = []
        for who in measured_in(results, among, cast):
            points = []
            for cell in among:
                mine, theirs = results.values(cell, who), results.values(cell, reference)
                if both := mine.keys() & theirs.keys():
                    points.append(spread(cell.threads, [theirs[each] / mine[each] for each in sorted(both)]))
            if points and who != reference:
                found.append(Series(who, points))
        return [Chart("lines", "threads", f"times as fast as {reference}", found)] if found else []
    return draw


def grid(of: Cells, head: str, label: Callable[[Cell], str], metric: Metric,
         convert: Callable[[float], float | None] = float, title: str = "", cast: Cast | None = None) -> Draw:
    """A row for each cell, a column for each allocator: medians."""
    def draw(results: Results) -> list[Table]:
        among = [cell for cell in of(results) if measured_in(results, [cell], cast)]
        names = measured_in(results, among, cast)
        rows = [[label(cell), *(_converted(median_of(results, cell, who, metric), convert) for who in names)]
                for cell in among]
        return [Table([head, *names], rows, title)] if rows else []
    return draw


def _converted(value: float | None, convert: Callable[[float], float | None]) -> float | None:
    return None if value is None else convert(value)


def together(*parts: Draw) -> Draw:
    return lambda results: [picture for part in parts for picture in part(results)]


def nothing(_: Results) -> list[Chart]:
    return []
