"""VVMalloc: parallel and mostly lock-free version of malloc.  Its Fig. 1 to 3 and 6 to 18 (4 and 5 are drawings).

glibc is its ptmalloc, gperftools the TCMalloc of its time.  Its own four approaches show as soon as they are measured.
"""

from ...bench.catalogue import Cell
from ..figure import PaperFigure
from .common import GLIBC, Cells, Draw, Who, cells, grid, lines, nothing, times_as_fast
from .judging import Clause, Judge, alike, faster, judged, percent, slower, untold

PAPER = "VVMalloc (15-618)"
CUSTOM, LOCK_FREE, VVMALLOC = "vvmalloc-2", "vvmalloc-3", "vvmalloc-4"  # its approaches
TCMALLOC = ("gperftools", "tcmalloc")
ABOUT = 0.85

WORKLOADS = {1: "some 128,000 operations a thread, mostly below 32 B",
             2: "80,000 operations a thread, mostly 3 to 12 KB",
             3: "80,000 operations a thread, 4 B to 21 KB"}


def _workload(number: int) -> Cells:
    return cells("vvmalloc", lambda cell: cell.point["workload"] == number)


_OF = {number: _workload(number) for number in WORKLOADS}
_NOTE = "glibc is the paper's ptmalloc, gperftools its TCMalloc."


def _figure(label: str, workload: int, approach: str, draw: Draw, claim: str, *clauses: Clause, note: str = _NOTE,
            reading: str = "") -> PaperFigure:
    return PaperFigure(PAPER, label, f"Workload {workload}: {approach}", f"{claim} Workload {workload} is "
                       f"{WORKLOADS[workload]}.", draw, judged(*clauses, note=note), reading)


def _times(workload: int) -> Draw:
    return lines(_OF[workload], "ns per operation")


def _with(subject: str, draw: Draw) -> Draw:
    """Its own picture only once its subject is there: the other allocators are in Fig. 13 to 15."""
    return lambda results: draw(results) if subject in results.allocators else []


# ---- Single traces. -------------------------------------------------------------------------------------------------

_NO_DRIVER: Judge = untold("Takes VVMalloc's own allocators and the malloc lab's traces; neither is measured here.")


def _trace(cell: Cell) -> str:
    return str(cell.point["trace"])


def _utilisation(a_over_u: float) -> float | None:
    """None where the resident set did not grow."""
    return 100 / a_over_u if a_over_u > 0 else None


_DRIVER = [
    PaperFigure(PAPER, "Fig. 1", "Malloc-lab driver, sequential",
                "Approach 1: the sequential allocator of the malloc lab uses 74.3 % of its heap and does 14,639 "
                "thousand operations a second on average, over 22 traces.",
                grid(cells("replay"), "trace", _trace, "a_over_u", _utilisation, "Utilisation U/A, %"), _NO_DRIVER,
                "The same two numbers for the allocators measured here, on our recorded traces: utilisation here, "
                "throughput at Fig. 2."),
    PaperFigure(PAPER, "Fig. 2", "Malloc-lab driver, one global lock",
                "Approach 1: with a lock around it and a thread for each trace, utilisation falls from 74.3 to 9.1 % "
                "and throughput from 14,639 to 1,668 thousand operations a second.",
                grid(cells("replay"), "trace", _trace, "kops_per_s", title="Throughput, thousand operations a second"),
                _NO_DRIVER),
    PaperFigure(PAPER, "Fig. 3", "Unequal traces: the global lock",
                "Approach 1: with threads on different traces, the global lock takes 7 to 8 times as long as running "
                "the traces one after the other.", nothing, _NO_DRIVER),
    PaperFigure(PAPER, "Fig. 6", "Unequal traces: approach 2",
                "Approach 2: with 16 threads on different traces, TCMalloc is the fastest by far; the custom malloc "
                "(approach 2) is slightly ahead of ptmalloc.", nothing, _NO_DRIVER),
]


# ---- Three workloads. -----------------------------------------------------------------------------------------------


def _ahead(who: Who, whom: Who, workload: int) -> Clause:
    return faster(who, whom, _OF[workload])


def _times_as_fast(times: float, whom: Who, workload: int) -> Clause:
    return faster(VVMALLOC, whom, _OF[workload], ABOUT * times - 1)


def _behind(who: Who, whom: Who, workload: int) -> Clause:
    return slower(who, whom, _OF[workload])


def _level(who: Who, whom: Who, workload: int, within: float = 0.15) -> Clause:
    return alike(who, whom, _OF[workload], within)


_APPROACHES_2_AND_3 = [
    _figure("Fig. 7", 1, "custom malloc", _with(CUSTOM, _times(1)),
            "Approach 2: on small blocks the custom malloc is ahead of ptmalloc and behind TCMalloc; 15 % of its time "
            "goes to the heap's spin lock.",
            _ahead(CUSTOM, GLIBC, 1), _behind(CUSTOM, TCMALLOC, 1)),
    _figure("Fig. 8", 2, "custom malloc", _with(CUSTOM, _times(2)),
            "Approach 2: on large blocks the custom malloc is behind ptmalloc and TCMalloc; 93 % of its time goes to "
            "the heap's spin lock.",
            _behind(CUSTOM, GLIBC, 2), _behind(CUSTOM, TCMALLOC, 2)),
    _figure("Fig. 9", 3, "custom malloc", _with(CUSTOM, _times(3)),
            "Approach 2: on mixed sizes the custom malloc is level with ptmalloc and behind TCMalloc; 93 % of its time "
            "goes to the heap's spin lock.",
            _level(CUSTOM, GLIBC, 3), _behind(CUSTOM, TCMALLOC, 3)),
    _figure("Fig. 10", 1, "lock-free queue", _with(LOCK_FREE, _times(1)),
            "Approach 3: with a lock-free central queue, VVMalloc is ahead of the custom malloc (approach 2) and of "
            "ptmalloc on small blocks.",
            _ahead(LOCK_FREE, CUSTOM, 1), _ahead(LOCK_FREE, GLIBC, 1)),
    _figure("Fig. 11", 2, "lock-free queue", _with(LOCK_FREE, _times(2)),
            "Approach 3: on large blocks it is behind ptmalloc and level with the custom malloc (approach 2): 89 % of "
            "the time goes to the heap's spin lock.",
            _behind(LOCK_FREE, GLIBC, 2), _level(LOCK_FREE, CUSTOM, 2)),
    _figure("Fig. 12", 3, "lock-free queue", _with(LOCK_FREE, _times(3)),
            "Approach 3: on mixed sizes it is ahead of ptmalloc and level with the custom malloc (approach 2).",
            _ahead(LOCK_FREE, GLIBC, 3), _level(LOCK_FREE, CUSTOM, 3)),
]

_ORDER = f"{_NOTE} This judges their order alone; VVMalloc's place between them is judged at Fig. %d."

_ROUNDED = f"N times as fast is taken as at least {percent(ABOUT)} of it: the report's numbers are rounded averages."

_APPROACH_4 = [
    _figure("Fig. 13", 1, "run time", _times(1),
            "Approach 4 and Results: TCMalloc is the fastest, ptmalloc the slowest; VVMalloc, with arenas of 256 KB, "
            "overlaps the custom malloc, as small blocks never leave the first arena.",
            _ahead(TCMALLOC, GLIBC, 1), note=_ORDER % 16),
    _figure("Fig. 14", 2, "run time", _times(2),
            "Approach 4 and Results: TCMalloc is the fastest; VVMalloc, with arenas of 256 KB, takes about a third of "
            "the custom malloc's time whatever the number of threads, and less than ptmalloc.",
            _ahead(TCMALLOC, GLIBC, 2), note=_ORDER % 17),
    _figure("Fig. 15", 3, "run time", _times(3),
            "Approach 4 and Results: TCMalloc is the fastest; VVMalloc, with arenas of 256 KB, takes about half of the "
            "custom malloc's time, and less than ptmalloc.",
            _ahead(TCMALLOC, GLIBC, 3), note=_ORDER % 18),
    _figure("Fig. 16", 1, "speed-up", times_as_fast(_OF[1]),
            "Results 1: VVMalloc is 1.5 times as fast as ptmalloc with any number of threads, and as fast as the "
            "custom malloc.",
            _times_as_fast(1.5, GLIBC, 1), _level(VVMALLOC, CUSTOM, 1), reading=_ROUNDED),
    _figure("Fig. 17", 2, "speed-up", times_as_fast(_OF[2]),
            "Results 2: VVMalloc is 3 times as fast as the custom malloc on average, and twice as fast as ptmalloc.",
            _times_as_fast(3, CUSTOM, 2), _times_as_fast(2, GLIBC, 2), reading=_ROUNDED),
    _figure("Fig. 18", 3, "speed-up", times_as_fast(_OF[3]),
            "Results 3: VVMalloc is 2 times as fast as the custom malloc, and 1.5 to 2 times as fast as ptmalloc.",
            _times_as_fast(2, CUSTOM, 3), _times_as_fast(1.5, GLIBC, 3), reading=_ROUNDED),
]

FIGURES = [*_DRIVER, *_APPROACHES_2_AND_3, *_APPROACH_4]
