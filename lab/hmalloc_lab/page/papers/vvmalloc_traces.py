"""VVMalloc's Fig. 1 to 3 and 6: its malloc-lab driver, sequential, behind a lock, and with a thread for each trace.

The traces of the malloc lab are not published: `unequal` plays generated sequences of their names and numbers of calls.
"""

from collections.abc import Mapping

from ...bench.catalogue import Cell
from ...bench.results import Results
from ..figure import PaperFigure, Table
from .baselines import ONE_LOCK, TODAY, VVMALLOC, counter
from .clauses import Pair, faster, related, slows_down
from .common import GLIBC, Metric, cells, measured_in, only, percent, several_threads, values_of
from .judging import Check, Clause, Finding, judged, level, missing, on_cpus, span, weighed
from .pictures import lines, median_of

PAPER = "VVMalloc (15-618)"
TCMALLOC = ("gperftools", "tcmalloc")
TRACES = 16           # and so threads
UTILISATION, WITH_LOCK = 0.743, 0.091
BY_FAR = 0.2

UNEQUAL = cells("unequal")
THREADS_TIME = "thread_ns_per_op"  # of all threads: what the report's milliseconds add up
CAST = only(*VVMALLOC, *TCMALLOC, GLIBC, ONE_LOCK, TODAY)

GENERATED = ("The malloc lab's traces are not published: sequences generated with their numbers of calls stand for "
             "them.")


def utilisation(metrics: Mapping) -> float | None:
    """Most payload over the heap: known of those that count what they have mapped."""
    payload, heap = metrics.get("payload_kb"), metrics.get(counter("mapped"))
    return payload * 1024 / heap if payload is not None and heap else None


def utilisation_of_a_trace(metrics: Mapping) -> float | None:
    """As the driver counts it: the payload of one trace over the heap of all."""
    whole = utilisation(metrics)
    return None if whole is None else whole / metrics["threads"]


def _kops(ns_per_pair: float | None) -> float | None:
    """Thousand calls a second; an operation of ours is a malloc and its free."""
    return 2e6 / ns_per_pair if ns_per_pair else None


def _driver(threads: int, published: tuple[float, float]):
    def draw(results: Results) -> list[Table]:
        rows = []
        for cell in cells("unequal", threads=threads)(results):
            for who in measured_in(results, [cell], CAST):
                shares = [median_of(results, cell, who, each) for each in (utilisation_of_a_trace, utilisation)]
                rows.append([who, *(None if share is None else 100 * share for share in shares),
                             _kops(median_of(results, cell, who, THREADS_TIME))])
        columns = ["allocator", "utilisation of a trace, %", "of all together, %", "thousand calls/s"]
        paper = ["the report's", published[0], None, published[1]]
        return [Table(columns, [paper, *rows], f"{threads} thread{'s' * (threads > 1)}")] if rows else []
    return draw


def _utilisation_within(who: str, within: float) -> Clause:
    def clause(results: Results) -> Finding:
        among = cells("unequal", threads=1)(results)
        if gap := missing(results, among, among, who):
            return Finding(None, gap)
        least, most = UTILISATION * (1 - within), UTILISATION * (1 + within)
        checks = [Check("with one thread", level(values_of(results, cell, who, utilisation)), least, most, percent)
                  for cell in among]
        return weighed(f"{who}, utilisation", checks, span(least, most, show=percent))
    return clause


def _thread_for_each_trace(who: str, metric: Metric, what: str, crowded: bool, least: float = 0.0,
                           most: float = float("inf")) -> Clause:
    """With a thread for each trace against the sequential version."""
    def pairs(_: Results, among: list[Cell]) -> list[Pair]:
        by_threads = {cell.threads: cell for cell in among}
        if not {1, TRACES} <= by_threads.keys():
            return []
        return [Pair(f"with {TRACES} threads", by_threads[TRACES], by_threads[1], least, most)]
    return related(who, UNEQUAL, pairs, what, span(least, most), metric, crowded=crowded)


_LOCKED = VVMALLOC[0]
_WAITS = "thread time over that of one thread"

FIRST = [
    PaperFigure(PAPER, "Fig. 1", "Malloc-lab driver, sequential",
                "Approach 1: the sequential allocator of the malloc lab uses 74.3 % of its heap and does 14,639 "
                "thousand operations a second on average, over 22 traces.",
                _driver(1, (100 * UTILISATION, 14_639)), judged(_utilisation_within(_LOCKED, 0.2), note=GENERATED),
                "One thread plays the 16 traces that count, one after the other; the lock is there, but nobody waits. "
                "Utilisation is the payload of the largest trace over the heap at the end, where the heap is counted; "
                "asked is a fifth more or less than the report's. The report's throughput is that of another machine "
                "and is not judged."),
    PaperFigure(PAPER, "Fig. 2", "Malloc-lab driver, one global lock",
                "Approach 1: with a lock around it and a thread for each trace, utilisation falls from 74.3 to 9.1 % "
                "and throughput from 14,639 to 1,668 thousand operations a second.",
                _driver(TRACES, (100 * WITH_LOCK, 1_668)),
                judged(_thread_for_each_trace(_LOCKED, utilisation_of_a_trace, "utilisation over that with one thread",
                                              True, most=0.25),
                       on_cpus(TRACES, _thread_for_each_trace(_LOCKED, THREADS_TIME, _WAITS, False, least=6)),
                       note=GENERATED),
                "The driver divides the payload of each trace by the heap of all of them: most of the fall is this "
                "division; the second column divides the payload of all. Asked are a quarter of the utilisation and "
                "6 times the time of the threads. With more threads than CPUs that time contains waiting for a CPU."),
    PaperFigure(PAPER, "Fig. 3", "Unequal traces: the global lock",
                "Approach 1: with threads on different traces, the global lock takes 7 to 8 times as long as running "
                "the traces one after the other.",
                lines(UNEQUAL, "ns of the threads per operation", metric=THREADS_TIME, cast=CAST),
                judged(slows_down(_LOCKED, UNEQUAL, metric=THREADS_TIME),
                       on_cpus(TRACES, _thread_for_each_trace(_LOCKED, THREADS_TIME, _WAITS, False, least=6)),
                       note=GENERATED),
                "7 to 8 times is taken as at least 6, with a thread for each of the 16 traces and a CPU for each "
                "thread. With more threads than CPUs the time contains waiting for a CPU."),
]

SIXTH = PaperFigure(
    PAPER, "Fig. 6", "Unequal traces: approach 2",
    "Approach 2: with 16 threads on different traces, TCMalloc is the fastest by far; the custom malloc (approach 2) "
    "is slightly ahead of ptmalloc.",
    lines(UNEQUAL, "ns per operation", cast=CAST),
    judged(faster(TCMALLOC, VVMALLOC[1], several_threads(UNEQUAL), BY_FAR),
           faster(VVMALLOC[1], GLIBC, several_threads(UNEQUAL)),
           note=f"glibc is the paper's ptmalloc, gperftools its TCMalloc. {GENERATED}"),
    "By far is taken as 20 % ahead of the next. The traces are dealt over the threads.")
