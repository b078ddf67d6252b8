"""Hoard's Fig. 3 and 4 and Tables 2 to 6.  A heap behind one lock stands for Solaris's, glibc for Ptmalloc."""

import math
from collections.abc import Callable

from ...bench.catalogue import Cell
from ...bench.results import Results
from ...bench.statistics import ratio
from .measures import (
    EIGHTH,
    GLIBC,
    HALF,
    HOARD,
    ONE_LOCK,
    Cells,
    Metric,
    all_cpus,
    beside,
    cells,
    joined,
    measured_in,
    median_of,
    most_threads,
    one_thread,
    quotient,
    several_threads,
)
from .pictures import Draw, column, grid, program, speed_up
from .predicates import (
    Clause,
    Ratio,
    alike,
    compared,
    exactly,
    faster,
    lies,
    linear,
    on_cpus,
    slower,
    slows_down,
    stops_scaling,
    untold,
)
from .wording import of_paper

_PROCESSORS = 14  # of the paper's Sun Enterprise 5000
_counted = of_paper("Hoard (2000)")
_hoard = of_paper("Hoard (2000)",
                  "one_lock, a heap behind one lock, stands for the Solaris allocator, glibc for Ptmalloc.")
_SPEED = speed_up(beside(), (ONE_LOCK, GLIBC))

THREADTEST, SHBENCH, LARSON, BARNES_HUT = PROGRAMS = (
    cells("threadtest", size=8), cells("shbench"), cells("larson", min=10, max=100), cells("barnes-hut"))
ACTIVE, PASSIVE = (cells(f"{which}-false", size=8) for which in ("active", "passive"))


def traces(*names: str) -> Cells:
    return cells("replay", lambda cell: cell.point.get("trace") in names)


SINGLE = traces("python", "perl", "sqlite")


def _nowhere(_: Results) -> list[Cell]:
    return []


def _ahead(who: str, whom: str, by: float, of: Cells) -> Clause:
    """With the paper's number of processors."""
    return on_cpus(_PROCESSORS, faster(who, whom, by, of=lambda results: [
        cell for cell in of(results) if cell.threads >= _PROCESSORS]))


def _most(*programs: Cells) -> Cells:
    """Of each program the cell with the most threads: counts need no CPU of their own."""
    return joined(*(most_threads(several_threads(of)) for of in programs))


def _studied(of: Cells) -> Cells:
    """The variants are not measured with every number of threads."""
    return lambda results: [cell for cell in of(results) if any(results.runs(cell.name, who) for who in (EIGHTH, HALF))]


# ---- Tables: the paper's numbers beside ours. -----------------------------------------------------------------------

_USED, _A, _U = (f"counter_{name}" for name in ("objects_from_used_superblocks", "max_allocated", "max_in_use"))
_A_OVER_U = quotient(_A, _U)
_CHANGES = {"threadtest": "-6.1 %", "shbench": "+49.2 %", "active-false": "+0.6 %", "passive-false": "+0.3 %",
            "barnes-hut": "-1.0 %", "replay": "-2.9 to +15.9 %"}
_FRAGMENTATION = {"threadtest": 1.24, "shbench": 3.17, "larson": 1.22, "barnes-hut": 1.18}
_TIMES_BY_FRACTION = {"threadtest": "1.27, 1.28, 1.19 s", "shbench": "1.45, 1.50, 1.44 s",
                      "larson": "4.41, 4.42, 4.35 million operations/s", "barnes-hut": "16.52, 16.13, 16.41 s"}
_BY_FRACTION = {"threadtest": "1.22, 1.24, 1.22", "shbench": "3.17, 3.17, 3.16", "larson": "1.22, 1.22, 1.61",
                "barnes-hut": "1.18, 1.18, 1.18"}
_COUNTERS = {"objects": "counter_objects", "of these from used superblocks": _USED,
             "that came along": "counter_objects_that_came_along",
             "superblocks from the global heap": "counter_transfers_from_global",
             "to the global heap": "counter_transfers_to_global"}


def _published(title: str, numbers: dict) -> dict:
    return {"threads": lambda cell: cell.threads, title: lambda cell: numbers[program(cell)]}


def _changes(results: Results, among: list[Cell]) -> dict:
    def change(name: str) -> Callable[[Cell], str | None]:
        return lambda cell: (found := ratio(results, cell, name, ONE_LOCK)) and f"{found.median - 1:+.1%}"

    names = [name for name in measured_in(results, among, beside()) if name != ONE_LOCK]
    return {"one_lock, ns": column(results, ONE_LOCK, None), "Hoard in the paper": lambda cell: _CHANGES[cell.workload],
            **{name: change(name) for name in names}}


def _counts(results: Results, _: list[Cell]) -> dict:
    return _published("falsely shared in the paper", dict.fromkeys(_FRAGMENTATION, 0)) | {
        title: column(results, HOARD, metric) for title, metric in _COUNTERS.items()}


def _counted_fragmentation(results: Results, _: list[Cell]) -> dict:
    replayed = {program(cell): cell for cell in cells("replay")(results)}
    return _published("A/U in the paper", _FRAGMENTATION) | {
        **{title: column(results, HOARD, metric) for title, metric in (("A/U", _A_OVER_U), ("A, B", _A), ("U, B", _U))},
        "A/U of its trace, replayed": lambda cell: cell.workload in replayed and median_of(
            results, replayed[cell.workload], HOARD, "a_over_u") or None}


def _by_fraction(metric: Metric, published: dict, title: str) -> Draw:
    return grid("program", lambda results, _: _published("in the paper", published) | {
        f"f = {fraction}": column(results, who, metric)
        for fraction, who in (("1/8", EIGHTH), ("1/4", HOARD), ("1/2", HALF))}, title, 2)


# ---- Rows. ----------------------------------------------------------------------------------------------------------


def _in_program(cell: Cell) -> str:
    return f"in {program(cell)} with {cell.threads} threads"


def _alone(cell: Cell) -> str:
    return f"in {program(cell)}"


def _largest(values: list[float]) -> Ratio | None:
    return exactly(max(values)) if values else None


_WITH_ALL_CPUS = joined(*(all_cpus(several_threads(_studied(of))) for of in PROGRAMS))
_COUNTED = {"metric": _A_OVER_U, "what": "A/U", "at": _in_program, "crowded": True}
_NO_SOLVER = untold("BEMengine is part of a commercial solver: nothing here stands for it.")

FIGURES = [
    _hoard("Fig. 3 (a)", THREADTEST, _SPEED, slows_down(ONE_LOCK), linear(HOARD, _PROCESSORS),
           _ahead(HOARD, GLIBC, 2.78, THREADTEST), stops_scaling(GLIBC, 6)),
    _hoard("Fig. 3 (b)", SHBENCH, _SPEED, stops_scaling(ONE_LOCK, 1), linear(HOARD, _PROCESSORS, 0.5),
           _ahead(HOARD, GLIBC, 0.85, SHBENCH), stops_scaling(GLIBC, 6)),
    _hoard("Fig. 3 (c)", LARSON, _SPEED, slows_down(ONE_LOCK), linear(HOARD, _PROCESSORS),
           _ahead(HOARD, GLIBC, 17, LARSON), stops_scaling(GLIBC, 6)),
    _hoard("Fig. 3 (d)", BARNES_HUT, _SPEED, linear(HOARD, _PROCESSORS), linear(GLIBC, _PROCESSORS),
           _ahead(HOARD, ONE_LOCK, 0.08, BARNES_HUT), _ahead(GLIBC, ONE_LOCK, 0.08, BARNES_HUT)),
    _counted("Fig. 3 (e)", _nowhere, lambda *_: [], _NO_SOLVER),
    _counted("Fig. 3 (f)", _nowhere, lambda *_: [], _NO_SOLVER),
    _hoard("Fig. 4 (a)", ACTIVE, _SPEED, stops_scaling(ONE_LOCK, 1), linear(HOARD, _PROCESSORS),
           stops_scaling(GLIBC, 4)),
    _hoard("Fig. 4 (b)", PASSIVE, _SPEED, linear(HOARD, 12), stops_scaling(GLIBC, 4)),
    _hoard("Table 2", joined(one_thread(joined(THREADTEST, SHBENCH, ACTIVE, PASSIVE, BARNES_HUT)), SINGLE),
           grid("program", _changes, "Time against the system's allocator", 2),
           compared(HOARD, ONE_LOCK, most=1.1, at=_alone,
                    of=one_thread(joined(THREADTEST, ACTIVE, PASSIVE, BARNES_HUT))),
           compared(HOARD, ONE_LOCK, most=1.2, at=_alone, of=SINGLE),
           slower(HOARD, ONE_LOCK, 0.1, at=_alone, of=one_thread(SHBENCH))),
    _counted("Table 3", _most(*PROGRAMS), grid("program", _counts, "What hoard counted of itself", 2),
           lies(HOARD, "most objects from used superblocks in any run", _USED, most=0, show="{:,.0f}".format,
                at=_in_program, number=_largest, asked="0")),
    _counted("Table 4", _most(*PROGRAMS), grid(
        "program", _counted_fragmentation, "What hoard counted of itself", 2),
        lies(HOARD, "A/U as it counts itself", _A_OVER_U, most=lambda cell: 1.05 * _FRAGMENTATION[cell.workload],
             at=_alone, asked="at most 5 % above the paper's", of=_most(THREADTEST, LARSON, BARNES_HUT)),
        lies(HOARD, "A/U of replayed traces", "a_over_u", most=1.05 * 1.47, at=_alone, of=SINGLE)),
    _counted("Table 5", _WITH_ALL_CPUS, _by_fraction(None, _TIMES_BY_FRACTION, "ns per operation"),
           *(alike(who, HOARD, 0.1, at=_in_program) for who in (EIGHTH, HALF))),
    _counted("Table 6", _most(*map(_studied, PROGRAMS)), _by_fraction(
        _A_OVER_U, _BY_FRACTION, "A/U as hoard counts itself"),
        alike(EIGHTH, HOARD, 0.05, **_COUNTED),
        alike(HALF, HOARD, 0.05, of=_most(*map(_studied, (THREADTEST, SHBENCH, BARNES_HUT))), **_COUNTED),
        compared(HALF, HOARD, 1.1, math.inf, of=_most(_studied(LARSON)), **_COUNTED)),
]
