"""VVMalloc: parallel and mostly lock-free version of malloc.  Its Fig. 1 to 3 and 6 to 18 (4 and 5 are drawings).

glibc is its ptmalloc, gperftools the TCMalloc of its time.  Its four approaches are vvmalloc-1 to vvmalloc-4.
"""

from ..figure import PaperFigure
from .baselines import TODAY, VVMALLOC
from .clauses import alike, faster, slower
from .common import GLIBC, Draw, Who, only, percent
from .judging import Clause, judged
from .pictures import lines, times_as_fast, together
from .vvmalloc_traces import FIRST, SIXTH, TCMALLOC
from .vvmalloc_waiting import PROFILE, workload

PAPER = "VVMalloc (15-618)"
CUSTOM, LOCK_FREE, LARGE_ARENAS = VVMALLOC[1:]  # approaches 2 to 4
ABOUT = 0.85

WORKLOADS = {1: "some 128,000 operations a thread, mostly below 32 B",
             2: "80,000 operations a thread, mostly 3 to 12 KB",
             3: "80,000 operations a thread, 4 B to 21 KB"}


def _cast(*approaches: str):
    return only(*approaches, *TCMALLOC, GLIBC, TODAY)


_OF = {number: workload(number) for number in WORKLOADS}
_NOTE = "glibc is the paper's ptmalloc, gperftools its TCMalloc."


def _figure(label: str, played: int, approach: str, draw: Draw, claim: str, *clauses: Clause, note: str = _NOTE,
            reading: str = "") -> PaperFigure:
    return PaperFigure(PAPER, label, f"Workload {played}: {approach}", f"{claim} Workload {played} is "
                       f"{WORKLOADS[played]}.", draw, judged(*clauses, note=note), reading)


def _times(played: int, *approaches: str) -> Draw:
    return lines(_OF[played], "ns per operation", cast=_cast(*approaches))


def _speed_ups(played: int) -> Draw:
    return together(*(times_as_fast(_OF[played], whom, _cast(*VVMALLOC)) for whom in (GLIBC, CUSTOM)))


# ---- Three workloads. -----------------------------------------------------------------------------------------------


def _ahead(who: Who, whom: Who, played: int) -> Clause:
    return faster(who, whom, _OF[played])


def _times_as_fast(times: float, whom: Who, played: int) -> Clause:
    return faster(LARGE_ARENAS, whom, _OF[played], ABOUT * times - 1)


def _in_order(played: int) -> list[Clause]:
    return [_ahead(TCMALLOC, LARGE_ARENAS, played), _ahead(LARGE_ARENAS, GLIBC, played)]


def _behind(who: Who, whom: Who, played: int) -> Clause:
    return slower(who, whom, _OF[played])


def _level(who: Who, whom: Who, played: int, within: float = 0.15) -> Clause:
    return alike(who, whom, _OF[played], within)


_PROFILED = "The time at the heap's spin lock is judged at its profile."

_APPROACHES_2_AND_3 = [
    _figure("Fig. 7", 1, "custom malloc", _times(1, CUSTOM),
            "Approach 2: on small blocks the custom malloc is ahead of ptmalloc and behind TCMalloc; 15 % of its time "
            "goes to the heap's spin lock.",
            _ahead(CUSTOM, GLIBC, 1), _behind(CUSTOM, TCMALLOC, 1), reading=_PROFILED),
    _figure("Fig. 8", 2, "custom malloc", _times(2, CUSTOM),
            "Approach 2: on large blocks the custom malloc is behind ptmalloc and TCMalloc; 93 % of its time goes to "
            "the heap's spin lock.",
            _behind(CUSTOM, GLIBC, 2), _behind(CUSTOM, TCMALLOC, 2), reading=_PROFILED),
    _figure("Fig. 9", 3, "custom malloc", _times(3, CUSTOM),
            "Approach 2: on mixed sizes the custom malloc is level with ptmalloc and behind TCMalloc; 93 % of its time "
            "goes to the heap's spin lock.",
            _level(CUSTOM, GLIBC, 3), _behind(CUSTOM, TCMALLOC, 3), reading=_PROFILED),
    _figure("Fig. 10", 1, "lock-free queue", _times(1, CUSTOM, LOCK_FREE),
            "Approach 3: with a lock-free central queue, VVMalloc is ahead of the custom malloc (approach 2) and of "
            "ptmalloc on small blocks.",
            _ahead(LOCK_FREE, CUSTOM, 1), _ahead(LOCK_FREE, GLIBC, 1)),
    _figure("Fig. 11", 2, "lock-free queue", _times(2, CUSTOM, LOCK_FREE),
            "Approach 3: on large blocks it is behind ptmalloc and level with the custom malloc (approach 2): 89 % of "
            "the time goes to the heap's spin lock.",
            _behind(LOCK_FREE, GLIBC, 2), _level(LOCK_FREE, CUSTOM, 2), reading=_PROFILED),
    _figure("Fig. 12", 3, "lock-free queue", _times(3, CUSTOM, LOCK_FREE),
            "Approach 3: on mixed sizes it is ahead of ptmalloc and level with the custom malloc (approach 2).",
            _ahead(LOCK_FREE, GLIBC, 3), _level(LOCK_FREE, CUSTOM, 3)),
]

_ROUNDED = f"N times as fast is taken as at least {percent(ABOUT)} of it: the report's numbers are rounded averages."

_APPROACH_4 = [
    _figure("Fig. 13", 1, "run time", _times(1, *VVMALLOC),
            "Approach 4 and Results: TCMalloc is the fastest, ptmalloc the slowest; VVMalloc, with arenas of 256 KB, "
            "overlaps the custom malloc, as small blocks never leave the first arena.",
            *_in_order(1), _level(LARGE_ARENAS, CUSTOM, 1)),
    _figure("Fig. 14", 2, "run time", _times(2, *VVMALLOC),
            "Approach 4 and Results: TCMalloc is the fastest; VVMalloc, with arenas of 256 KB, takes about a third of "
            "the custom malloc's time whatever the number of threads, and less than ptmalloc.",
            *_in_order(2), _times_as_fast(3, CUSTOM, 2), reading=_ROUNDED),
    _figure("Fig. 15", 3, "run time", _times(3, *VVMALLOC),
            "Approach 4 and Results: TCMalloc is the fastest; VVMalloc, with arenas of 256 KB, takes about half of the "
            "custom malloc's time, and less than ptmalloc.",
            *_in_order(3), _times_as_fast(2, CUSTOM, 3), reading=_ROUNDED),
    _figure("Fig. 16", 1, "speed-up", _speed_ups(1),
            "Results 1: VVMalloc is 1.5 times as fast as ptmalloc with any number of threads, and as fast as the "
            "custom malloc.",
            _times_as_fast(1.5, GLIBC, 1), _level(LARGE_ARENAS, CUSTOM, 1), reading=_ROUNDED),
    _figure("Fig. 17", 2, "speed-up", _speed_ups(2),
            "Results 2: VVMalloc is 3 times as fast as the custom malloc on average, and twice as fast as ptmalloc.",
            _times_as_fast(3, CUSTOM, 2), _times_as_fast(2, GLIBC, 2), reading=_ROUNDED),
    _figure("Fig. 18", 3, "speed-up", _speed_ups(3),
            "Results 3: VVMalloc is 2 times as fast as the custom malloc, and 1.5 to 2 times as fast as ptmalloc.",
            _times_as_fast(2, CUSTOM, 3), _times_as_fast(1.5, GLIBC, 3), reading=_ROUNDED),
]

FIGURES = [*FIRST, SIXTH, *_APPROACHES_2_AND_3, PROFILE, *_APPROACH_4]
