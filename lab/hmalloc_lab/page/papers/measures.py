"""Which cells a claim is about, which allocators were measured in them, and which number of theirs counts."""

from collections.abc import Callable, Mapping, Sequence
from statistics import median

from ...bench.catalogue import Cell
from ...bench.participants import is_baseline
from ...bench.results import Results
from ...bench.store import AllocatorRow
from ..formats import counted

Cells = Callable[[Results], list[Cell]]
Allocator = str | tuple[str, ...]     # of several names the first that was measured counts
Shown = Callable[[AllocatorRow], bool]  # which allocators a picture shows
Metric = str | None | Callable[[Mapping], float | None]  # None: the cell's own; or what to make of a run's metrics

HMALLOC, HMALLOC_SHARED, PRELOADED = "hmalloc_paper-explicit", "hmalloc_paper-all-shared", "hmalloc_paper"
TCMALLOC = ("gperftools", "tcmalloc")

# ---- Cells. ---------------------------------------------------------------------------------------------------------


def cells(workload: str, where: Callable[[Cell], bool] | None = None, **point) -> Cells:
    """The cells of a workload by number of threads; those with arenas or a latency clock only where asked for."""
    point = {"arenas": None, "latency": None, **point}
    return lambda results: sorted(results.select(workload, where, **point), key=lambda cell: cell.threads)


def traces(*names: str) -> Cells:
    return cells("replay", lambda cell: cell.point.get("trace") in names)


def joined(*parts: Cells) -> Cells:
    return lambda results: [cell for part in parts for cell in part(results)]


def those(of: Cells, test: Callable[[Results, Cell], bool]) -> Cells:
    return lambda results: [cell for cell in of(results) if test(results, cell)]


def one_thread(of: Cells) -> Cells:
    return those(of, lambda _, cell: cell.threads == 1)


def several_threads(of: Cells) -> Cells:
    return those(of, lambda _, cell: cell.threads > 1)


def runnable(of: Cells) -> Cells:
    """With at most as many threads as the machine has CPUs."""
    return those(of, lambda results, cell: cell.threads <= cpus(results))


def most_threads(of: Cells) -> Cells:
    """Those of the largest number of threads that anything was measured with."""
    def choose(results: Results) -> list[Cell]:
        found = [cell for cell in of(results) if measured_in(results, [cell])]
        return [cell for cell in found if cell.threads == max(each.threads for each in found)]
    return choose


def most(*programs: Cells) -> Cells:
    """Of each program the cells with the most threads: memory and counts need no CPU of their own."""
    return joined(*map(most_threads, programs))


def most_of_several(*programs: Cells) -> Cells:
    return most(*map(several_threads, programs))


def all_cpus(of: Cells) -> Cells:
    """Of the cells that the machine has CPUs for, those with the most threads."""
    return most_threads(runnable(of))


def cpus(results: Results) -> int:
    """Of the machine that measured; 0 where the campaign does not say."""
    return int(results.campaign.environment.get("CPUs") or 0)


def program(cell: Cell) -> str:
    return str(cell.point.get("trace", cell.workload))


def place(cell: Cell, among: Sequence[Cell]) -> str:
    """What tells a cell from the others: "in larson with 2 threads"."""
    programs = {program(each) for each in among}
    varying = [key for key in cell.point if len({each.point.get(key) for each in among}) > 1]
    with_ = words(cell, ["threads"] if len(programs) > 1 or not varying else varying)
    if len(programs) > 1 and with_:
        return f"in {program(cell)} with {with_}"
    return f"with {with_}" if with_ else f"in {program(cell)}"


def unlike(cell: Cell, other: Cell) -> str:
    """What it has that the other has not: "1 thread"."""
    return words(cell, [key for key in cell.point if cell.point[key] != other.point.get(key)])


def words(cell: Cell, keys: Sequence[str]) -> str:
    return ", ".join(counted(int(cell.point[key]), key[:-1]) if key in ("threads", "rounds", "arenas")
                     else f"{key}={cell.point[key]}" for key in keys if key in cell.point)


# ---- Allocators. ----------------------------------------------------------------------------------------------------


def chosen(results: Results, allocator: Allocator) -> str:
    names = (allocator,) if isinstance(allocator, str) else allocator
    return next((name for name in names if name in results.allocators), names[0])


def only(*names: str) -> Shown:
    """These, and what the user gave."""
    return lambda row: row.name in names or row.kind == "user"


def beside(*names: str) -> Shown:
    """One of each work, as published, beside the subject of a figure."""
    return only(*names, "glibc", "one_lock", "hoard", "vvmalloc-4", "ar_malloc", PRELOADED, "hmalloc")


def all_but_baselines(*kept: str) -> Shown:
    return lambda row: row.name in kept or not is_baseline(row)


def measured_in(results: Results, among: Sequence[Cell], shown: Shown = lambda _: True) -> list[str]:
    """The allocators that have a result in any of these cells, in the campaign's order."""
    return [name for name, row in results.allocators.items()
            if shown(row) and any(results.runs(cell.name, name) for cell in among)]


# ---- Numbers. -------------------------------------------------------------------------------------------------------


def values_of(results: Results, cell: Cell, allocator: str, metric: Metric = None) -> dict[int, float]:
    """round -> value."""
    if not callable(metric):
        return results.values(cell, allocator, metric)
    found = {run.round: metric(run.metrics) for run in results.runs(cell.name, allocator)}
    return {number: float(value) for number, value in found.items() if value is not None}


def median_of(results: Results, cell: Cell, allocator: str, metric: Metric = None) -> float | None:
    values = values_of(results, cell, allocator, metric)
    return median(values.values()) if values else None


def quotient(above: str, below: str, unit: float = 1) -> Metric:
    """None where one of them was not counted."""
    def metric(run: Mapping) -> float | None:
        return run[above] * unit / run[below] if run.get(above) is not None and run.get(below) else None
    return metric


def megabytes(name: str) -> Metric:
    return lambda run: run[name] / 1024 if run.get(name) is not None else None


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"
