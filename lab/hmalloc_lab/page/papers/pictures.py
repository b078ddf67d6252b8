"""What the figures show: curves over the cells, and tables with a row for each cell or allocator."""

import statistics
from collections.abc import Callable, Sequence

import numpy as np

from ...bench.catalogue import Cell
from ...bench.results import Results
from ..figure import Chart, Point, Series, Table
from .measures import GLIBC, Cast, Metric, Who, all_but_baselines, alone, chosen, measured_in, median_of, values_of

Draw = Callable[[Results, list[Cell]], list[Chart | Table]]
Values = Callable[[Results, list[Cell], Cell, str], Sequence[float]]  # of a cell among these, on an allocator
Extra = Callable[[Results, list[Cell]], list[Series]]
Columns = Callable[[Results, list[Cell]], dict[str, Callable[[Cell], str | float | None]]]

LINUX_CAST = all_but_baselines("one_lock")  # the Linux paper has Solaris beside glibc


def spread(x: float, values: Sequence[float]) -> Point:
    """The median of the rounds and their middle half."""
    low, median, high = np.quantile(values, (0.25, 0.5, 0.75))
    return Point(x, float(median), float(low), float(high))


def curves(y_title: str, values: Values, cast: Cast | None = None, x: str = "threads", x_title: str = "",
           extra: Extra = lambda *_: [], point: Callable[[float, Sequence[float]], Point] = spread,
           key: Callable[[Cell, str], tuple[str, str]] = lambda cell, who: ("", who), first: str = "") -> Draw:
    """Lines over a parameter of the cells.  key: on which chart and in which line a cell on an allocator stands.
    first: the allocator whose lines come first."""
    def draw(results: Results, of: list[Cell]) -> list[Chart]:
        among = sorted(of, key=lambda cell: (cell.threads, float(cell.point[x])))
        found: dict[str, dict[str, list[Point]]] = {}
        for who in sorted(measured_in(results, among, cast), key=lambda name: name != first):
            for cell in among:
                if numbers := values(results, among, cell, who):
                    chart, line = key(cell, who)
                    found.setdefault(chart, {}).setdefault(line, []).append(point(cell.point[x], numbers))
        return [Chart("lines", x_title or x, y_title, [*(Series(*each) for each in found[title].items()),
                                                       *extra(results, among)], title=title) for title in found]
    return draw


def lines(y_title: str, metric: Metric = None, cast: Cast | None = None, **more) -> Draw:
    return curves(y_title, lambda results, _, cell, who: list(values_of(results, cell, who, metric).values()), cast,
                  **more)


def times_one_thread(results: Results, among: list[Cell], cell: Cell, who: str, reference: str = "") -> list[float]:
    base = next((median_of(results, one, reference or who) for one in alone(among)), None)
    return [base / value for value in values_of(results, cell, who).values()] if base else []


def linear_line(_: Results, among: list[Cell]) -> list[Series]:
    return [Series("linear", [Point(count, count) for count in dict.fromkeys(cell.threads for cell in among)],
                   dashed=True)]


def speed_up(cast: Cast, reference: Who = ()) -> Draw:
    """Over one thread of the reference, or without one over each allocator's own thread; with the ideal line."""
    def draw(results: Results, among: list[Cell]) -> list[Chart]:
        first = chosen(results, reference) if reference else ""
        than = f"one thread of {first}" if first else "its own thread"
        return curves(f"speed-up over {than}", lambda *about: times_one_thread(*about, first), cast,
                      extra=linear_line)(results, among)
    return draw


def times_as_fast(cast: Cast, reference: str = GLIBC) -> Draw:
    """How many times as fast as the reference each allocator is with the same number of threads."""
    def values(results: Results, _: list[Cell], cell: Cell, who: str) -> list[float]:
        mine, theirs = (values_of(results, cell, name) for name in (who, reference))
        return [] if who == reference else [theirs[each] / mine[each] for each in sorted(mine.keys() & theirs.keys())]
    return curves(f"times as fast as {reference}", values, cast)


def size_curves(results: Results, among: list[Cell], who: str, aligned: int) -> dict[int, dict[float, float]]:
    """round -> size -> nanoseconds per write."""
    return {run.round: dict(map(tuple, run.metrics["series"])) for cell in among if cell.point["aligned"] == aligned
            for run in results.runs(cell.name, who) if run.metrics.get("series")}


def size_chart(results: Results, among: list[Cell]) -> list[Chart]:
    """Each allocator with objects as they come, and glibc's aligned ones for comparison."""
    def medians(who: str, aligned: int) -> list[Point]:
        found = size_curves(results, among, who, aligned).values()
        return [Point(size, statistics.median(curve[size] for curve in found if size in curve))
                for size in sorted({size for curve in found for size in curve})]

    found = [Series(who, points) for who in measured_in(results, among, LINUX_CAST) if (points := medians(who, 0))]
    ideal = [Series("aligned to lines", points, dashed=True) for points in [medians(GLIBC, 1)] if points]
    return [Chart("lines", "object size, B", "ns per write", [*found, *ideal])] if found else []


def together(*parts: Draw) -> Draw:
    return lambda results, among: [picture for part in parts for picture in part(results, among)]


# ---- Tables. --------------------------------------------------------------------------------------------------------


def table(columns: Sequence[str], rows: list[list], title: str = "") -> list[Table]:
    return [Table(columns, rows, title)] if rows else []


def program(cell: Cell) -> str:
    return str(cell.point.get("trace", cell.workload))


def grid(head: str, columns: Columns, title: str, given: int = 0, label: Callable[[Cell], str] = program) -> Draw:
    """A row for each of the cells, as far as they have a number besides what is given."""
    def draw(results: Results, among: list[Cell]) -> list[Table]:
        asked = columns(results, among)
        rows = [[label(cell), *(value(cell) for value in asked.values())] for cell in among]
        return table([head, *asked], [row for row in rows if any(each is not None for each in row[given + 1:])], title)
    return draw


def column(results: Results, who: str, metric: Metric = None, unit: float = 1) -> Callable[[Cell], float | None]:
    def value(cell: Cell) -> float | None:
        found = median_of(results, cell, who, metric)
        return None if found is None else found / unit
    return value


def of_each(metric: Metric, cast: Cast, unit: float = 1) -> Columns:
    """A column for each allocator."""
    return lambda results, among: {who: column(results, who, metric, unit) for who in measured_in(results, among, cast)}
