"""What a single paper asks: predicates, and the cells and numbers that they are about."""

import math
import statistics
from collections.abc import Mapping

from ...bench.catalogue import Cell
from ...bench.results import Results
from ...bench.statistics import FEWEST, Ratio, paired_ratio
from ..formats import counted
from .measures import Cells, Metric, all_cpus, cells, cpus, joined, percent, quotient, several_threads, those, values_of
from .predicates import Number, Predicate, exactly, faster, last_to_first, lies, pairs_where, related, to_one_thread

# ---- Hoard. ---------------------------------------------------------------------------------------------------------

PROCESSORS = 14  # of the paper's Sun Enterprise 5000
FRAGMENTATION = {"threadtest": 1.24, "larson": 1.22, "barnes-hut": 1.18}


def ahead(allocator: str, reference: str, by: float, of: Cells) -> Predicate:
    """With the paper's number of processors."""
    return faster(allocator, reference, by, of=those(of, lambda _, cell: cell.threads >= PROCESSORS), cpus=PROCESSORS)


def studied(of: Cells) -> Cells:
    """The variants are not measured with every number of threads."""
    return those(of, lambda results, cell: any(results.runs(cell.name, name) for name in ("hoard-f8", "hoard-f2")))


def largest(values: list[float]) -> Ratio | None:
    return exactly(max(values)) if values else None


# ---- The Linux paper's workers. -------------------------------------------------------------------------------------

SECONDS, FAULTS = "worker_s_mean", "faults_since_start"


def workers(size: int, mode: str = "threads", **point: int) -> Cells:
    return cells("linux-workers", size=size, mode=mode, **point)


def threads_per_cpu(cell: Cell, _: Cell | None, count: int) -> float:
    return max(1.0, cell.threads / count)


def beyond_the_cpus(results: Results, among: list[Cell]) -> list[tuple[Cell, Cell]]:
    """All against one thread, where some have more threads than CPUs."""
    beyond = cpus(results) and any(cell.threads > cpus(results) for cell in among)
    return to_one_thread(results, among) if beyond else []


def busy(results: Results, among: list[Cell]) -> list[tuple[Cell, Cell]]:
    """Of those with at least as many threads as CPUs, all against the first."""
    found = [cell for cell in among if cell.threads >= cpus(results) > 0]
    return [(cell, found[0]) for cell in found[1:]]


def one_beyond(results: Results, among: list[Cell]) -> list[tuple[Cell, Cell]]:
    """One thread more than CPUs, against as many."""
    return [(cell, base) for base in among for cell in among if base.threads == cpus(results) == cell.threads - 1]


def _slow_runs(results: Results, among: list[Cell], name: str) -> list[Number]:
    """Their share, of at least ten that nobody disturbed."""
    found = [value for cell in among[:1] for number, value in values_of(results, cell, name, SECONDS).items()
             if number not in results.noisy_rounds]
    slow = sum(value > 1.1 * statistics.median(found) for value in found) / max(1, len(found))
    return [Number(f"of {len(found)}", exactly(slow, FEWEST if len(found) >= 10 else 0)) for _ in among[:1]]


SPORADICALLY_SLOW = Predicate(("glibc",), _slow_runs, "{0}'s undisturbed runs over 10 % above the median", math.ulp(0),
                              math.nextafter(0.5, 0), "some, but fewer than half", percent)

# ---- Its page faults. -----------------------------------------------------------------------------------------------


def successors(threads: int, fewest: int = 1, most: int = 8) -> Cells:
    return cells("linux-successors", lambda cell: fewest <= cell.point["rounds"] <= most, threads=threads)


def predicted(cell: Cell) -> float:
    """The paper's lower bound (section 5.2) for 10,000 objects of 40 bytes a thread."""
    return 14 + 1.1 * cell.threads * int(cell.point["rounds"]) + 127.6 * cell.threads


def grow_as_predicted(tolerance: float, **more: int) -> Predicate:
    return related("glibc", last_to_first, "page faults", FAULTS,
                   lambda cell, base, _: predicted(cell) / predicted(base), most=1 + tolerance,
                   asked=f"at most {percent(tolerance)} above the predictor's growth", oversubscribed=True, **more)


def _spread(faults: list[float]) -> Ratio | None:
    """Largest less smallest as a share of the smallest."""
    return exactly(max(faults) / min(faults) - 1, len(faults)) if faults and min(faults) > 0 else None


def spread(**limits: float) -> Predicate:
    return lies("glibc", "spread of the page faults over the runs", FAULTS, _spread, show=percent, **limits)


def _mean_spread(results: Results, among: list[Cell], name: str) -> float | None:
    """Over the numbers of rounds."""
    spreads = [_spread(list(values_of(results, cell, name, FAULTS).values())) for cell in among]
    told = spreads and all(each and each.rounds >= FEWEST for each in spreads)
    return statistics.mean(each.median for each in spreads) if told else None


def _less_than_with_three(results: Results, among: list[Cell], name: str) -> list[Number]:
    others = successors(3)(results)
    with_three, here = (_mean_spread(results, each, name) for each in (others, among))
    told = with_three is not None and here is not None
    return [Number("less than with 3 threads", exactly(with_three - here) if told else None)] if others else []


LESS_THAN_WITH_THREE = Predicate(("glibc",), _less_than_with_three, "{0}'s mean spread", math.ulp(0), asked="above 0 %",
                                 show=percent, oversubscribed=True)

# ---- Its false sharing. ---------------------------------------------------------------------------------------------


def objects(threads: int) -> Cells:
    return joined(*(cells("linux-false-sharing", threads=threads, aligned=way) for way in (0, 1)))


def size_curves(results: Results, among: list[Cell], name: str, aligned: int) -> dict[int, dict[float, float]]:
    """round -> size -> nanoseconds per write."""
    return {run.round: dict(map(tuple, run.metrics["series"])) for cell in among if cell.point["aligned"] == aligned
            for run in results.runs(cell.name, name) if run.metrics.get("series")}


def penalty(least: float) -> Predicate:
    """The slowest size but one, so that one disturbance does not count, over the median of aligned objects."""
    def numbers(results: Results, among: list[Cell], name: str) -> list[Number]:
        normal, aligned = (size_curves(results, among, name, way) for way in (0, 1))
        slowest = {number: sorted(curve.values())[-2:][0] for number, curve in normal.items()}
        usual = {number: statistics.median(curve.values()) for number, curve in aligned.items()}
        return [Number(f"with {counted(cell.threads, 'thread')}", paired_ratio(slowest, usual)) for cell in among[:1]]
    return Predicate(("glibc",), numbers, "{0}'s time of the slowest sizes over aligned objects", least)


# ---- VVMalloc. ------------------------------------------------------------------------------------------------------

VV1, VV2, VV3, VV4 = (f"vvmalloc-{approach}" for approach in (1, 2, 3, 4))
TRACES = 16  # and so threads
THREAD_NS = "thread_ns_per_op"  # of all threads: what the report's milliseconds add up
HEAP, HELD, QUEUE = (f"counter_{name}_ns" for name in ("heap_wait", "heap_lock", "queue_wait"))
UTILISATION = quotient("payload_kb", "counter_mapped", 1024)  # of those that count what they have mapped


def utilisation_of_a_trace(run: Mapping) -> float | None:
    """As the driver counts it: its payload over the heap of all."""
    whole = UTILISATION(run)
    return None if whole is None else whole / run["threads"]


def each_its_trace(metric: Metric, what: str, **more) -> Predicate:
    """With a thread for each trace against the sequential version."""
    return related(VV1, pairs_where(lambda cell, base: (cell.threads, base.threads) == (TRACES, 1)), what, metric, **more)


def workload(number: int) -> Cells:
    return cells("vvmalloc", lambda cell: cell.point["workload"] == number)


def share_of_time(name: str) -> Metric:
    """Of a counter of nanoseconds, in the time that all threads had."""
    def metric(run: Mapping) -> float | None:
        waited, seconds, threads = (run.get(key) for key in (name, "seconds", "threads"))
        return waited / (1e9 * seconds * threads) if waited is not None and seconds and threads else None
    return metric


def waits(allocator: str, number: int, counter: str, share: float) -> Predicate:
    """Of what can be waited (all threads but one), threads wait as large a part as in the report: almost all, or half
    to twice its part."""
    def part(run: Mapping) -> float | None:
        found = share_of_time(counter)(run)
        return None if found is None else found / (1 - 1 / run["threads"])

    reported = share / (1 - 1 / TRACES)
    least, most = (0.9, math.inf) if reported > 0.9 else (reported / 2, reported * 2)
    where = "for the heap's spin lock" if counter == HEAP else "at the queue"
    return lies(allocator, f"waiting {where} in workload {number}, of what its threads can wait", part, least=least,
                most=most, show=percent, of=all_cpus(several_threads(workload(number))), cpus_to_fall_short=TRACES)


# ---- ar_malloc. -----------------------------------------------------------------------------------------------------

CORES = 16  # of the article's machine


def by_arenas(results: Results) -> list[Cell]:
    return sorted(results.select("ar-random", lambda cell: "arenas" in cell.point), key=lambda cell: cell.threads)


def arenas(cell: Cell) -> int:
    return int(cell.point["arenas"])


def against_most_arenas(contended: bool, what: str, **limits: float) -> Predicate:
    """Several threads, with fewer arenas than threads or not."""
    def pairs(_: Results, among: list[Cell]) -> list[tuple[Cell, Cell]]:
        best = {cell.threads: cell for cell in sorted(among, key=arenas)}
        return [(cell, best[cell.threads]) for cell in among
                if cell.threads > 1 and (cell.threads > arenas(cell)) == contended and cell is not best[cell.threads]]
    return related("ar_malloc", pairs, what, **limits)


LINEAR_WITH_FEW_ARENAS = related(
    "ar_malloc", pairs_where(lambda cell, base: base.threads == 1 and 4 * arenas(cell) <= cell.threads
                             and arenas(base) == arenas(cell)),
    expected=lambda cell, *_: 1 / cell.threads, most=1 / 0.6, asked="at least 60 % of linear speed-up", cpus=4)
