"""Analysis of a parallel memory allocator (ar_malloc).  Its five charts of a random workload of 8 to 1024 B.

glibc stands for its libc.  The arena study is ar_malloc's; other allocators whose number of arenas can be set stand
beside it.
"""

import math
from collections.abc import Callable

from ...bench.catalogue import Cell
from ...bench.results import Results
from ..figure import Chart, PaperFigure, Point, Series
from .baselines import AR_LOCKED, AR_MALLOC, TODAY
from .clauses import Pair, faster, linear, related, stops_scaling
from .common import GLIBC, Draw, cells, measured_in, one_thread, only, percent, several_threads
from .judging import Clause, judged, on_cpus
from .pictures import lines, speed_up, spread

PAPER = "ar_malloc (2012)"
CORES = 16  # of the article's machine
CONTENDED = 0.1   # this much slower is the "contention" curve, within it the "no contention" curve
MOSTLY_LINEAR = 0.6

RANDOM = cells("ar-random")
CAST = only(AR_MALLOC, AR_LOCKED, GLIBC, TODAY)


def by_arenas(results: Results) -> list[Cell]:
    return sorted(results.select("ar-random", lambda cell: "arenas" in cell.point), key=lambda cell: cell.threads)


def _arenas(cell: Cell) -> int:
    return int(cell.point["arenas"])


# ---- Pictures: a chart for each allocator, a line for each number of arenas. ----------------------------------------


def _arena_charts(y_title: str, shown: Callable[[float, float], float], ideal: bool) -> Draw:
    """shown(one thread's time with as many arenas, the time): what a point shows."""
    def draw(results: Results) -> list[Chart]:
        charts = []
        for who in sorted(measured_in(results, by_arenas(results)), key=lambda name: name != AR_MALLOC):
            lines_of = [line for count in sorted({_arenas(cell) for cell in by_arenas(results)})
                        if (line := _line(results, who, count, shown)).points]
            if lines_of and ideal:
                threads = sorted({cell.threads for cell in by_arenas(results)})
                lines_of.append(Series("linear", [Point(each, each) for each in threads], dashed=True))
            if lines_of:
                charts.append(Chart("lines", "threads", y_title, lines_of, title=who))
        return charts
    return draw


def _line(results: Results, who: str, count: int, shown: Callable[[float, float], float]) -> Series:
    among = [cell for cell in by_arenas(results) if _arenas(cell) == count]
    alone = next((results.median(cell, who) for cell in among if cell.threads == 1), None)
    points = [spread(cell.threads, [shown(alone, value) for value in values.values()])
              for cell in among if alone and (values := results.values(cell, who))]
    return Series(f"{count} arena{'s' * (count > 1)}", points)


# ---- Clauses of the arena study. ------------------------------------------------------------------------------------


def _against_most_arenas(among: list[Cell], chosen: Callable[[Cell], bool], least: float, most: float) -> list[Pair]:
    """Each chosen cell against the cell of as many threads and the most arenas."""
    best = {cell.threads: cell for cell in sorted(among, key=_arenas)}
    return [Pair(_threads_and_arenas(cell), cell, best[cell.threads], least, most)
            for cell in among if chosen(cell) and cell is not best[cell.threads]]


def _contended(who: str) -> Clause:
    def pairs(_: Results, among: list[Cell]) -> list[Pair]:
        return _against_most_arenas(among, lambda cell: cell.threads > _arenas(cell), 1 + CONTENDED, math.inf)
    return related(who, by_arenas, pairs, "time with fewer arenas than threads over that with the most",
                   f"at least {percent(CONTENDED)} more")


def _uncontended(who: str) -> Clause:
    def pairs(_: Results, among: list[Cell]) -> list[Pair]:
        return _against_most_arenas(among, lambda cell: 1 < cell.threads <= _arenas(cell), 0.0, 1 + CONTENDED)
    return related(who, by_arenas, pairs, "time with arenas for all threads over that with the most",
                   f"at most {percent(CONTENDED)} more")


def _mostly_linear(who: str) -> Clause:
    """With far fewer arenas than threads: a quarter."""
    def pairs(_: Results, among: list[Cell]) -> list[Pair]:
        alone = {_arenas(cell): cell for cell in among if cell.threads == 1}
        return [Pair(_threads_and_arenas(cell), cell, alone[_arenas(cell)], most=1 / (MOSTLY_LINEAR * cell.threads))
                for cell in among if 4 * _arenas(cell) <= cell.threads and _arenas(cell) in alone]
    return related(who, by_arenas, pairs, "time against one thread",
                   f"at least {percent(MOSTLY_LINEAR)} of linear speed-up")


def _threads_and_arenas(cell: Cell) -> str:
    return f"with {cell.threads} threads on {_arenas(cell)} arena{'s' * (_arenas(cell) > 1)}"


# ---- Figures. -------------------------------------------------------------------------------------------------------

_TIME = lines(RANDOM, "ns per operation", cast=CAST)

FIGURES = [
    PaperFigure(PAPER, "Chart 1", "Run time with a global lock",
                "Results, first chart: on 16 cores, ar_malloc behind one global lock is by far the slowest.",
                _TIME, judged(*(faster(who, AR_LOCKED, several_threads(RANDOM), 0.2) for who in (AR_MALLOC, GLIBC)),
                              note="glibc stands for libc."),
                "By far is taken as 20 %, with several threads."),
    PaperFigure(PAPER, "Chart 2", "Run time",
                "Results, second chart: ar_malloc is about 3 times as fast as libc, with a single thread already.",
                _TIME, judged(faster(AR_MALLOC, GLIBC, one_thread(RANDOM), 1.5), note="glibc stands for libc."),
                "About 3 times is taken as at least 2.5."),
    PaperFigure(PAPER, "Chart 3", "Speed-up",
                "Results, third chart: ar_malloc's speed-up is linear up to 16 threads on 16 cores, libc's ends at "
                "about 8 threads.",
                speed_up(RANDOM, cast=CAST),
                judged(stops_scaling(GLIBC, RANDOM, 8), linear(AR_MALLOC, RANDOM, CORES),
                       note="glibc stands for libc.")),
    PaperFigure(PAPER, "Chart 4", "Run time by number of arenas",
                "Different configuration, first chart: there are two curves; the run time moves from the \"no "
                "contention\" one to the \"contention\" one where there are more threads than arenas (up to 16 threads "
                "on 16 cores).",
                _arena_charts("ns per operation", lambda alone, time: time, ideal=False),
                judged(_contended(AR_MALLOC), _uncontended(AR_MALLOC)),
                f"Contention is taken as {percent(CONTENDED)} above the time with the most arenas, none as less. "
                "ar_malloc first; glibc and jemalloc beside it. All have caches for each thread before their arenas; "
                "ar_malloc-nocache is ar_malloc without."),
    PaperFigure(PAPER, "Chart 5", "Speed-up by number of arenas",
                "Different configuration, second chart: the speed-up stays mostly linear even with far fewer arenas "
                "than threads (up to 16 threads on 16 cores).",
                _arena_charts("speed-up over one thread", lambda alone, time: alone / time, ideal=True),
                judged(on_cpus(4, _mostly_linear(AR_MALLOC))),
                f"Mostly linear is taken as {percent(MOSTLY_LINEAR)} of it, far fewer as a quarter."),
]
