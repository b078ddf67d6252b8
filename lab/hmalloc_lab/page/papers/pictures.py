"""What the figures show: curves over the cells, and tables with a row for each cell or allocator."""

import statistics
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ...bench.catalogue import Cell
from ...bench.results import Results
from ..figure import Chart, Point, Series, Table
from ..formats import counted
from .measures import Allocator, Metric, Shown, all_but_baselines, chosen, cpus, measured_in, median_of, values_of
from .special import FAULTS, SECONDS, arenas, predicted, size_curves, threads_per_cpu

Draw = Callable[[Results, list[Cell]], list[Chart | Table]]
Values = Callable[[Results, list[Cell], Cell, str], Sequence[float]]  # of a cell among these, on an allocator
Extra = Callable[[Results, list[Cell]], list[Series]]


def spread(x: float, values: Sequence[float]) -> Point:
    """The median of the rounds and their middle half."""
    low, median, high = np.quantile(values, (0.25, 0.5, 0.75))
    return Point(x, float(median), float(low), float(high))


def curves(y_title: str, values: Values, shown: Shown = lambda _: True, x: str = "threads", x_title: str = "",
           extra: Extra = lambda *_: [], point: Callable[[float, Sequence[float]], Point] = spread,
           key: Callable[[Cell, str], tuple[str, str]] = lambda cell, allocator: ("", allocator), first: str = "") -> Draw:
    """Lines over a parameter of the cells.  key: on which chart and in which line a cell on an allocator stands.
    first: the allocator whose lines come first."""
    def draw(results: Results, of: list[Cell]) -> list[Chart]:
        among = sorted(of, key=lambda cell: (cell.threads, float(cell.point[x])))
        found: dict[str, dict[str, list[Point]]] = {}
        for allocator in sorted(measured_in(results, among, shown), key=lambda name: name != first):
            for cell in among:
                if numbers := values(results, among, cell, allocator):
                    chart, line = key(cell, allocator)
                    found.setdefault(chart, {}).setdefault(line, []).append(point(cell.point[x], numbers))
        return [Chart("lines", x_title or x, y_title, [*(Series(*each) for each in found[title].items()),
                                                       *extra(results, among)], title=title) for title in found]
    return draw


def lines(y_title: str = "ns per operation", metric: Metric = None, **more) -> Draw:
    return curves(y_title, lambda results, _, cell, name: list(values_of(results, cell, name, metric).values()), **more)


def by_threads(cell: Cell, allocator: str) -> tuple[str, str]:
    """A chart for each number of threads."""
    return counted(cell.threads, "thread"), allocator


def times_one_thread(results: Results, among: list[Cell], cell: Cell, allocator: str,
                     reference: str = "") -> list[float]:
    base = next((median_of(results, one, reference or allocator) for one in among if one.threads == 1), None)
    return [base / value for value in values_of(results, cell, allocator).values()] if base else []


def linear_line(_: Results, among: list[Cell]) -> list[Series]:
    return [Series("linear", [Point(count, count) for count in dict.fromkeys(cell.threads for cell in among)],
                   dashed=True)]


def speed_up(shown: Shown, reference: Allocator = ()) -> Draw:
    """Over one thread of the reference, or without one over each allocator's own thread; with the ideal line."""
    def draw(results: Results, among: list[Cell]) -> list[Chart]:
        first = chosen(results, reference) if reference else ""
        return curves(f"speed-up over {f'one thread of {first}' if first else 'its own thread'}",
                      lambda *cell: times_one_thread(*cell, first), shown, extra=linear_line)(results, among)
    return draw


def times_as_fast(shown: Shown, reference: str) -> Draw:
    """How many times as fast as the reference each allocator is with the same number of threads."""
    def values(results: Results, _: list[Cell], cell: Cell, allocator: str) -> list[float]:
        mine, theirs = (values_of(results, cell, name) for name in (allocator, reference))
        return [theirs[each] / mine[each] for each in sorted(mine.keys() & theirs.keys()) if allocator != reference]
    return curves(f"times as fast as {reference}", values, shown)


def together(*parts: Draw) -> Draw:
    return lambda results, among: [picture for part in parts for picture in part(results, among)]


# ---- Of a single paper. ----------------------------------------------------------------------------------------------

LINUX = all_but_baselines("one_lock")  # the Linux paper has Solaris beside glibc


def expected_workers(results: Results, among: list[Cell]) -> list[Series]:
    """One thread's time of glibc, shared by the CPUs."""
    return [Series("expected", [Point(cell.threads, base * threads_per_cpu(cell, None, cpus(results))) for cell in among],
                   dashed=True)
            for one in among if one.threads == 1 and cpus(results)
            and (base := median_of(results, one, "glibc", SECONDS)) is not None]


FAULTS_OVER_ROUNDS = lines(
    "minor page faults", FAULTS, shown=LINUX, x="rounds",
    point=lambda x, faults: Point(x, statistics.mean(faults), min(faults), max(faults)), extra=lambda _, among: [
        Series("predictor", [Point(cell.point["rounds"], predicted(cell)) for cell in among], dashed=True)])


def sizes(results: Results, among: list[Cell]) -> list[Chart]:
    """Each allocator with objects as they come, and glibc's aligned ones for comparison."""
    def medians(name: str, aligned: int) -> list[Point]:
        found = size_curves(results, among, name, aligned).values()
        return [Point(size, statistics.median(curve[size] for curve in found if size in curve))
                for size in sorted({size for curve in found for size in curve})]

    found = [Series(name, points) for name in measured_in(results, among, LINUX) if (points := medians(name, 0))]
    ideal = [Series("aligned to lines", points, dashed=True) for points in [medians("glibc", 1)] if points]
    return [Chart("lines", "object size, B", "ns per write", [*found, *ideal])] if found else []


def _speed_up(results: Results, among: list[Cell], cell: Cell, allocator: str) -> list[float]:
    """Over one thread on as many arenas."""
    return times_one_thread(results, [each for each in among if arenas(each) == arenas(cell)], cell, allocator)


# A chart for each allocator, ar_malloc's first, a line for each number of arenas.
_BY_ARENAS = {"key": lambda cell, allocator: (allocator, counted(arenas(cell), "arena")), "first": "ar_malloc"}
times_by_arenas = lines(**_BY_ARENAS)
speed_up_by_arenas = curves("speed-up over one thread", _speed_up, extra=linear_line, **_BY_ARENAS)

# ---- Tables: a row for each cell. -----------------------------------------------------------------------------------


def by_allocator(title: str, metric: Metric = None, shown: Shown = lambda _: True) -> Draw:
    """A column for each allocator."""
    return lambda results, among: _table(results, among, title, {
        name: (name, metric) for name in measured_in(results, among, shown)})


def by_metric(title: str, allocator: str, metrics: Mapping[str, Metric]) -> Draw:
    """A column for each number of an allocator's."""
    return lambda results, among: _table(results, among, title, {
        name: (allocator, metric) for name, metric in metrics.items()})


def _table(results: Results, among: list[Cell], title: str, columns: Mapping[str, tuple[str, Metric]]) -> list[Table]:
    rows = [[cell.name, *(median_of(results, cell, *column) for column in columns.values())] for cell in among]
    rows = [row for row in rows if any(value is not None for value in row[1:])]
    return [Table(["cell", *columns], rows, title)] if rows else []


def by_round(title: str, metric: Metric, shown: Shown) -> Draw:
    """Of the first cell, a row for each round."""
    def draw(results: Results, among: list[Cell]) -> list[Table]:
        found = {name: values_of(results, among[0], name, metric) for name in measured_in(results, among[:1], shown)}
        rounds = sorted({number for values in found.values() for number in values})
        rows = [[number, *(values.get(number) for values in found.values())] for number in rounds]
        return [Table(["run", *found], rows, title)] if rows else []
    return draw
