"""What all papers share: which cells a figure is made of, who was measured, and pictures of the usual shapes."""

from collections.abc import Callable, Sequence

import numpy as np

from ...bench.catalogue import Cell
from ...bench.results import Results
from ..figure import Chart, Point, Series, Table

Cells = Callable[[Results], list[Cell]]
Draw = Callable[[Results], Sequence[Chart | Table]]
Who = str | tuple[str, ...]  # a name, or several of which the first that was measured counts

GLIBC = "glibc"


def cells(workload: str, where: Callable[[Cell], bool] | None = None, **point) -> Cells:
    """The cells of a workload by number of threads; those with arenas or a latency clock only where asked for."""
    point = {"arenas": None, "latency": None, **point}
    return lambda results: sorted(results.select(workload, where, **point), key=lambda cell: cell.threads)


def joined(*parts: Cells) -> Cells:
    return lambda results: [cell for part in parts for cell in part(results)]


def one_thread(chosen: Cells) -> Cells:
    return lambda results: [cell for cell in chosen(results) if cell.threads == 1]


def most_threads(chosen: Cells) -> Cells:
    """Those of the largest number of threads that anything was measured with."""
    def choose(results: Results) -> list[Cell]:
        found = [cell for cell in chosen(results) if measured_in(results, [cell])]
        return [cell for cell in found if cell.threads == max(each.threads for each in found)]
    return choose


def cpus(results: Results) -> int:
    """Of the machine that measured; 0 where the campaign does not say."""
    return int(results.campaign.environment.get("CPUs") or 0)


def chosen(results: Results, who: Who) -> str:
    names = (who,) if isinstance(who, str) else who
    return next((name for name in names if name in results.allocators), names[0])


def measured_in(results: Results, among: Sequence[Cell]) -> list[str]:
    """The allocators that have a result in any of these cells, in the campaign's order."""
    return [name for name in results.allocators if any(results.runs(cell.name, name) for cell in among)]


# ---- Pictures. ------------------------------------------------------------------------------------------------------


def spread(x: float | str, values: Sequence[float]) -> Point:
    """The median of the rounds and their middle half."""
    low, median, high = np.quantile(values, (0.25, 0.5, 0.75))
    return Point(x, float(median), float(low), float(high))


def lines(of: Cells, y_title: str, x: str = "threads", x_title: str = "threads", metric: str | None = None,
          convert: Callable[[float], float] = float, ideal: Callable[[Results, list[Cell]], list[Series]] | None = None,
          title: str = "") -> Draw:
    """The metric over a parameter of the cells, a line for each allocator.  ideal: what the paper compares it to."""
    def draw(results: Results) -> list[Chart]:
        among = sorted(of(results), key=lambda cell: float(cell.point.get(x, 0)))
        found = []
        for who in measured_in(results, among):
            points = [spread(float(cell.point[x]), [convert(value) for value in values.values()])
                      for cell in among if (values := results.values(cell, who, metric))]
            if points:
                found.append(Series(who, points))
        if not found:
            return []
        return [Chart("lines", x_title, y_title, [*found, *(ideal(results, among) if ideal else ())], title=title)]
    return draw


def speed_up(of: Cells, baseline: str | None = None, metric: str | None = None) -> Draw:
    """Over one thread of the baseline, or without one over each allocator's own thread; with the ideal line."""
    def draw(results: Results) -> list[Chart]:
        among = of(results)
        alone = [cell for cell in among if cell.threads == 1]
        found = []
        for who in measured_in(results, among):
            base = results.median(alone[0], baseline or who, metric) if alone else None
            points = [spread(cell.threads, [base / value for value in values.values()])
                      for cell in among if base and (values := results.values(cell, who, metric))]
            if points:
                found.append(Series(who, points))
        if not found:
            return []
        ideal = Series("linear", [Point(cell.threads, cell.threads) for cell in among], dashed=True)
        than = f"over one thread of {baseline}" if baseline else "over one thread of the same allocator"
        return [Chart("lines", "threads", f"speed-up {than}", [*found, ideal])]
    return draw


def times_as_fast(of: Cells, baseline: str = GLIBC) -> Draw:
    """How many times as fast as the baseline each allocator is with the same number of threads."""
    def draw(results: Results) -> list[Chart]:
        among = of(results)
        found = []
        for who in measured_in(results, among):
            points = []
            for cell in among:
                mine, theirs = results.values(cell, who), results.values(cell, baseline)
                if both := mine.keys() & theirs.keys():
                    points.append(spread(cell.threads, [theirs[each] / mine[each] for each in sorted(both)]))
            if points and who != baseline:
                found.append(Series(who, points))
        return [Chart("lines", "threads", f"times as fast as {baseline}", found)] if found else []
    return draw


def grid(of: Cells, head: str, label: Callable[[Cell], str], metric: str,
         convert: Callable[[float], float | None] = float, title: str = "") -> Draw:
    """A row for each cell, a column for each allocator: medians."""
    def draw(results: Results) -> list[Table]:
        among = [cell for cell in of(results) if measured_in(results, [cell])]
        names = measured_in(results, among)
        rows = [[label(cell), *(_converted(results.median(cell, who, metric), convert) for who in names)]
                for cell in among]
        return [Table([head, *names], rows, title)] if rows else []
    return draw


def _converted(value: float | None, convert: Callable[[float], float | None]) -> float | None:
    return None if value is None else convert(value)


def together(*parts: Draw) -> Draw:
    return lambda results: [picture for part in parts for picture in part(results)]


def nothing(_: Results) -> list[Chart]:
    return []
