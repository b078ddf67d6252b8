"""Benchmark 3 of the Linux paper, `linux-false-sharing`: its picture and clause."""

import statistics

from ...bench.results import Results
from ...bench.statistics import paired_ratio
from ..figure import Chart, Point, Series
from .baselines import LINUX_CAST
from .common import GLIBC, Cells, Draw, cells, joined, measured_in, runnable, with_threads
from .judging import Check, Clause, Finding, missing, span, weighed


def objects(threads: int, aligned: int) -> Cells:
    return cells("linux-false-sharing", threads=threads, aligned=aligned)


def _curves(results: Results, of: Cells, who: str) -> dict[int, dict[float, float]]:
    """round -> size -> nanoseconds per write."""
    return {run.round: dict(map(tuple, run.metrics["series"])) for cell in of(results)
            for run in results.runs(cell.name, who) if run.metrics.get("series")}


def size_chart(threads: int) -> Draw:
    """Each allocator with objects as they come, and glibc's aligned ones for comparison."""
    def draw(results: Results) -> list[Chart]:
        normal = objects(threads, 0)
        found = [Series(who, _medians(curves)) for who in measured_in(results, normal(results), LINUX_CAST)
                 if (curves := _curves(results, normal, who))]
        aligned = _curves(results, objects(threads, 1), GLIBC)
        ideal = [Series("aligned to lines", _medians(aligned), dashed=True)] if aligned else []
        return [Chart("lines", "object size, B", "ns per write", [*found, *ideal])] if found else []
    return draw


def _medians(curves: dict[int, dict[float, float]]) -> list[Point]:
    sizes = sorted({size for curve in curves.values() for size in curve})
    return [Point(size, statistics.median(curve[size] for curve in curves.values() if size in curve)) for size in sizes]


def penalty(who: str, threads: int, least: float) -> Clause:
    """The slowest size but one, so that one disturbance does not count, over the median of aligned objects."""
    def clause(results: Results) -> Finding:
        both = joined(objects(threads, 0), objects(threads, 1))(results)
        if gap := missing(results, both, runnable(results, both), who):
            return Finding(None, gap)
        normal, aligned = (_curves(results, objects(threads, way), who) for way in (0, 1))
        slowest = {number: sorted(curve.values())[-2:][0] for number, curve in normal.items()}
        usual = {number: statistics.median(curve.values()) for number, curve in aligned.items()}
        check = Check(with_threads(both[0]), paired_ratio(slowest, usual), least)
        return weighed(f"{who}, time of the slowest sizes over aligned objects", [check], span(least))
    return clause
