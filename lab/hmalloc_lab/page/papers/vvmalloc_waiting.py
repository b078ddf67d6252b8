"""VVMalloc's profile: which share of their time threads wait for the heap's spin lock and at the central queue."""

import math
from collections.abc import Mapping

from ...bench.catalogue import Cell
from ...bench.results import Results
from ..figure import PaperFigure, Table
from .baselines import VVMALLOC, counter
from .common import Cells, Metric, all_cpus, cells, cpus, percent, several_threads, values_of, with_threads
from .judging import Check, Clause, Finding, judged, level, missing, span, weighed
from .pictures import median_of

PAPER = "VVMalloc (15-618)"
CUSTOM, LOCK_FREE, VVMALLOC_4 = VVMALLOC[1:]
THREADS = 16          # that the report plays with
ALMOST_ALL = 0.9      # of what can be waited
WITHIN = 2            # times a small share, or a part of it

# (approach, workload): share of the time at the heap's spin lock, at the queue
PUBLISHED = {(CUSTOM, 1): (14.96, None), (CUSTOM, 2): (93.0, None), (CUSTOM, 3): (93.38, None),
             (LOCK_FREE, 2): (89.0, 4.0), (LOCK_FREE, 3): (None, 4.0)}


def share_of_time(name: str) -> Metric:
    """Of the counter, in nanoseconds of all threads, in the time that all threads had."""
    def metric(metrics: Mapping) -> float | None:
        waited, seconds, threads = (metrics.get(key) for key in (counter(name), "seconds", "threads"))
        return waited / (1e9 * seconds * threads) if waited is not None and seconds and threads else None
    return metric


HEAP, HELD, QUEUE = (share_of_time(name) for name in ("heap_wait_ns", "heap_lock_ns", "queue_wait_ns"))


def workload(number: int) -> Cells:
    return cells("vvmalloc", lambda cell: cell.point["workload"] == number)


def _judged(number: int) -> Cells:
    return all_cpus(several_threads(workload(number)))


def _shares(results: Results) -> list[Table]:
    rows = []
    for number in (1, 2, 3):
        for cell in _judged(number)(results):
            for who in (CUSTOM, LOCK_FREE, VVMALLOC_4):
                medians = [median_of(results, cell, who, metric) for metric in (HEAP, HELD, QUEUE)]
                if any(median is not None for median in medians):
                    heap, queue = PUBLISHED.get((who, number), (None, None))
                    waited, held, queued = (None if share is None else 100 * share for share in medians)
                    rows.append([f"{who}, workload {number}", cell.threads, heap, waited, 100 * can_wait(cell.threads),
                                 held, queue, queued])
    columns = ["", "threads", "at the heap: report", "here", "most possible", "holding its lock",
               "at the queue: report", "here"]
    return [Table(columns, rows, "Time of the threads, %")] if rows else []


def can_wait(threads: int) -> float:
    """All but one: the share of all threads' time."""
    return 1 - 1 / threads


def waits(who: str, number: int, metric: Metric, what: str, share: float) -> Clause:
    """Of what can be waited, threads wait as large a part as in the report.  Fewer CPUs wait less: then a smaller part
    tells nothing."""
    part = share / can_wait(THREADS)
    least, most = (ALMOST_ALL, math.inf) if part > ALMOST_ALL else (part / WITHIN, part * WITHIN)

    def clause(results: Results) -> Finding:
        among = _judged(number)(results)
        if gap := missing(results, workload(number)(results), among, who):
            return Finding(None, gap)
        waited = values_of(results, among[0], who, metric)
        parts = level({each: value / can_wait(among[0].threads) for each, value in waited.items()})
        check = Check(with_threads(among[0]), parts, least, most, lambda value: f"{100 * value:.2g} %")
        found = weighed(f"{who}, workload {number}, {what}, of what {among[0].threads} threads can wait", [check],
                        span(least, most, show=percent))
        if found.holds is False and parts.high < least and cpus(results) < THREADS:
            return Finding(None, found.text, f"The report plays with up to {THREADS} threads, this machine has "
                                             f"{cpus(results)} CPUs: fewer threads wait less.")
        return found
    return clause


_AT_THE_HEAP, _AT_THE_QUEUE = "waiting for the heap's spin lock", "waiting at the queue"

PROFILE = PaperFigure(
    PAPER, "Profile", "Time at the heap's spin lock and at the queue",
    "Approach 3: by perf, the spin lock around the heap costs approach 2 14.96 % of its time in workload 1, 93 % in "
    "workload 2 and 93.38 % in workload 3; approach 3 89 %, and its lock-free queue 4 %, about as much as the mutex.",
    _shares,
    judged(*(waits(CUSTOM, number, HEAP, _AT_THE_HEAP, share) for number, share in ((1, 0.15), (2, 0.93), (3, 0.93))),
           waits(LOCK_FREE, 2, HEAP, _AT_THE_HEAP, 0.89),
           *(waits(LOCK_FREE, number, QUEUE, _AT_THE_QUEUE, 0.04) for number in (2, 3))),
    "The allocators count the time that their threads wait; shares are of the time that all threads have together. All "
    "threads but one can wait: 15 of 16 are the report's 93 %, one of two is 50 %. So a share is compared as a part of "
    "what so many threads can wait: almost all (89 and 93 %) is taken as 90 % of it, 15 and 4 % as half to twice the "
    "report's part. Holding the lock, with the system's calls and faults, is not waiting.", id="vvmalloc-profile")
