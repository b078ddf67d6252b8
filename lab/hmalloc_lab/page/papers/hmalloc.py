"""HMalloc's Fig. 11 to 14 and Table 2.

HMalloc is hmalloc_paper, through its entry points, which tell local memory from shared; preloaded under simulations,
which are not split.  Today's hmalloc is a line of its own.
"""

import math

from ..figure import PaperFigure
from .measures import (
    EXPLICIT,
    GLIBC,
    PAPER,
    PRELOADED,
    SHARED,
    Cells,
    all_cpus,
    beside,
    cells,
    joined,
    most_threads,
    several_threads,
)
from .pictures import grid, lines, of_each, together
from .predicates import Clause, alike, compared, ends, faster, related
from .wording import of_paper

_OTHERS = "SSMalloc and SFMalloc are not measured here."
_hmalloc = of_paper("HMalloc (2020)", f"HMalloc is {PAPER}, HMalloc-shared {SHARED}; {_OTHERS}")
_simulated = of_paper("HMalloc (2020)", f"HMalloc is {PRELOADED}, preloaded under the engine; {_OTHERS}")
_CAST = beside(PAPER, SHARED, EXPLICIT)
_SPEED = lines("ns per operation", cast=_CAST)

SCALABILITY, THREADTEST, SHBENCH, LARGETEST, LARSON, PRODUCER, ACTIVE, PASSIVE = PROGRAMS = (
    cells("linux-scalability", size=512), cells("threadtest", size=64), cells("shbench"), cells("largetest"),
    cells("larson", min=8, max=512), cells("producer-consumer", size=8), cells("active-false", size=8),
    cells("passive-false", size=8))
_several = {of: {"of": several_threads(of)} for of in (ACTIVE, PASSIVE)}  # one thread shares no cache line
_PEAK = {"at": lambda cell: f"in {cell.workload}", "crowded": True}


def _most(*programs: Cells) -> Cells:
    return joined(*map(most_threads, programs))


def _model(label: str, model: str, parameter: str, axis: str, *more: Clause) -> PaperFigure:
    of = cells(model, lambda cell: parameter in cell.point)
    drawn = lines("ns per event", cast=beside(EXPLICIT, "no-allocator"), x=parameter, x_title=axis,
                  key=lambda cell, who: (f"{cell.threads} thread{'s' * (cell.threads > 1)}", who))
    return _simulated(label, of, drawn, faster(
        PRELOADED, GLIBC, 0.08, at=lambda cell: f"at {parameter}={cell.point[parameter]}", of=all_cpus(of)), *more)


_UNMOVED = related(
    PRELOADED, lambda results, among: ends(results, sorted(among, key=lambda cell: cell.point["remote"])),
    "change in the time", "at most 10 %", 1 / 1.1, 1.1, lambda *_: "from the least to the most remote events",
    of=all_cpus(cells("phold", lambda cell: "remote" in cell.point)))

FIGURES = [
    _hmalloc("Fig. 11 (a)", THREADTEST, _SPEED, faster(PAPER, SHARED, 0.15), faster(PAPER, GLIBC)),
    _hmalloc("Fig. 11 (b)", SCALABILITY, _SPEED, faster(PAPER, SHARED, 0.2), faster(PAPER, GLIBC, 0.2)),
    _hmalloc("Fig. 11 (c)", SHBENCH, _SPEED, faster(PAPER, SHARED, 0.2), faster(PAPER, GLIBC, 0.2)),
    _hmalloc("Fig. 11 (d)", LARGETEST, _SPEED, faster(PAPER, SHARED, 0.15), faster(PAPER, GLIBC)),
    _hmalloc("Fig. 11 (e)", PRODUCER, _SPEED, faster(PAPER, GLIBC)),
    _hmalloc("Fig. 11 (f)", LARSON, _SPEED, faster(PAPER, GLIBC, in_most=True)),
    _hmalloc("Fig. 11 (g)", ACTIVE, _SPEED, alike(PAPER, GLIBC, 0.1, **_several[ACTIVE]),
             alike(SHARED, GLIBC, 0.1, **_several[ACTIVE])),
    _hmalloc("Fig. 11 (h)", PASSIVE, _SPEED, faster(PAPER, SHARED, **_several[PASSIVE]),
             faster(PAPER, GLIBC, **_several[PASSIVE])),
    _hmalloc("Table 2", _most(*PROGRAMS), together(
        *(grid("program", of_each(metric, _CAST, 1024), f"{title} in MB")
          for title, metric in (("VmPeak", "vm_peak_kb"), ("VmHWM", "vm_hwm_kb")))),
        compared(PAPER, GLIBC, 0, 1, "vm_peak_kb", "VmPeak", in_most=True, **_PEAK),
        compared(PAPER, GLIBC, 0, 1, "vm_hwm_kb", "VmHWM", of=_most(SCALABILITY), **_PEAK),
        compared(PAPER, GLIBC, 1, math.inf, "vm_hwm_kb", "VmHWM", of=_most(*PROGRAMS[1:]), in_most=True, **_PEAK)),
    _model("Fig. 12", "phold", "remote", "remote events, %", _UNMOVED),
    _model("Fig. 13", "pcs", "events", "events per cell"),
    _model("Fig. 14", "airport", "planes", "planes per airport"),
]
