"""Campaigns in which what a paper claims comes out true, or false: an ideal allocator, and factors upon it."""

from collections.abc import Callable, Sequence
from functools import cache

from hmalloc_lab.bench.catalogue import Cell, cells
from hmalloc_lab.bench.results import Results
from hmalloc_lab.bench.store import AllocatorRow, Campaign, Run
from hmalloc_lab.page.figure import CONFIRMED, NOT_CONFIRMED, UNTOLD, Chart, Table
from hmalloc_lab.page.papers import all_figures

FIGURES = {figure.id: figure for figure in all_figures()}
BASELINES = ("one_lock", "hoard", "hoard-f8", "hoard-f2", *(f"vvmalloc-{approach}" for approach in range(1, 5)),
            "ar_malloc", "ar_malloc-lock", "hmalloc_paper", "hmalloc_paper-explicit", "hmalloc_paper-all-shared")
MEASURED = ("glibc", "hmalloc", "hmalloc-explicit", "hmalloc-all-shared", "gperftools")

Factors = Callable[[Cell, str, int], dict[str, float]]  # cell, allocator, round -> factor by metric


@cache
def paper_plan() -> tuple[Cell, ...]:
    return tuple(cells("full"))


def ideal(cell: Cell, cpus: int) -> dict:
    """An allocator without contention, waste or false sharing, on a machine of so many CPUs.  What it would
    have none of is there, for factors to take it away: all threads but one wait, one object is of a used superblock."""
    threads, rounds = cell.threads, int(cell.point.get("rounds", 1))
    all_wait = {f"counter_{which}_wait_ns": (threads - 1) * 1e9 for which in ("heap", "queue")}
    counted = {"counter_objects": 1000, "counter_objects_from_used_superblocks": 1, "counter_transfers_to_global": 5,
               "counter_transfers_from_global": 5, "counter_max_allocated": 1.1e6, "counter_max_in_use": 1e6,
               "counter_heap_lock_ns": 1e6, "counter_mapped": 1000 * 1024 * threads}
    of_memory = {"footprint": 1.2, "kb_per_thread": 10, "end_ratio": 1.5, "max_allocated": 1.1e6, "minor_faults": 1000}
    return {"ns_per_op": 100 / min(threads, cpus), "worker_s_mean": max(1.0, threads / cpus), **all_wait, **counted,
            **of_memory, "threads": threads, "seconds": 1.0, "payload_kb": 743 * threads,
            "thread_ns_per_op": 100 * max(1.0, threads / cpus),
            "faults_since_start": 14 + 1.1 * threads * rounds + 127.6 * threads, "vm_peak_kb": 9000, "vm_hwm_kb": 3000,
            "a_over_u": 1.1, "kops_per_s": 1000, "max_in_use": 1e6, "objects": 1000, "mean_size": 50,
            "cross_thread_share": 0.1, "series": [[size, 1.0] for size in (3, 4, 8, 16, 40, 52)]}


class Campaigned(Results):
    """Every allocator is ideal but for the factors, and each round for its own small noise.  Runs are made when they
    are asked for: a full plan with all allocators has sixty thousand."""

    def __init__(self, factors: Factors, cpus: int, allocators: Sequence[str], rounds: int, plan: list[Cell]) -> None:
        kinds = {"glibc": "system", "hmalloc": "hmalloc", "gperftools": "peer", "hoard-f8": "variant",
                 "hoard-f2": "variant", **{name: "explicit" for name in allocators if name.startswith("hmalloc")
                                           and name.endswith(("-explicit", "-all-shared"))}}
        rows = [AllocatorRow(name, kinds.get(name, "baseline"), "1") for name in allocators]
        super().__init__(Campaign(1, "", "", "full", "", 1, rounds, {"CPUs": cpus}, list(plan), rows, [], []))
        self._factors, self._cpus, self._made = factors, cpus, {}

    def runs(self, cell: str, allocator: str) -> list[Run]:
        if (cell, allocator) not in self._made:
            numbers = range(1, self.campaign.rounds + 1) if allocator in self.allocators else ()
            self._made[cell, allocator] = [self._run(self.cells[cell], allocator, number) for number in numbers]
        return self._made[cell, allocator]

    def _run(self, cell: Cell, who: str, number: int) -> Run:
        metrics = ideal(cell, self._cpus)
        metrics["ns_per_op"] *= 1 + 0.002 * ((number * len(who)) % 7)
        for metric, factor in self._factors(cell, who, number).items():
            value = metrics[metric]
            metrics[metric] = [[x, y * factor] for x, y in value] if metric == "series" else value * factor
        return Run(number, cell.name, who, "", metrics=metrics)


def campaign(factors: Factors = lambda cell, who, number: {}, cpus: int = 16, allocators=(*MEASURED, *BASELINES),
             rounds: int = 12, plan=None) -> Results:
    return Campaigned(factors, cpus, allocators, rounds, paper_plan() if plan is None else plan)


def times(**factors: float) -> Factors:
    """Factors on the time by allocator, in every cell; _ stands for -."""
    named = {name.replace("_", "-"): factor for name, factor in factors.items()} | factors
    return lambda cell, who, number: {"ns_per_op": named[who]} if who in named else {}


def stuck(who: str, after: int) -> Factors:
    """No faster with more threads than that."""
    return lambda cell, name, _: {"ns_per_op": cell.threads / after} if name == who and cell.threads > after else {}


def both(*parts: Factors) -> Factors:
    def factors(cell: Cell, who: str, number: int) -> dict[str, float]:
        found: dict[str, float] = {}
        for part in parts:
            for metric, factor in part(cell, who, number).items():
                found[metric] = found.get(metric, 1) * factor
        return found
    return factors


def only(metric: str, factor: Callable[[Cell, int], float], who: str = "glibc") -> Factors:
    return lambda cell, name, number: {metric: factor(cell, number)} if name == who else {}


def in_workload(workload: str, factor: float, **point) -> Callable[[Cell, int], float]:
    """For `only`: in the cells of a workload at these values."""
    return lambda cell, _: factor if cell.workload == workload and point.items() <= cell.point.items() else 1.0


def counted(factor: float, workload: str, who: str = "hoard", metric: str = "counter_max_allocated",
            **point) -> Factors:
    return only(metric, in_workload(workload, factor, **point), who)


def threads_mode(factor: float, who: str = "glibc") -> Factors:
    return only("worker_s_mean", lambda cell, _: factor if cell.point.get("mode") == "threads" else 1.0, who)


def peaks(in_scalability: float, elsewhere: float, virtual: float) -> Factors:
    return lambda cell, who, number: {
        "vm_peak_kb": virtual, "vm_hwm_kb": in_scalability if cell.workload == "linux-scalability" else elsewhere,
    } if who == "hmalloc_paper-explicit" else {}


def shares_lines(factor: float) -> Factors:
    return only("series", lambda cell, _: factor if cell.point.get("aligned") == 0 else 1.0)


def leaky(by_threads: dict[int, float]) -> Factors:
    """Every third run has that much more."""
    return only("faults_since_start", lambda cell, number: 1 + by_threads.get(cell.threads, 0) * (number % 3 == 0))


def per_round(pages: float) -> Factors:
    return only("faults_since_start", lambda cell, _: 1 + pages * int(cell.point.get("rounds", 1)))


def contended_arenas(cell: Cell, who: str, number: int) -> dict[str, float]:
    return {"ns_per_op": 1.3} if cell.threads > int(cell.point.get("arenas", 99)) else {}


SLOW, FAST = 3.0, 1 / 3
HMALLOC, PRELOADED = "hmalloc_paper-explicit", "hmalloc_paper"
AHEAD, BEHIND = times(**{HMALLOC: FAST}), times(**{HMALLOC: SLOW})
SIMULATED_AHEAD, SIMULATED_BEHIND = times(hmalloc_paper=FAST), times(hmalloc_paper=SLOW)


def slowing(who: str) -> Factors:
    """Slower with every thread."""
    return lambda cell, name, _: {"ns_per_op": cell.threads**1.5, "thread_ns_per_op": cell.threads**0.75
                                  } if name == who else {}


OTHERS_STOP = both(stuck("glibc", 6), slowing("one_lock"))
HOARD_WINS = both(OTHERS_STOP, times(hoard=1 / 30))
HOARD_STOPS = both(OTHERS_STOP, stuck("hoard", 2))

USED = "counter_objects_from_used_superblocks"
GROWS_IN_LARSON = only("counter_max_allocated", lambda cell, _: 1.3 if cell.workload == "larson" else 1, "hoard-f2")


def AS_PROFILED(cell: Cell, who: str, number: int) -> dict[str, float]:
    small, almost_all = 0.15 / (15 / 16), 0.97
    at_the_heap = small if (who, cell.point.get("workload")) == ("vvmalloc-2", 1) else almost_all
    return {"counter_heap_wait_ns": at_the_heap, "counter_queue_wait_ns": 0.04 / (15 / 16)}


def REPAIRED(cell: Cell, who: str, number: int) -> dict[str, float]:
    """hmalloc is better in everything."""
    better = ("ns_per_op", "vm_hwm_kb", "footprint", "kb_per_thread", "end_ratio", "max_allocated",
              "faults_since_start")
    return dict.fromkeys(better, 0.5) if who in ("hmalloc", "hmalloc-explicit") else {}


# figure: (what confirms its claim, what refutes it, CPUs)
CASES: dict[str, tuple[Factors, Factors, int]] = {
    **{f"hmalloc-fig-11-{letter}": (AHEAD, BEHIND, 16) for letter in "abcdefh"},
    "hmalloc-fig-11-g": (times(), BEHIND, 16),
    "hmalloc-table-2": (peaks(0.5, 2, 0.5), peaks(2, 0.5, 2), 2),
    **{f"hmalloc-fig-{number}": (SIMULATED_AHEAD, SIMULATED_BEHIND, 16) for number in (12, 13, 14)},
    **{f"hoard-fig-3-{letter}": (HOARD_WINS, HOARD_STOPS, 16) for letter in "abc"},
    "hoard-fig-3-d": (times(one_lock=1.1), both(times(one_lock=1.1), stuck("hoard", 2)), 16),
    "hoard-fig-4-a": (both(stuck("glibc", 4), stuck("one_lock", 1)), stuck("one_lock", 1), 16),
    "hoard-fig-4-b": (stuck("glibc", 4), HOARD_STOPS, 16),
    "hoard-table-2": (lambda cell, who, _: {"ns_per_op": 1.49} if (cell.workload, who) == ("shbench", "hoard") else {},
                      times(hoard=1.3), 16),
    "hoard-table-3": (only(USED, lambda cell, _: 0, "hoard"), times(), 16),
    "hoard-table-4": (times(), only("a_over_u", lambda cell, _: 3.0, "hoard"), 16),
    "hoard-table-5": (times(), times(**{"hoard-f2": 1.2}), 16),
    "hoard-table-6": (GROWS_IN_LARSON, times(), 16),
    "linux-malloc-table-1": (threads_mode(1.1), threads_mode(1.3), 4),
    "linux-malloc-table-2": (threads_mode(9, "one_lock"), times(), 4),
    "linux-malloc-table-3": (threads_mode(1.2), threads_mode(1.4), 4),
    "linux-malloc-fig-1": (times(), only("worker_s_mean", lambda cell, _: cell.threads), 4),
    "linux-malloc-fig-2": (times(), only("worker_s_mean", lambda cell, _: cell.threads), 4),
    "linux-malloc-fig-3": (only("worker_s_mean", lambda cell, _: cell.threads, "one_lock"), times(), 4),
    "linux-malloc-fig-4": (times(), only("worker_s_mean", lambda cell, _: cell.threads), 4),
    "linux-malloc-table-4": (only("worker_s_mean", lambda cell, number: 1.18 if number % 3 == 0 else 1.0), times(), 4),
    "linux-malloc-fig-5": (times(), per_round(0.05), 4),
    "linux-malloc-fig-6": (leaky({3: 0.3}), times(), 4),
    "linux-malloc-fig-7": (leaky({3: 0.3, 7: 0.1}), leaky({3: 0.1, 7: 0.3}), 4),
    "linux-malloc-fig-8": (times(), per_round(0.05), 4),
    **{f"linux-malloc-fig-{number}": (shares_lines(4), times(), 4) for number in (9, 10, 11)},
    "vvmalloc-fig-7": (times(vvmalloc_2=0.5, gperftools=0.2), times(vvmalloc_2=2), 16),
    "vvmalloc-fig-8": (times(vvmalloc_2=2), times(vvmalloc_2=0.5), 16),
    "vvmalloc-fig-9": (times(gperftools=0.5), times(vvmalloc_2=0.2), 16),
    "vvmalloc-fig-10": (times(vvmalloc_3=0.5), times(vvmalloc_3=2), 16),
    "vvmalloc-fig-11": (times(glibc=0.5), times(glibc=2), 16),
    "vvmalloc-fig-12": (times(glibc=2), times(glibc=0.5), 16),
    "vvmalloc-fig-1": (times(), only("payload_kb", lambda cell, _: 0.5, "vvmalloc-1"), 16),
    "vvmalloc-fig-2": (slowing("vvmalloc-1"), times(), 16),
    "vvmalloc-fig-3": (slowing("vvmalloc-1"), times(), 16),
    "vvmalloc-fig-6": (times(gperftools=0.3, vvmalloc_2=0.9), times(gperftools=0.3, vvmalloc_2=1.1), 16),
    "vvmalloc-profile": (AS_PROFILED, times(), 16),
    "vvmalloc-fig-13": (times(gperftools=0.5, glibc=1.2), times(gperftools=2, glibc=1.2), 16),
    **{f"vvmalloc-fig-{number}": (times(gperftools=0.2, vvmalloc_4=FAST), times(gperftools=0.2), 16)
       for number in (14, 15)},
    "vvmalloc-fig-16": (times(glibc=1.5), times(vvmalloc_4=SLOW), 16),
    **{f"vvmalloc-fig-{number}": (times(vvmalloc_4=FAST), times(vvmalloc_4=SLOW), 16) for number in (17, 18)},
    "ar-malloc-chart-1": (times(**{"ar_malloc-lock": SLOW}), times(**{"ar_malloc-lock": 0.5}), 16),
    "ar-malloc-chart-2": (times(ar_malloc=FAST), times(), 16),
    "ar-malloc-chart-3": (stuck("glibc", 8), times(), 16),
    "ar-malloc-chart-4": (contended_arenas, times(), 16),
    "ar-malloc-chart-5": (times(), stuck("ar_malloc", 1), 16),
    "repairs": (REPAIRED, only("kb_per_thread", lambda cell, _: 2, "hmalloc"), 16),
}


def examine(results: Results) -> dict[str, str]:
    """Draws and judges every figure: figure -> outcome."""
    outcomes = {}
    for figure in FIGURES.values():
        for picture in figure.draw(results):
            check_picture(picture)
        verdict = figure.judge(results)
        assert verdict.outcome in (CONFIRMED, NOT_CONFIRMED, UNTOLD)
        assert verdict.reason.strip().endswith("."), (figure.id, verdict.reason)
        assert "nan" not in verdict.reason and "inf" not in verdict.reason.split(), (figure.id, verdict.reason)
        outcomes[figure.id] = verdict.outcome
    return outcomes


def check_picture(picture: Chart | Table) -> None:
    if isinstance(picture, Table):
        assert picture.rows and all(len(row) == len(picture.columns) for row in picture.rows)
        return
    assert picture.series and picture.x_title and picture.y_title
    for series in picture.series:
        assert series.points
        for point in series.points:
            assert point.low is None or point.low <= point.y <= point.high
