"""The claims of the papers, a row each: figure, cells, picture, and the predicates that have to hold.  The words are in
claims.md, under the same names.
"""

import math

from . import pictures, special
from .measures import (
    HMALLOC,
    HMALLOC_SHARED,
    PRELOADED,
    TCMALLOC,
    Cells,
    Shown,
    all_cpus,
    beside,
    cells,
    joined,
    megabytes,
    most,
    most_of_several,
    one_thread,
    only,
    percent,
    quotient,
    several_threads,
    traces,
)
from .pictures import LINUX, by_allocator, by_metric, lines, speed_up, together
from .predicates import (
    Predicate,
    alike,
    compared,
    faster,
    last_to_first,
    lies,
    linear,
    most_to_one_thread,
    related,
    slower,
    slows_down,
    stops_scaling,
    to_one_thread,
    unavailable,
)
from .special import PROCESSORS, SECONDS, VV1, VV2, VV3, VV4, ahead, studied, successors, waits, workers, workload

SHBENCH, BARNES_HUT, SCALABILITY, LARGETEST, UNEQUAL, RANDOM = map(
    cells, ("shbench", "barnes-hut", "linux-scalability", "largetest", "unequal", "ar-random"))
ACTIVE, PASSIVE = cells("active-false", size=8), cells("passive-false", size=8)


# ---- HMalloc. -------------------------------------------------------------------------------------------------------

_CAST = beside(HMALLOC, HMALLOC_SHARED, "hmalloc-explicit")
_TIMES = lines(shown=_CAST)
THREADTEST_64, LARSON_512, PRODUCER = (
    cells("threadtest", size=64), cells("larson", min=8, max=512), cells("producer-consumer", size=8))
_PROGRAMS = (SCALABILITY, THREADTEST_64, SHBENCH, LARGETEST, LARSON_512, PRODUCER, ACTIVE, PASSIVE)


def _peak(what: str, metric: str, least: float, most: float, of: Cells, **more: bool) -> Predicate:
    return compared(HMALLOC, "glibc", least, most, metric, what, of=of, oversubscribed=True, **more)


def _simulation(label: str, model: str, parameter: str, axis: str, *more: Predicate) -> tuple:
    times = lines("ns per event", shown=beside("hmalloc-explicit", "no-allocator"), x=parameter, x_title=axis,
                  key=pictures.by_threads)
    return label, cells(model), times, faster(PRELOADED, "glibc", 0.08, of=all_cpus(cells(model))), *more


_HMALLOC = [
    ("Fig. 11 (a)", THREADTEST_64, _TIMES, faster(HMALLOC, HMALLOC_SHARED, 0.15), faster(HMALLOC, "glibc")),
    ("Fig. 11 (b)", SCALABILITY, _TIMES, faster(HMALLOC, HMALLOC_SHARED, 0.2), faster(HMALLOC, "glibc", 0.2)),
    ("Fig. 11 (c)", SHBENCH, _TIMES, faster(HMALLOC, HMALLOC_SHARED, 0.2), faster(HMALLOC, "glibc", 0.2)),
    ("Fig. 11 (d)", LARGETEST, _TIMES, faster(HMALLOC, HMALLOC_SHARED, 0.15), faster(HMALLOC, "glibc")),
    ("Fig. 11 (e)", PRODUCER, _TIMES, faster(HMALLOC, "glibc")),
    ("Fig. 11 (f)", LARSON_512, _TIMES, faster(HMALLOC, "glibc", in_most=True)),
    ("Fig. 11 (g)", ACTIVE, _TIMES, alike(HMALLOC, "glibc", 0.1, of=several_threads(ACTIVE)),
     alike(HMALLOC_SHARED, "glibc", 0.1, of=several_threads(ACTIVE))),
    ("Fig. 11 (h)", PASSIVE, _TIMES, faster(HMALLOC, HMALLOC_SHARED, of=several_threads(PASSIVE)),
     faster(HMALLOC, "glibc", of=several_threads(PASSIVE))),
    ("Table 2", most(*_PROGRAMS), together(by_allocator("VmPeak in MB", megabytes("vm_peak_kb"), _CAST),
                                           by_allocator("VmHWM in MB", megabytes("vm_hwm_kb"), _CAST)),
     _peak("VmPeak", "vm_peak_kb", 0, 1, most(*_PROGRAMS), in_most=True),
     _peak("VmHWM", "vm_hwm_kb", 0, 1, most(SCALABILITY)),
     _peak("VmHWM", "vm_hwm_kb", 1, math.inf, most(*_PROGRAMS[1:]), in_most=True)),
    _simulation("Fig. 12", "phold", "remote", "remote events, %", related(
        PRELOADED, last_to_first, least=1 / 1.1, most=1.1, asked="at most 10 % more or less", of=all_cpus(cells("phold")))),
    _simulation("Fig. 13", "pcs", "events", "events per cell"),
    _simulation("Fig. 14", "airport", "planes", "planes per airport"),
]

# ---- Hoard. ---------------------------------------------------------------------------------------------------------

_SPEED_UP = speed_up(beside(), ("one_lock", "glibc"))
THREADTEST_8, LARSON_100 = cells("threadtest", size=8), cells("larson", min=10, max=100)
_COUNTED = (THREADTEST_8, SHBENCH, LARSON_100, BARNES_HUT)
_SINGLE = traces("python", "perl", "sqlite")
_USED = "counter_objects_from_used_superblocks"
_COUNTERS = {"objects": "counter_objects", "of these from used superblocks": _USED,
             "that came along": "counter_objects_that_came_along",
             "superblocks from the global heap": "counter_transfers_from_global",
             "to the global heap": "counter_transfers_to_global"}
_A_OVER_U = quotient("counter_max_allocated", "counter_max_in_use")
_FRACTIONS = only("hoard-f8", "hoard", "hoard-f2")  # by the empty fraction: 1/8, 1/4, 1/2
_HELD = {"metric": _A_OVER_U, "what": "A/U", "oversubscribed": True}
_SOLVER = unavailable("BEMengine, a commercial solver")

_HOARD = [
    ("Fig. 3 (a)", THREADTEST_8, _SPEED_UP, slows_down("one_lock"), linear("hoard", PROCESSORS),
     ahead("hoard", "glibc", 2.78, THREADTEST_8), stops_scaling("glibc", 6)),
    ("Fig. 3 (b)", SHBENCH, _SPEED_UP, stops_scaling("one_lock", 1), linear("hoard", PROCESSORS, 0.5),
     ahead("hoard", "glibc", 0.85, SHBENCH), stops_scaling("glibc", 6)),
    ("Fig. 3 (c)", LARSON_100, _SPEED_UP, slows_down("one_lock"), linear("hoard", PROCESSORS),
     ahead("hoard", "glibc", 17, LARSON_100), stops_scaling("glibc", 6)),
    ("Fig. 3 (d)", BARNES_HUT, _SPEED_UP, linear("hoard", PROCESSORS), linear("glibc", PROCESSORS),
     ahead("hoard", "one_lock", 0.08, BARNES_HUT), ahead("glibc", "one_lock", 0.08, BARNES_HUT)),
    ("Fig. 3 (e)", cells("bemengine"), _SPEED_UP, _SOLVER),
    ("Fig. 3 (f)", cells("bemengine"), _SPEED_UP, _SOLVER),
    ("Fig. 4 (a)", ACTIVE, _SPEED_UP, stops_scaling("one_lock", 1), linear("hoard", PROCESSORS), stops_scaling("glibc", 4)),
    ("Fig. 4 (b)", PASSIVE, _SPEED_UP, linear("hoard", 12), stops_scaling("glibc", 4)),
    ("Table 2", joined(*map(one_thread, (THREADTEST_8, SHBENCH, ACTIVE, PASSIVE, BARNES_HUT)), _SINGLE),
     by_allocator("ns per operation", shown=beside()),
     compared("hoard", "one_lock", most=1.1, of=joined(*map(one_thread, (THREADTEST_8, ACTIVE, PASSIVE, BARNES_HUT)))),
     compared("hoard", "one_lock", most=1.2, of=_SINGLE),
     slower("hoard", "one_lock", 0.1, of=one_thread(SHBENCH))),
    ("Table 3", most_of_several(*_COUNTED), by_metric("What hoard counted of itself", "hoard", _COUNTERS),
     lies("hoard", "most objects from used superblocks in any run", _USED, special.largest, most=0, show="{:,.0f}".format)),
    ("Table 4", most_of_several(*_COUNTED), by_metric("What hoard counted of itself", "hoard", {
        "A/U": _A_OVER_U, "A, B": "counter_max_allocated", "U, B": "counter_max_in_use"}),
     lies("hoard", "A/U as it counts itself", _A_OVER_U, expected=lambda cell: special.FRAGMENTATION[cell.workload],
          most=1.05, asked="at most 5 % above the paper's", of=most_of_several(THREADTEST_8, LARSON_100, BARNES_HUT)),
     lies("hoard", "A/U of replayed traces", "a_over_u", most=1.05 * 1.47, of=_SINGLE)),
    ("Table 5", joined(*(all_cpus(several_threads(studied(each))) for each in _COUNTED)),
     by_allocator("ns per operation", shown=_FRACTIONS), alike("hoard-f8", "hoard", 0.1), alike("hoard-f2", "hoard", 0.1)),
    ("Table 6", most_of_several(*map(studied, _COUNTED)), by_allocator("A/U as hoard counts itself", _A_OVER_U, _FRACTIONS),
     alike("hoard-f8", "hoard", 0.05, **_HELD),
     alike("hoard-f2", "hoard", 0.05, of=most_of_several(*map(studied, (THREADTEST_8, SHBENCH, BARNES_HUT))), **_HELD),
     compared("hoard-f2", "hoard", 1.1, of=most_of_several(studied(LARSON_100)), **_HELD)),
]

# ---- Linux malloc. --------------------------------------------------------------------------------------------------

_TWO = joined(workers(512, "processes", threads=2), workers(512, threads=2))
_SECONDS = by_allocator("Seconds of a worker", SECONDS, LINUX)
_WORKERS = lines("seconds of a worker", SECONDS, shown=LINUX)
_AND_EXPECTED = lines("seconds of a worker", SECONDS, shown=LINUX, extra=pictures.expected_workers)
_FAULTS = pictures.FAULTS_OVER_ROUNDS


def _worker(allocator: str, pairs, **more) -> Predicate:
    return related(allocator, pairs, metric=SECONDS, oversubscribed=True, **more)


_LINUX = [
    ("Table 1", _TWO, _SECONDS, related("glibc", last_to_first, metric=SECONDS, most=1.15)),
    ("Table 2", _TWO, _SECONDS, related("one_lock", last_to_first, metric=SECONDS, least=5)),
    ("Table 3", _TWO, _SECONDS, related("glibc", last_to_first, metric=SECONDS, most=1.25, cpus=4)),
    ("Fig. 1", workers(8192), _AND_EXPECTED, _worker(
        "glibc", special.beyond_the_cpus, expected=special.threads_per_cpu, most=1.2,
        asked="at most 20 % above the threads for each CPU")),
    ("Fig. 2", workers(4100), _WORKERS, _worker(
        "glibc", special.busy, expected=lambda cell, base, _: cell.threads / base.threads, least=0.75, most=1.25,
        asked="as the threads, within 25 %")),
    ("Fig. 3", workers(8192), _AND_EXPECTED, _worker(
        "one_lock", most_to_one_thread, expected=special.threads_per_cpu, least=2, cpus=1,
        asked="at least 2 times the threads for each CPU")),
    ("Fig. 4", workers(8192), _AND_EXPECTED, related("glibc", to_one_thread, metric=SECONDS, most=1.25, cpus=4),
     _worker("glibc", special.one_beyond, least=1.1, cpus=4)),
    ("Table 4", workers(8192, threads=3), pictures.by_round("Seconds of a worker", SECONDS, LINUX),
     special.SPORADICALLY_SLOW),
    ("Fig. 5", successors(1), _FAULTS, special.grow_as_predicted(0.05), special.spread(most=0.05)),
    ("Fig. 6", successors(3), _FAULTS, special.spread(least=0.25)),
    ("Fig. 7", successors(7), _FAULTS, special.spread(most=0.18), special.LESS_THAN_WITH_THREE),
    ("Fig. 8", successors(7, 9, 1000), _FAULTS, special.grow_as_predicted(0.1, cpus=2)),
    ("Fig. 9", special.objects(2), pictures.sizes, special.penalty(2)),
    ("Fig. 10", special.objects(3), pictures.sizes, special.penalty(1.5)),
    ("Fig. 11", special.objects(4), pictures.sizes, special.penalty(2)),
]

# ---- VVMalloc. ------------------------------------------------------------------------------------------------------


def _shown(*approaches: str) -> Shown:
    return only(*approaches, *TCMALLOC, "glibc", "hmalloc")


def _in_time(times: float, reference: str) -> Predicate:
    """N times as fast: at least 85 % of it."""
    return faster(VV4, reference, 0.85 * times - 1)


_APPROACHES = (VV1, VV2, VV3, VV4)
_ALL = _shown(*_APPROACHES, "one_lock")
_2, _2_3, _1_TO_4 = (lines(shown=_shown(*names)) for names in ((VV2,), (VV2, VV3), _APPROACHES))
_SPEED_UPS = together(*(pictures.times_as_fast(_shown(*_APPROACHES), reference) for reference in ("glibc", VV2)))
_IN_ORDER = faster(TCMALLOC, VV4), faster(VV4, "glibc")
_LOCKED = special.each_its_trace(special.THREAD_NS, "thread time", least=6, cpus=special.TRACES)
_DRIVER = together(by_allocator("Payload over the heap", special.UTILISATION, _ALL),
                   by_allocator("Payload of a trace over the heap", special.utilisation_of_a_trace, _ALL),
                   by_allocator("ns of the threads per operation", special.THREAD_NS, _ALL))
_PROFILE = together(*(
    by_allocator(f"Share of the threads' time: {what}", special.share_of_time(counter), only(VV2, VV3, VV4))
    for what, counter in (("waiting for the heap's spin lock", special.HEAP), ("holding it", special.HELD),
                          ("waiting at the queue", special.QUEUE))))

_VVMALLOC = [
    ("Fig. 1", cells("unequal", threads=1), _DRIVER, lies(
        VV1, "utilisation", special.UTILISATION, least=0.743 * 0.8, most=0.743 * 1.2, show=percent)),
    ("Fig. 2", UNEQUAL, _DRIVER, special.each_its_trace(
        special.utilisation_of_a_trace, "utilisation", most=0.25, oversubscribed=True), _LOCKED),
    ("Fig. 3", UNEQUAL, lines("ns of the threads per operation", special.THREAD_NS, shown=_ALL),
     slows_down(VV1, special.THREAD_NS), _LOCKED),
    ("Fig. 6", UNEQUAL, lines(shown=_ALL), faster(TCMALLOC, VV2, 0.2, of=several_threads(UNEQUAL)),
     faster(VV2, "glibc", of=several_threads(UNEQUAL))),
    ("Fig. 7", workload(1), _2, faster(VV2, "glibc"), slower(VV2, TCMALLOC)),
    ("Fig. 8", workload(2), _2, slower(VV2, "glibc"), slower(VV2, TCMALLOC)),
    ("Fig. 9", workload(3), _2, alike(VV2, "glibc", 0.15), slower(VV2, TCMALLOC)),
    ("Fig. 10", workload(1), _2_3, faster(VV3, VV2), faster(VV3, "glibc")),
    ("Fig. 11", workload(2), _2_3, slower(VV3, "glibc"), alike(VV3, VV2, 0.15)),
    ("Fig. 12", workload(3), _2_3, faster(VV3, "glibc"), alike(VV3, VV2, 0.15)),
    ("Profile", joined(*(all_cpus(several_threads(workload(number))) for number in (1, 2, 3))), _PROFILE,
     waits(VV2, 1, special.HEAP, 0.15), waits(VV2, 2, special.HEAP, 0.93), waits(VV2, 3, special.HEAP, 0.93),
     waits(VV3, 2, special.HEAP, 0.89), waits(VV3, 2, special.QUEUE, 0.04), waits(VV3, 3, special.QUEUE, 0.04)),
    ("Fig. 13", workload(1), _1_TO_4, *_IN_ORDER, alike(VV4, VV2, 0.15)),
    ("Fig. 14", workload(2), _1_TO_4, *_IN_ORDER, _in_time(3, VV2)),
    ("Fig. 15", workload(3), _1_TO_4, *_IN_ORDER, _in_time(2, VV2)),
    ("Fig. 16", workload(1), _SPEED_UPS, _in_time(1.5, "glibc"), alike(VV4, VV2, 0.15)),
    ("Fig. 17", workload(2), _SPEED_UPS, _in_time(3, VV2), _in_time(2, "glibc")),
    ("Fig. 18", workload(3), _SPEED_UPS, _in_time(2, VV2), _in_time(1.5, "glibc")),
]

# ---- ar_malloc. -----------------------------------------------------------------------------------------------------

_AR = only("ar_malloc", "ar_malloc-lock", "glibc", "hmalloc")

_AR_MALLOC = [
    ("Chart 1", RANDOM, lines(shown=_AR), faster("ar_malloc", "ar_malloc-lock", 0.2, of=several_threads(RANDOM)),
     faster("glibc", "ar_malloc-lock", 0.2, of=several_threads(RANDOM))),
    ("Chart 2", RANDOM, lines(shown=_AR), faster("ar_malloc", "glibc", 1.5, of=one_thread(RANDOM))),
    ("Chart 3", RANDOM, speed_up(_AR), stops_scaling("glibc", 8), linear("ar_malloc", special.CORES)),
    ("Chart 4", special.by_arenas, pictures.times_by_arenas,
     special.against_most_arenas(True, "time with fewer arenas than threads", least=1.1),
     special.against_most_arenas(False, "time with arenas for all threads", most=1.1)),
    ("Chart 5", special.by_arenas, pictures.speed_up_by_arenas, special.LINEAR_WITH_FEW_ARENAS),
]

PAPERS = {"HMalloc (2020)": _HMALLOC, "Hoard (2000)": _HOARD, "Linux malloc (2000)": _LINUX, "VVMalloc (15-618)": _VVMALLOC,
          "ar_malloc (2012)": _AR_MALLOC}
