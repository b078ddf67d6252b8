"""HMalloc: a multi-threaded memory allocator for parallel discrete event simulation.  Its Fig. 11 to 14 and Table 2.

The claims are about hmalloc_paper, HMalloc as published: through its entry points, which tell local memory from shared,
against everything shared (the paper's HMalloc-shared) and glibc.  Simulations are not split: there it is preloaded.
Today's hmalloc is a line of its own.
"""

from ...bench.catalogue import Cell
from ...bench.results import Results
from ..figure import Chart, PaperFigure, Table
from .baselines import HMALLOC_PAPER, PAPER_EXPLICIT, PAPER_SHARED, beside
from .clauses import Pair, alike, compared, faster, related
from .common import GLIBC, Cells, Draw, all_cpus, cells, joined, measured_in, most_threads, percent, several_threads
from .judging import Clause, judged, where_measured
from .pictures import lines

PAPER = "HMalloc (2020)"
HMALLOC, SHARED, PRELOADED = PAPER_EXPLICIT, PAPER_SHARED, HMALLOC_PAPER
CLEARLY = 0.2  # "much better", where the paper gives no number

_NOT_HERE = "SSMalloc and SFMalloc are not measured here."
_NOTE = f"HMalloc is {HMALLOC}, HMalloc-shared {SHARED}; {_NOT_HERE}"

_CAST = beside(HMALLOC, SHARED, "hmalloc-explicit")

PROGRAMS: dict[str, Cells] = {
    "linux-scalability": cells("linux-scalability", size=512),
    "threadtest": cells("threadtest", size=64),
    "shbench": cells("shbench"),
    "largetest": cells("largetest"),
    "larson": cells("larson", min=8, max=512),
    "producer-consumer": cells("producer-consumer", size=8),
    "active-false": cells("active-false", size=8),
    "passive-false": cells("passive-false", size=8),
}


# One thread shares no cache line.
_ACTIVE, _PASSIVE = (several_threads(PROGRAMS[program]) for program in ("active-false", "passive-false"))


def _program(letter: str, program: str, title: str, claim: str, *clauses: Clause, reading: str = "") -> PaperFigure:
    draw = lines(PROGRAMS[program], "ns per operation", cast=_CAST)
    return PaperFigure(PAPER, f"Fig. 11 ({letter})", title, claim, draw, judged(*clauses, note=_NOTE), reading)


_SPEED = [
    _program("a", "threadtest", "Threadtest",
             "Section 4.1: with 5000 rounds of 100,000 blocks of 64 B, HMalloc is about 10 % ahead of SSMalloc, 21 to "
             "76 % ahead of SFMalloc, and more than 15 % ahead of itself with everything shared (HMalloc-shared).",
             faster(HMALLOC, SHARED, PROGRAMS["threadtest"], 0.15), faster(HMALLOC, GLIBC, PROGRAMS["threadtest"])),
    _program("b", "linux-scalability", "Linux-scalability",
             "Section 4.1: with a million blocks of 512 B a thread, HMalloc is ahead of SSMalloc below 6 threads and "
             "behind it above, because it walks a list of some 125 superblocks of 4 MB; both are far ahead of "
             "HMalloc-shared, SFMalloc and glibc.",
             faster(HMALLOC, SHARED, PROGRAMS["linux-scalability"], CLEARLY),
             faster(HMALLOC, GLIBC, PROGRAMS["linux-scalability"], CLEARLY),
             reading="Far ahead is taken as 20 %: the paper gives no number."),
    _program("c", "shbench", "SHbench",
             "Section 4.1: with blocks of 1 B to 1 KB, 1000 at a time, HMalloc is 30 % ahead of SSMalloc, 100 % ahead "
             "of SFMalloc, and clearly ahead of HMalloc-shared and all others.",
             faster(HMALLOC, SHARED, PROGRAMS["shbench"], CLEARLY),
             faster(HMALLOC, GLIBC, PROGRAMS["shbench"], CLEARLY),
             reading="Clearly ahead is taken as 20 %: the paper gives no number."),
    _program("d", "largetest", "Largetest",
             "Section 4.2: with one block of 64 KB after every 100 of 64 B, HMalloc is about 10 % ahead of SSMalloc, "
             "50 % ahead of SFMalloc and 20 % ahead of HMalloc-shared, as superblocks of 4 MB spare it calls to the "
             "system.",
             faster(HMALLOC, SHARED, PROGRAMS["largetest"], 0.15), faster(HMALLOC, GLIBC, PROGRAMS["largetest"]),
             reading="About 20 % is taken as at least 15 %."),
    _program("e", "producer-consumer", "Producer-consumer",
             "Section 4.3: one thread allocates blocks of 8 B that 1 to 15 others free. HMalloc is 8 to 30 % ahead of "
             "SSMalloc, the more so the more threads, and 28 to 112 % ahead of SFMalloc, without a CAS per free.",
             faster(HMALLOC, GLIBC, PROGRAMS["producer-consumer"]),
             reading="The threads include the producer. All memory is shared, so there is no HMalloc-shared."),
    _program("f", "larson", "Larson",
             "Section 4.3: over 10 s of 10,000 blocks of 8 to 512 B handed from thread to thread, HMalloc has the "
             "largest throughput in most cases, thanks to the cache of just freed blocks.",
             faster(HMALLOC, GLIBC, PROGRAMS["larson"], in_most=True),
             reading="The paper draws operations per second; we draw the time of one. All memory is shared."),
    _program("g", "active-false", "Active-False",
             "Section 4.4: writing each byte of private 8 B blocks 20,000 times, 200,000 blocks a thread, all five "
             "allocators take nearly the same time: none puts blocks of two threads on one cache line.",
             alike(HMALLOC, GLIBC, _ACTIVE, 0.1), alike(SHARED, GLIBC, _ACTIVE, 0.1),
             reading="Nearly the same is taken as within 10 %."),
    _program("h", "passive-false", "Passive-False",
             "Section 4.4: threads free 8 B blocks that another thread allocated, then allocate and write their own, "
             "10,000,000 times. HMalloc is ahead of the other three and of HMalloc-shared, as a freed shared block "
             "never comes back as a local one.",
             faster(HMALLOC, SHARED, _PASSIVE), faster(HMALLOC, GLIBC, _PASSIVE)),
]


# ---- Table 2. -------------------------------------------------------------------------------------------------------


def _peaks(results: Results) -> list[Table]:
    """A row for each allocator, two columns for each program: megabytes."""
    peaks = [(f"{title} {metric}", cell, column) for title, of in PROGRAMS.items() for cell in most_threads(of)(results)
             for metric, column in (("VmPeak", "vm_peak_kb"), ("VmHWM", "vm_hwm_kb"))]
    rows = []
    for who in measured_in(results, [cell for _, cell, _ in peaks], _CAST):
        medians = [results.median(cell, who, column) for _, cell, column in peaks]
        rows.append([who, *(None if kb is None else kb / 1024 for kb in medians)])
    return [Table(["allocator", *(title for title, _, _ in peaks)], rows, "Peak memory in MB")] if rows else []


def _in_programs(*programs: str) -> Cells:
    return joined(*(most_threads(PROGRAMS[program]) for program in programs))


_MEMORY = {"at": lambda cell: f"in {cell.workload}", "crowded": True}

_TABLE_2 = PaperFigure(
    PAPER, "Table 2", "Peak memory of the eight programs",
    "Section 4.5: with 16 threads HMalloc has the smallest VmPeak in most programs (Threadtest 318 MB against glibc's "
    "1227), in Linux-scalability the smallest VmHWM too (1460 MB against 2929), but elsewhere a larger VmHWM "
    "(Threadtest 114 MB against 13.9, Larson 603 against 96).",
    _peaks,
    judged(compared(HMALLOC, GLIBC, _in_programs(*PROGRAMS), most=1, metric="vm_peak_kb", what="VmPeak", in_most=True,
                    **_MEMORY),
           compared(HMALLOC, GLIBC, _in_programs("linux-scalability"), most=1, metric="vm_hwm_kb", what="VmHWM",
                    **_MEMORY),
           compared(HMALLOC, GLIBC, _in_programs(*(name for name in PROGRAMS if name != "linux-scalability")), least=1,
                    metric="vm_hwm_kb", what="VmHWM", in_most=True, **_MEMORY),
           note=_NOTE),
    "At the largest number of threads measured for each program.")


# ---- Simulations. ---------------------------------------------------------------------------------------------------


_SIMULATED = f"HMalloc is {PRELOADED}, preloaded under the engine; {_NOT_HERE}"


def _model(label: str, model: str, parameter: str, axis: str, title: str, claim: str, *more: Clause) -> PaperFigure:
    of = cells(model, lambda cell: parameter in cell.point)
    ahead = faster(PRELOADED, GLIBC, all_cpus(of), 0.08, at=lambda cell: f"at {parameter}={cell.point[parameter]}")
    absent = f"This campaign has no cells of {model}: the profiles paper, baselines and full have them."
    return PaperFigure(PAPER, label, title, claim, _for_each_number_of_threads(of, parameter, axis),
                       where_measured(of, judged(ahead, *more, note=_SIMULATED), absent),
                       "Judged with as many threads as there are CPUs; about 10 % is taken as at least 8 %. Floor is a "
                       "free list inside the engine: no allocator can be much faster.")


def _for_each_number_of_threads(of: Cells, parameter: str, axis: str) -> Draw:
    def draw(results: Results) -> list[Chart]:
        counts = sorted({cell.threads for cell in of(results)})
        return [chart for count in counts for chart in lines(
            lambda results: [cell for cell in of(results) if cell.threads == count], "ns per event", parameter, axis,
            cast=beside("hmalloc-explicit", "floor"), title=f"{count} thread{'s' if count > 1 else ''}")(results)]
    return draw


def _unmoved_by_remote_events(within: float) -> Clause:
    def ends(_, among: list[Cell]) -> list[Pair]:
        among = sorted(among, key=lambda cell: cell.point["remote"])
        return [Pair("from the least to the most remote events", among[-1], among[0], 1 / (1 + within), 1 + within)
                ] if len(among) > 1 else []
    return related(PRELOADED, all_cpus(cells("phold", lambda cell: "remote" in cell.point)), ends, "change in the time",
                   f"at most {percent(within)}")


_SIMULATIONS = [
    _model("Fig. 12", "phold", "remote", "remote events, %", "PHOLD",
           "Section 4.6: HMalloc is about 10 % ahead of SFMalloc and of glibc and about 20 % ahead of SSMalloc, "
           "whatever share of the events (0 to 100 %) goes to other threads.", _unmoved_by_remote_events(0.1)),
    _model("Fig. 13", "pcs", "events", "events per cell", "Personal communication services",
           "Section 4.7: with 20 to 200 events per cell, HMalloc is over 5 % ahead of SSMalloc and SFMalloc and over "
           "10 % ahead of glibc."),
    _model("Fig. 14", "airport", "planes", "planes per airport", "Airport",
           "Section 4.8: with 50 to 500 planes per airport, HMalloc is more than 5 % ahead of SFMalloc and SSMalloc "
           "and about 10 % ahead of glibc."),
]

FIGURES = [*_SPEED, _TABLE_2, *_SIMULATIONS]
