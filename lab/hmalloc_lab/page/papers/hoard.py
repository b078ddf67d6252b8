"""Hoard: a scalable memory allocator for multithreaded applications.  Its Fig. 3 and 4 and Tables 2 to 6.

A heap behind one lock stands for the Solaris allocator, with which the paper's speed-ups begin, and glibc's malloc for
Ptmalloc, from which it descends.
"""

from ...bench.catalogue import Cell
from ...bench.results import Results
from ...bench.statistics import ratio
from ..figure import PaperFigure, Table
from . import baselines
from .baselines import HOARD, ONE_LOCK
from .clauses import compared, faster, linear, slower, slows_down, stops_scaling
from .common import GLIBC, Cells, cells, joined, measured_in, one_thread
from .hoard_tables import BARNES_HUT, LARSON, SHBENCH, SINGLE, TABLES, THREADTEST, program
from .judging import Clause, judged, on_cpus, untold
from .pictures import nothing, speed_up

PAPER = "Hoard (2000)"
PROCESSORS = 14  # of the paper's Sun Enterprise 5000

_STANDING_IN = "one_lock, a heap behind one lock, stands for the Solaris allocator, glibc for Ptmalloc."

ACTIVE = cells("active-false", size=8)
PASSIVE = cells("passive-false", size=8)


def _ahead(who: str, whom: str, of: Cells, by: float) -> Clause:
    """With the paper's number of processors."""
    def all_of_them(results: Results) -> list[Cell]:
        return [cell for cell in of(results) if cell.threads >= PROCESSORS]
    return on_cpus(PROCESSORS, faster(who, whom, all_of_them, by))


def _speed_up(label: str, title: str, of: Cells, claim: str, *clauses: Clause, reading: str = "") -> PaperFigure:
    return PaperFigure(PAPER, label, title, claim, speed_up(of, (ONE_LOCK, GLIBC), baselines.beside()),
                       judged(*clauses, note=_STANDING_IN), reading)


_FIG_3 = [
    _speed_up("Fig. 3 (a)", "Threadtest, 8 B", THREADTEST,
              "Section 5.2: 100,000/t objects of 8 B a round. Hoard's speed-up is linear up to 14 processors, where it "
              "is 278 % faster than Ptmalloc; Ptmalloc peaks at around 6 processors and the Solaris allocator slows "
              "down.",
              slows_down(ONE_LOCK, THREADTEST), linear(HOARD, THREADTEST, PROCESSORS),
              _ahead(HOARD, GLIBC, THREADTEST, 2.78), stops_scaling(GLIBC, THREADTEST, 6)),
    _speed_up("Fig. 3 (b)", "shbench", SHBENCH,
              "Section 5.2: random sizes in random order. Hoard comes near linear speed-up and is 85 % faster than "
              "Ptmalloc, the next best, with 14 processors; Ptmalloc peaks at around 6, and the Solaris allocator, one "
              "heap for all, does not scale.",
              stops_scaling(ONE_LOCK, SHBENCH, 1), linear(HOARD, SHBENCH, PROCESSORS, share=0.5),
              _ahead(HOARD, GLIBC, SHBENCH, 0.85), stops_scaling(GLIBC, SHBENCH, 6),
              reading="Near linear is taken as half of it. Our sizes are 1 to 1000 B, the paper's 8 to 100 B."),
    _speed_up("Fig. 3 (c)", "Larson, 10 to 100 B", LARSON,
              "Section 5.2: 10,000 blocks handed from thread to thread. Hoard scales linearly and is 18 times as fast "
              "as Ptmalloc with 14 processors; all others are slower with 14 than with one.",
              slows_down(ONE_LOCK, LARSON), linear(HOARD, LARSON, PROCESSORS),
              _ahead(HOARD, GLIBC, LARSON, 17), stops_scaling(GLIBC, LARSON, 6)),
    _speed_up("Fig. 3 (d)", "Barnes-Hut", BARNES_HUT,
              "Section 5.2: 32,768 bodies for 20 rounds. With 14 processors every allocator of several heaps brings 10 "
              "%: a speed-up of just above 12 instead of below 10 with the Solaris allocator; Hoard is only slightly "
              "ahead of Ptmalloc.",
              linear(HOARD, BARNES_HUT, PROCESSORS), linear(GLIBC, BARNES_HUT, PROCESSORS),
              *(_ahead(who, ONE_LOCK, BARNES_HUT, 0.08) for who in (HOARD, GLIBC)),
              reading="10 % is taken as at least 8 %."),
    PaperFigure(PAPER, "Fig. 3 (e)", "BEMengine",
                "Section 5.2: Hoard is far ahead of Ptmalloc and Solaris on a field solver that needs nearly 600 MB.",
                nothing, untold("BEMengine is part of a commercial solver: nothing here stands for it.")),
    PaperFigure(PAPER, "Fig. 3 (f)", "BEMengine, the solver alone",
                "Section 5.2: where the solver hardly allocates, Hoard and the Solaris allocator are equally fast.",
                nothing, untold("BEMengine is part of a commercial solver: nothing here stands for it.")),
]

_FIG_4 = [
    _speed_up("Fig. 4 (a)", "Active false sharing", ACTIVE,
              "Section 5.3: Hoard scales linearly to 14 processors; Ptmalloc and MTmalloc only to about 4, as they "
              "give several threads parts of one cache line; the Solaris allocator not at all.",
              stops_scaling(ONE_LOCK, ACTIVE, 1), linear(HOARD, ACTIVE, PROCESSORS), stops_scaling(GLIBC, ACTIVE, 4)),
    _speed_up("Fig. 4 (b)", "Passive false sharing", PASSIVE,
              "Section 5.3: where threads free small objects of another thread first, Hoard still scales nearly "
              "linearly up to 12 processors; Ptmalloc and MTmalloc do not avoid the false sharing.",
              linear(HOARD, PASSIVE, 12), stops_scaling(GLIBC, PASSIVE, 4)),
]


# ---- Table 2: one thread. -------------------------------------------------------------------------------------------

_SEVERAL_THREADED = joined(THREADTEST, SHBENCH, ACTIVE, PASSIVE, BARNES_HUT)
_ALONE = joined(one_thread(_SEVERAL_THREADED), SINGLE)
_ALONE_BUT_SHBENCH = one_thread(joined(THREADTEST, ACTIVE, PASSIVE, BARNES_HUT))
_PUBLISHED = {"threadtest": "-6.1 %", "shbench": "+49.2 %", "active-false": "+0.6 %", "passive-false": "+0.3 %",
              "barnes-hut": "-1.0 %", "replay": "-2.9 to +15.9 %"}
_PROGRAMS = Table(["the paper's", "here"], [
    ["espresso, Ghostscript, LRUsim, p2c (one thread)", "traces of python, perl and sqlite"],
    ["threadtest", "threadtest --size 8"],
    ["shbench", "shbench"],
    ["Larson", "larson --min 10 --max 100"],
    ["active-false, passive-false", "active-false, passive-false"],
    ["BEMengine", "none: part of a commercial solver"],
    ["Barnes-Hut", "barnes-hut"],
], "The paper's programs (its Table 1) and ours")


def _one_thread_changes(results: Results) -> list[Table]:
    among = _ALONE(results)
    names = [name for name in measured_in(results, among, baselines.beside()) if name != ONE_LOCK]
    rows = []
    for cell in among:
        changes = [ratio(results, cell, name, ONE_LOCK) for name in names]
        rows.append([program(cell), results.median(cell, ONE_LOCK), _PUBLISHED[cell.workload],
                     *(change and f"{change.median - 1:+.1%}" for change in changes)])
    columns = ["program", "one_lock, ns", "Hoard in the paper", *names]
    return [Table(columns, rows, "Time against the system's allocator"), _PROGRAMS] if names else []


_IN_PROGRAM = {"at": lambda cell: f"in {program(cell)}"}

_TABLE_2 = PaperFigure(
    PAPER, "Table 2", "Run times of one thread",
    "Section 5.1: with one thread Hoard costs 6.2 % on average against the Solaris allocator, most of it in shbench "
    "(+49.2 %), which uses many size classes and little memory; threadtest gains 6.1 %, BEMengine 10.3 %, the other "
    "programs of several threads change by about 1 %, those of one thread by -2.9 to +15.9 %.",
    _one_thread_changes,
    judged(compared(HOARD, ONE_LOCK, _ALONE_BUT_SHBENCH, most=1.1, **_IN_PROGRAM),
           compared(HOARD, ONE_LOCK, SINGLE, most=1.2, **_IN_PROGRAM),
           slower(HOARD, ONE_LOCK, one_thread(SHBENCH), 0.1, **_IN_PROGRAM), note=_STANDING_IN),
    "Asked are at most 10 % of the programs of several threads and 20 % of those of one, at least 10 % of shbench.")

FIGURES = [*_FIG_3, *_FIG_4, _TABLE_2, *TABLES]
