"""ar_malloc's five charts of a random workload of 8 to 1024 B.  glibc stands for its libc.

The arena study is ar_malloc's; other allocators whose number of arenas can be set stand beside it.
"""

from collections.abc import Callable

from ...bench.catalogue import Cell
from ...bench.results import Results
from .measures import AR_LOCKED, AR_MALLOC, GLIBC, TODAY, alone, cells, one_thread, only, several_threads
from .pictures import curves, linear_line, lines, speed_up, times_one_thread
from .predicates import Pairs, faster, linear, on_cpus, related, stops_scaling
from .wording import of_paper

_CORES = 16  # of the article's machine
_arenas_of = of_paper("ar_malloc (2012)")
_ar_malloc = of_paper("ar_malloc (2012)", "glibc stands for libc.")
_CAST = only(AR_MALLOC, AR_LOCKED, GLIBC, TODAY)
RANDOM = cells("ar-random")
_SEVERAL = several_threads(RANDOM)
_TIME = lines("ns per operation", cast=_CAST)


def _by_arenas(results: Results) -> list[Cell]:
    return sorted(results.select("ar-random", lambda cell: "arenas" in cell.point), key=lambda cell: cell.threads)


def _arenas(cell: Cell) -> int:
    return int(cell.point["arenas"])


def _against_most_arenas(chosen: Callable[[Cell], bool]) -> Pairs:
    """Each chosen cell against the cell of as many threads and the most arenas."""
    def pairs(_: Results, among: list[Cell]) -> list[tuple[Cell, Cell]]:
        best = {cell.threads: cell for cell in sorted(among, key=_arenas)}
        return [(cell, best[cell.threads]) for cell in among if chosen(cell) and cell is not best[cell.threads]]
    return pairs


def _a_quarter(_: Results, among: list[Cell]) -> list[tuple[Cell, Cell]]:
    """Far fewer arenas than threads, against one thread on as many."""
    return [(cell, base) for cell in among for base in alone([each for each in among if _arenas(each) == _arenas(cell)])
            if 4 * _arenas(cell) <= cell.threads]


def _threads_and_arenas(cell: Cell, _: Cell) -> str:
    return f"with {cell.threads} threads on {_arenas(cell)} arena{'s' * (_arenas(cell) > 1)}"


def _speed_up(results: Results, among: list[Cell], cell: Cell, who: str) -> list[float]:
    """Over one thread on as many arenas."""
    return times_one_thread(results, [each for each in among if _arenas(each) == _arenas(cell)], cell, who)


# A chart for each allocator, a line for each number of arenas.
_BY_ARENAS = {"key": lambda cell, who: (who, f"{_arenas(cell)} arena{'s' * (_arenas(cell) > 1)}"), "first": AR_MALLOC}

FIGURES = [
    _ar_malloc("Chart 1", RANDOM, _TIME, faster(AR_MALLOC, AR_LOCKED, 0.2, of=_SEVERAL),
               faster(GLIBC, AR_LOCKED, 0.2, of=_SEVERAL)),
    _ar_malloc("Chart 2", RANDOM, _TIME, faster(AR_MALLOC, GLIBC, 1.5, of=one_thread(RANDOM))),
    _ar_malloc("Chart 3", RANDOM, speed_up(_CAST), stops_scaling(GLIBC, 8), linear(AR_MALLOC, _CORES)),
    _arenas_of("Chart 4", _by_arenas, lines("ns per operation", **_BY_ARENAS),
               related(AR_MALLOC, _against_most_arenas(lambda cell: cell.threads > _arenas(cell)),
                       "time with fewer arenas than threads over that with the most", "at least 10 % more", least=1.1,
                       at=_threads_and_arenas),
               related(AR_MALLOC, _against_most_arenas(lambda cell: 1 < cell.threads <= _arenas(cell)),
                       "time with arenas for all threads over that with the most", "at most 10 % more", most=1.1,
                       at=_threads_and_arenas)),
    _arenas_of("Chart 5", _by_arenas, curves("speed-up over one thread", _speed_up, extra=linear_line, **_BY_ARENAS),
               on_cpus(4, related(AR_MALLOC, _a_quarter, "time against one thread",
                                  "at least 60 % of linear speed-up", most=lambda cell, *_: 1 / (0.6 * cell.threads),
                                  at=_threads_and_arenas))),
]
