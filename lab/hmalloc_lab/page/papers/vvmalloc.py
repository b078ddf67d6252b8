"""VVMalloc's Fig. 1 to 3 and 6 to 18 (4 and 5 are drawings), and its profile.

Its four approaches are vvmalloc-1 to vvmalloc-4, glibc is its ptmalloc, gperftools the TCMalloc of its time.
"""

import math
from collections.abc import Mapping

from ...bench.catalogue import Cell
from ...bench.results import Results
from ..figure import PaperFigure
from .measures import (
    GLIBC,
    ONE_LOCK,
    TCMALLOC,
    TODAY,
    VV1,
    VV2,
    VV3,
    VV4,
    Cast,
    Cells,
    Metric,
    all_cpus,
    cells,
    joined,
    measured_in,
    median_of,
    only,
    percent,
    quotient,
    several_threads,
    share_of_time,
)
from .pictures import Draw, lines, table, times_as_fast, together
from .predicates import Clause, alike, faster, lies, on_cpus, related, slower, slows_down
from .wording import of_paper

UNEQUAL, _THREADS_TIME = cells("unequal"), "thread_ns_per_op"  # of all threads: what the report's milliseconds add up
_TRACES = 16           # and so threads
_APPROACHES = only(VV1, VV2, VV3, VV4, *TCMALLOC, GLIBC, ONE_LOCK, TODAY)
_GENERATED = ("The malloc lab's traces are not published: sequences generated with their numbers of calls stand for "
              "them.")
_vvmalloc = of_paper("VVMalloc (15-618)", _GENERATED)
_NAMES = "glibc is the paper's ptmalloc, gperftools its TCMalloc."
# Most payload over the heap, of those that count what they have mapped; of one trace as the driver counts it: its
# payload over the heap of all.
_utilisation = quotient("payload_kb", "counter_mapped", 1024)


def _of_a_trace(run: Mapping) -> float | None:
    whole = _utilisation(run)
    return None if whole is None else whole / run["threads"]


def _driver(threads: int, *published: float | None) -> Draw:
    def draw(results: Results, among: list[Cell]) -> list:
        rows = [["the report's", *published]]
        for cell in (cell for cell in among if cell.threads == threads):
            for who in measured_in(results, [cell], _APPROACHES):
                shares = [median_of(results, cell, who, each) for each in (_of_a_trace, _utilisation)]
                pair_ns = median_of(results, cell, who, _THREADS_TIME)  # of a malloc and its free: two calls
                rows.append([who, *(share and 100 * share for share in shares), 2e6 / pair_ns if pair_ns else None])
        columns = ["allocator", "utilisation of a trace, %", "of all together, %", "thousand calls/s"]
        return table(columns, rows if len(rows) > 1 else [], f"{threads} thread{'s' * (threads > 1)}")
    return draw


def _each_its_trace(metric: Metric, what: str, crowded: bool, **limits: float) -> Clause:
    """With a thread for each trace against the sequential version."""
    def pairs(_: Results, among: list[Cell]) -> list[tuple[Cell, Cell]]:
        found = [cell for cell in among if cell.threads in (1, _TRACES)]
        return [(found[1], found[0])] if len(found) == 2 else []
    return related(VV1, pairs, what, metric=metric, crowded=crowded, **limits)


_WAITS = on_cpus(_TRACES, _each_its_trace(_THREADS_TIME, "thread time over that of one thread", False, least=6))

# ---- VVMalloc: its three workloads. ---------------------------------------------------------------------------------


def workload(number: int) -> Cells:
    return cells("vvmalloc", lambda cell: cell.point["workload"] == number)


def _played(label: str, number: int, draw: Draw, *clauses: Clause) -> PaperFigure:
    return _vvmalloc(label, workload(number), draw, *clauses, note=_NAMES)


def _cast(*approaches: str) -> Cast:
    return only(*approaches, *TCMALLOC, GLIBC, TODAY)


def _times(*approaches: str) -> Draw:
    return lines("ns per operation", cast=_cast(*approaches))


def _in_time(times: float, whom: str) -> Clause:
    """N times as fast: at least 85 % of it."""
    return faster(VV4, whom, 0.85 * times - 1)


_ALL = _times(VV1, VV2, VV3, VV4)
_SPEED_UPS = together(*(times_as_fast(_cast(VV1, VV2, VV3, VV4), whom) for whom in (GLIBC, VV2)))
_IN_ORDER = faster(TCMALLOC, VV4), faster(VV4, GLIBC)

# ---- VVMalloc: which share of their time threads wait. --------------------------------------------------------------

_HEAP, _HELD, _QUEUE = (f"counter_{name}_ns" for name in ("heap_wait", "heap_lock", "queue_wait"))
# (approach, workload): percent of the time at the heap's spin lock, at the queue
_REPORTED = {(VV2, 1): (14.96, None), (VV2, 2): (93.0, None), (VV2, 3): (93.38, None), (VV3, 2): (89.0, 4.0),
             (VV3, 3): (None, 4.0)}


def _judged(number: int) -> Cells:
    return all_cpus(several_threads(workload(number)))


def _shares(results: Results, among: list[Cell]) -> list:
    rows = []
    for cell, who in ((cell, who) for cell in among for who in (VV2, VV3, VV4)):
        waited, held, queued = (share and 100 * share for share in (
            median_of(results, cell, who, share_of_time(name)) for name in (_HEAP, _HELD, _QUEUE)))
        if (waited, held, queued) != (None, None, None):
            number = cell.point["workload"]
            heap, queue = _REPORTED.get((who, number), (None, None))
            rows.append([f"{who}, workload {number}", cell.threads, heap, waited, 100 * (1 - 1 / cell.threads), held,
                         queue, queued])
    columns = ["", "threads", "at the heap: report", "here", "most possible", "holding its lock",
               "at the queue: report", "here"]
    return table(columns, rows, "Time of the threads, %")


def _waits(who: str, number: int, counter: str, where: str, share: float) -> Clause:
    """Of what can be waited (all threads but one), threads wait as large a part as in the report: almost all, or half
    to twice its part."""
    def part(run: Mapping) -> float | None:
        found = share_of_time(counter)(run)
        return None if found is None else found / (1 - 1 / run["threads"])

    reported = share / (1 - 1 / _TRACES)
    least, most = (0.9, math.inf) if reported > 0.9 else (reported / 2, reported * 2)
    return lies(who, f"workload {number}, {where}, of what its threads can wait", part, least, most,
                percent, of=_judged(number), below_from=_TRACES)


_AT_THE_HEAP, _AT_THE_QUEUE = "waiting for the heap's spin lock", "waiting at the queue"

FIGURES = [
    _vvmalloc("Fig. 1", UNEQUAL, _driver(1, 74.3, None, 14_639), lies(
        VV1, "utilisation", _utilisation, 0.743 * 0.8, 0.743 * 1.2, percent, of=cells("unequal", threads=1))),
    _vvmalloc("Fig. 2", UNEQUAL, _driver(_TRACES, 9.1, None, 1_668),
              _each_its_trace(_of_a_trace, "utilisation over that with one thread", True, most=0.25), _WAITS),
    _vvmalloc("Fig. 3", UNEQUAL, lines("ns of the threads per operation", _THREADS_TIME, _APPROACHES),
              slows_down(VV1, metric=_THREADS_TIME), _WAITS),
    _vvmalloc("Fig. 6", UNEQUAL, lines("ns per operation", cast=_APPROACHES),
              faster(TCMALLOC, VV2, 0.2, of=several_threads(UNEQUAL)), faster(VV2, GLIBC, of=several_threads(UNEQUAL)),
              note=f"{_NAMES} {_GENERATED}"),
    _played("Fig. 7", 1, _times(VV2), faster(VV2, GLIBC), slower(VV2, TCMALLOC)),
    _played("Fig. 8", 2, _times(VV2), slower(VV2, GLIBC), slower(VV2, TCMALLOC)),
    _played("Fig. 9", 3, _times(VV2), alike(VV2, GLIBC, 0.15), slower(VV2, TCMALLOC)),
    _played("Fig. 10", 1, _times(VV2, VV3), faster(VV3, VV2), faster(VV3, GLIBC)),
    _played("Fig. 11", 2, _times(VV2, VV3), slower(VV3, GLIBC), alike(VV3, VV2, 0.15)),
    _played("Fig. 12", 3, _times(VV2, VV3), faster(VV3, GLIBC), alike(VV3, VV2, 0.15)),
    _vvmalloc("Profile", joined(*map(_judged, (1, 2, 3))), _shares,
              *(_waits(VV2, number, _HEAP, _AT_THE_HEAP, share) for number, share in ((1, 0.15), (2, 0.93), (3, 0.93))),
              _waits(VV3, 2, _HEAP, _AT_THE_HEAP, 0.89),
              *(_waits(VV3, number, _QUEUE, _AT_THE_QUEUE, 0.04) for number in (2, 3)), note=""),
    _played("Fig. 13", 1, _ALL, *_IN_ORDER, alike(VV4, VV2, 0.15)),
    _played("Fig. 14", 2, _ALL, *_IN_ORDER, _in_time(3, VV2)),
    _played("Fig. 15", 3, _ALL, *_IN_ORDER, _in_time(2, VV2)),
    _played("Fig. 16", 1, _SPEED_UPS, _in_time(1.5, GLIBC), alike(VV4, VV2, 0.15)),
    _played("Fig. 17", 2, _SPEED_UPS, _in_time(3, VV2), _in_time(2, GLIBC)),
    _played("Fig. 18", 3, _SPEED_UPS, _in_time(2, VV2), _in_time(1.5, GLIBC)),
]
