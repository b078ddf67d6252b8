"""Benchmark 1 of the Linux paper, `linux-workers`: its pictures and clauses."""

import math
import statistics

from ...bench.catalogue import Cell
from ...bench.results import Results
from ...bench.statistics import paired_ratio
from ..figure import Point, Series, Table
from .baselines import LINUX_CAST
from .clauses import Pair, related
from .common import GLIBC, Cells, Draw, cells, cpus, joined, measured_in, percent, runnable, with_threads
from .judging import Clause, Finding, missing, span

SECONDS = "worker_s_mean"


def workers(size: int, mode: str = "threads") -> Cells:
    return cells("linux-workers", size=size, mode=mode)


def _two_workers(results: Results) -> list[Cell]:
    both = joined(workers(512), workers(512, "processes"))
    return [cell for cell in both(results) if cell.threads == 2]


def threads_over_processes(who: str, least: float = 0.0, most: float = math.inf) -> Clause:
    def pairs(_: Results, among: list[Cell]) -> list[Pair]:
        by_mode = {cell.point["mode"]: cell for cell in among}
        if len(by_mode) < 2:
            return []
        return [Pair("for two workers", by_mode["threads"], by_mode["processes"], least, most)]
    return related(who, _two_workers, pairs, "time as threads over time as processes", span(least, most), SECONDS)


def two_workers_table(results: Results) -> list[Table]:
    """As the paper's: seconds of a worker, and the standard deviation over the rounds."""
    by_mode = {cell.point["mode"]: cell for cell in _two_workers(results)}
    if len(by_mode) < 2:
        return []
    rows = []
    for who in measured_in(results, list(by_mode.values()), LINUX_CAST):
        mine = {mode: results.values(cell, who, SECONDS) for mode, cell in by_mode.items()}
        if all(mine.values()):
            both = paired_ratio(mine["threads"], mine["processes"])
            rows.append([who, *_mean_and_deviation(mine["threads"]), *_mean_and_deviation(mine["processes"]),
                         both and f"{both.median:.2f} ({both.low:.2f}\N{EN DASH}{both.high:.2f})"])
    columns = ["allocator", "threads, s", "deviation", "processes, s", "deviation", "threads / processes"]
    return [Table(columns, rows)] if rows else []


def _mean_and_deviation(values: dict[int, float]) -> tuple[float, float]:
    return statistics.mean(values.values()), statistics.pstdev(values.values())


def expected_time(results: Results, among: list[Cell]) -> list[Series]:
    """One thread's time of glibc, shared by the CPUs: m * t/n from the point where there are more threads than CPUs."""
    alone = next((results.median(cell, GLIBC, SECONDS) for cell in among if cell.threads == 1), None)
    if alone is None or not cpus(results):
        return []
    return [Series("expected", [Point(cell.threads, alone * _share(results, cell)) for cell in among], dashed=True)]


def _share(results: Results, cell: Cell) -> float:
    return max(1.0, cell.threads / cpus(results))


def not_above_expected(who: str, of: Cells, tolerance: float) -> Clause:
    def pairs(results: Results, among: list[Cell]) -> list[Pair]:
        beyond = cpus(results) and any(cell.threads > cpus(results) for cell in among)
        alone = [cell for cell in among if cell.threads == 1]
        return [Pair(with_threads(cell), cell, alone[0], most=(1 + tolerance) * _share(results, cell))
                for cell in among if beyond and alone and cell.threads > 1]
    return related(who, of, pairs, "time over that with one thread",
                   f"at most {percent(tolerance)} above the threads for each CPU", SECONDS, crowded=True)


def far_above_expected(who: str, of: Cells, times: float) -> Clause:
    """With the most workers."""
    def pairs(results: Results, among: list[Cell]) -> list[Pair]:
        return [Pair(with_threads(among[-1]), among[-1], among[0], least=times * _share(results, among[-1]))
                ] if len(among) > 1 and among[0].threads == 1 and cpus(results) else []
    return related(who, of, pairs, "time over that with one thread",
                   f"at least {times:.0f} times the threads for each CPU", SECONDS, crowded=True)


def proportional(who: str, of: Cells, tolerance: float) -> Clause:
    """Among the cells with at least as many threads as CPUs."""
    def pairs(results: Results, among: list[Cell]) -> list[Pair]:
        busy = [cell for cell in among if cell.threads >= cpus(results) > 0]
        return [Pair(f"from {busy[0].threads} to {cell.threads} threads", cell, busy[0],
                     (1 - tolerance) * cell.threads / busy[0].threads, (1 + tolerance) * cell.threads / busy[0].threads)
                for cell in busy[1:]]
    return related(who, of, pairs, "growth of the time", f"as the threads, within {percent(tolerance)}", SECONDS,
                   crowded=True)


def flat_to_the_cpus(who: str, of: Cells, most: float) -> Clause:
    def pairs(_: Results, among: list[Cell]) -> list[Pair]:
        return [Pair(with_threads(cell), cell, among[0], most=most) for cell in among[1:] if among[0].threads == 1]
    return related(who, of, pairs, "time over that with one thread", span(most=most), SECONDS)


def jump_beyond_the_cpus(who: str, of: Cells, least: float) -> Clause:
    def pairs(results: Results, among: list[Cell]) -> list[Pair]:
        by_threads = {cell.threads: cell for cell in among}
        full, over = by_threads.get(cpus(results)), by_threads.get(cpus(results) + 1)
        return [Pair(f"from {full.threads} to {over.threads} threads", over, full, least)] if full and over else []
    return related(who, of, pairs, "growth of the time", span(least), SECONDS, crowded=True)


def run_table(of: Cells) -> Draw:
    """Each round's time."""
    def draw(results: Results) -> list[Table]:
        for cell in of(results):
            names = measured_in(results, [cell], LINUX_CAST)
            times = {who: results.values(cell, who, SECONDS) for who in names}
            rounds = sorted({number for values in times.values() for number in values})
            return [Table(["run", *names], [[number, *(times[who].get(number) for who in names)] for number in rounds],
                          "Seconds of a worker")] if rounds else []
        return []
    return draw


def sporadic_slow_runs(who: str, of: Cells, by: float, fewest: int) -> Clause:
    """Some runs, but fewer than half, are that much above the median.  Rounds that others disturbed do not count."""
    def clause(results: Results) -> Finding:
        if gap := missing(results, of(results), among := runnable(results, of(results)), who):
            return Finding(None, gap)
        values = [value for number, value in results.values(among[0], who, SECONDS).items()
                  if number not in results.noisy_rounds]
        if len(values) < fewest:
            return Finding(None, f"Only {len(values)} undisturbed runs of {who}, it takes {fewest}.")
        slow = sum(value > (1 + by) * statistics.median(values) for value in values)
        return Finding(0 < slow < len(values) / 2,
                       f"{slow} of {len(values)} undisturbed runs of {who} are over {percent(by)} above the median "
                       "(asked: some, but fewer than half).")
    return clause
