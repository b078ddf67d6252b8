"""Campaigns in which what a paper claims comes out true, or false: an ideal allocator, and factors upon it."""

from collections.abc import Callable, Sequence
from functools import cache

from hmalloc_lab.bench.catalogue import Cell, cells
from hmalloc_lab.bench.results import Results
from hmalloc_lab.bench.store import AllocatorRow, Campaign, Run
from hmalloc_lab.page.figure import CONFIRMED, UNTOLD, Chart, Table
from hmalloc_lab.page.papers import all_figures

FIGURES = {figure.id: figure for figure in all_figures()}
HMALLOC = "hmalloc_paper-explicit"
BASELINES = ("one_lock", "hoard", "hoard-f8", "hoard-f2", *(f"vvmalloc-{approach}" for approach in range(1, 5)),
             "ar_malloc", "ar_malloc-lock", "hmalloc_paper", HMALLOC, "hmalloc_paper-all-shared")
ALLOCATORS = ("glibc", "hmalloc", "hmalloc-explicit", "hmalloc-all-shared", "gperftools", *BASELINES)
SLOW, FAST = 3.0, 1 / 3

Factors = Callable[[Cell, str, int], dict[str, float | None]]  # cell, allocator, round -> factor by metric; None: no number


@cache
def paper_plan() -> tuple[Cell, ...]:
    return tuple(cells("full"))


def ideal(cell: Cell, cpus: int) -> dict:
    """An allocator without contention, waste or false sharing, on a machine of so many CPUs.  What it would
    have none of is there, for factors to take it away: all threads but one wait, one object is of a used superblock."""
    threads, rounds = cell.threads, int(cell.point.get("rounds", 1))
    all_wait = {f"counter_{which}_wait_ns": (threads - 1) * 1e9 for which in ("heap", "queue")}
    counted = {"counter_objects": 1000, "counter_objects_from_used_superblocks": 1, "counter_max_allocated": 1.1e6,
               "counter_max_in_use": 1e6, "counter_heap_lock_ns": 1e6, "counter_mapped": 1000 * 1024 * threads}
    of_memory = {"footprint": 1.2, "kb_per_thread": 10, "end_ratio": 1.5, "max_allocated": 1.1e6, "a_over_u": 1.1,
                 "vm_peak_kb": 9000, "vm_hwm_kb": 3000, "payload_kb": 743 * threads,
                 "faults_since_start": 14 + 1.1 * threads * rounds + 127.6 * threads}
    return {"ns_per_op": 100 / min(threads, cpus), "worker_s_mean": max(1.0, threads / cpus), **all_wait, **counted,
            **of_memory, "thread_ns_per_op": 100 * max(1.0, threads / cpus), "threads": threads, "seconds": 1.0,
            "series": [[size, 1.0] for size in (3, 4, 8, 16, 40, 52)]}


class Campaigned(Results):
    """Every allocator is ideal but for the factors, and each round for its own small noise.  Runs are made when they
    are asked for: a full plan with all allocators has sixty thousand."""

    def __init__(self, factors: Factors, cpus: int, allocators: Sequence[str], rounds: int, plan: Sequence[Cell]) -> None:
        rows = [AllocatorRow(name, "peer", "1", "baselines/lib.so" if name in BASELINES else "lib.so") for name in allocators]
        super().__init__(Campaign(1, "", "", "full", "", 1, rounds, {"CPUs": cpus}, list(plan), rows, [], []))
        self._factors, self._cpus, self._made = factors, cpus, {}

    def runs(self, cell: str, allocator: str) -> list[Run]:
        if (cell, allocator) not in self._made:
            numbers = range(1, self.campaign.rounds + 1) if allocator in self.allocators else ()
            self._made[cell, allocator] = [self._run(self.cells[cell], allocator, number) for number in numbers]
        return self._made[cell, allocator]

    def _run(self, cell: Cell, allocator: str, number: int) -> Run:
        metrics = ideal(cell, self._cpus)
        metrics["ns_per_op"] *= 1 + 0.002 * ((number * len(allocator)) % 7)
        for metric, factor in self._factors(cell, allocator, number).items():
            value = metrics.pop(metric)
            if factor is not None:
                metrics[metric] = [[x, y * factor] for x, y in value] if metric == "series" else value * factor
        return Run(number, cell.name, allocator, "", metrics=metrics)


def campaign(factors: Factors = lambda *_: {}, cpus: int = 16, allocators: Sequence[str] = ALLOCATORS, rounds: int = 12,
             plan: Sequence[Cell] | None = None, kind: type[Campaigned] = Campaigned) -> Results:
    return kind(factors, cpus, allocators, rounds, paper_plan() if plan is None else plan)


# ---- Factors. -------------------------------------------------------------------------------------------------------


def times(**factors: float) -> Factors:
    """Factors on the time by allocator, in every cell; _ stands for -."""
    named = {name.replace("_", "-"): factor for name, factor in factors.items()} | factors
    return lambda cell, name, number: {"ns_per_op": named[name]} if name in named else {}


def only(metric: str, factor: float | Callable[[Cell, int], float], allocator: str = "glibc", workload: str = "",
         **point) -> Factors:
    """On one metric of one allocator, in the cells of a workload at these values."""
    def factors(cell: Cell, name: str, number: int) -> dict[str, float]:
        meant = name == allocator and workload in ("", cell.workload) and point.items() <= cell.point.items()
        return {metric: factor(cell, number) if callable(factor) else factor} if meant else {}
    return factors


def stuck(allocator: str, after: int) -> Factors:
    """No faster with more threads than that."""
    return only("ns_per_op", lambda cell, _: max(1, cell.threads / after), allocator)


def slowing(allocator: str) -> Factors:
    """Slower with every thread."""
    return both(only("ns_per_op", lambda cell, _: cell.threads**1.5, allocator),
                only("thread_ns_per_op", lambda cell, _: cell.threads**0.75, allocator))


def both(*parts: Factors) -> Factors:
    def factors(cell: Cell, name: str, number: int) -> dict[str, float]:
        found: dict[str, float] = {}
        for part in parts:
            for metric, factor in part(cell, name, number).items():
                found[metric] = found.get(metric, 1) * factor
        return found
    return factors


def AS_PROFILED(cell: Cell, allocator: str, number: int) -> dict[str, float]:
    """Time of the threads as VVMalloc's report has it."""
    small, almost_all = 0.15 / (15 / 16), 0.97
    at_the_heap = small if (allocator, cell.point.get("workload")) == ("vvmalloc-2", 1) else almost_all
    return {"counter_heap_wait_ns": at_the_heap, "counter_queue_wait_ns": 0.04 / (15 / 16)}


def REPAIRED(cell: Cell, allocator: str, number: int) -> dict[str, float]:
    """hmalloc is better in everything."""
    better = ("ns_per_op", "vm_hwm_kb", "footprint", "kb_per_thread", "end_ratio", "max_allocated", "faults_since_start")
    return dict.fromkeys(better, 0.5) if allocator in ("hmalloc", "hmalloc-explicit") else {}


# ---- What is true of every figure. ----------------------------------------------------------------------------------


def examine(results: Results) -> dict[str, str]:
    """Draws and judges every figure: figure -> outcome."""
    outcomes = {}
    for figure in FIGURES.values():
        list(map(check_picture, figure.draw(results)))
        verdict = figure.judge(results)
        assert verdict.reason.endswith("."), (figure.id, verdict.reason)
        assert "nan" not in verdict.reason and "inf" not in verdict.reason.split(), (figure.id, verdict.reason)
        assert verdict.takes if verdict.outcome == UNTOLD else verdict.outcome != CONFIRMED or not verdict.takes, figure.id
        outcomes[figure.id] = verdict.outcome
    return outcomes


def check_picture(picture: Chart | Table) -> None:
    if isinstance(picture, Table):
        assert picture.rows and all(len(row) == len(picture.columns) for row in picture.rows)
        return
    assert picture.series and picture.x_title and picture.y_title and all(series.points for series in picture.series)
    assert all(point.low is None or point.low <= point.y <= point.high for series in picture.series for point in series.points)
