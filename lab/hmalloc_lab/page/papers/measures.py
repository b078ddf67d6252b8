"""Which cells a claim is about, who was measured in them, and which number of theirs counts."""

from collections.abc import Callable, Mapping, Sequence
from statistics import median

from ...bench.catalogue import Cell
from ...bench.results import Results

Cells = Callable[[Results], list[Cell]]
Who = str | tuple[str, ...]       # a name, or several of which the first that was measured counts
Cast = Callable[[str], bool]      # which allocators a picture shows
Metric = str | None | Callable[[Mapping], float | None]  # a name; None: the cell's own; or what to make of a run's

GLIBC, TODAY, ONE_LOCK, TCMALLOC = "glibc", "hmalloc", "one_lock", ("gperftools", "tcmalloc")
HOARD, EIGHTH, HALF = "hoard", "hoard-f8", "hoard-f2"  # by the empty fraction: 1/4, 1/8, 1/2
VV1, VV2, VV3, VV4 = (f"vvmalloc-{approach}" for approach in (1, 2, 3, 4))
AR_MALLOC, AR_LOCKED = "ar_malloc", "ar_malloc-lock"
PRELOADED, PAPER, SHARED = "hmalloc_paper", "hmalloc_paper-explicit", "hmalloc_paper-all-shared"
EXPLICIT = "hmalloc-explicit"
BASELINES = (ONE_LOCK, HOARD, EIGHTH, HALF, VV1, VV2, VV3, VV4, AR_MALLOC, AR_LOCKED, PRELOADED, PAPER, SHARED)

# ---- Cells. ---------------------------------------------------------------------------------------------------------


def cells(workload: str, where: Callable[[Cell], bool] | None = None, **point) -> Cells:
    """The cells of a workload by number of threads; those with arenas or a latency clock only where asked for."""
    point = {"arenas": None, "latency": None, **point}
    return lambda results: sorted(results.select(workload, where, **point), key=lambda cell: cell.threads)


def joined(*parts: Cells) -> Cells:
    return lambda results: [cell for part in parts for cell in part(results)]


def one_thread(of: Cells) -> Cells:
    return lambda results: [cell for cell in of(results) if cell.threads == 1]


def several_threads(of: Cells) -> Cells:
    return lambda results: [cell for cell in of(results) if cell.threads > 1]


def most_threads(of: Cells) -> Cells:
    """Those of the largest number of threads that anything was measured with."""
    def choose(results: Results) -> list[Cell]:
        found = [cell for cell in of(results) if measured_in(results, [cell])]
        return [cell for cell in found if cell.threads == max(each.threads for each in found)]
    return choose


def all_cpus(of: Cells) -> Cells:
    """Of the cells that the machine has CPUs for, those with the most threads."""
    return most_threads(lambda results: runnable(results, of(results)))


def runnable(results: Results, among: list[Cell]) -> list[Cell]:
    return [cell for cell in among if cell.threads <= cpus(results)]


def cpus(results: Results) -> int:
    """Of the machine that measured; 0 where the campaign does not say."""
    return int(results.campaign.environment.get("CPUs") or 0)


def alone(among: Sequence[Cell]) -> list[Cell]:
    """The cell with one thread, if it is there."""
    return [cell for cell in among if cell.threads == 1][:1]


# ---- Allocators. ----------------------------------------------------------------------------------------------------


def chosen(results: Results, who: Who) -> str:
    names = (who,) if isinstance(who, str) else who
    return next((name for name in names if name in results.allocators), names[0])


def only(*names: str) -> Cast:
    return lambda name: name in names


def beside(*names: str) -> Cast:
    """One of each work, as published, beside the subject of a figure."""
    return only(*names, GLIBC, ONE_LOCK, HOARD, VV4, AR_MALLOC, PRELOADED, TODAY)


def all_but_baselines(*kept: str) -> Cast:
    return lambda name: name in kept or name not in BASELINES


def measured_in(results: Results, among: Sequence[Cell], cast: Cast | None = None) -> list[str]:
    """The allocators that have a result in any of these cells, in the campaign's order; of a cast also those that the
    user gave."""
    return [name for name, row in results.allocators.items()
            if (cast is None or cast(name) or row.kind == "user")
            and any(results.runs(cell.name, name) for cell in among)]


# ---- Numbers. -------------------------------------------------------------------------------------------------------


def values_of(results: Results, cell: Cell, who: str, metric: Metric = None) -> dict[int, float]:
    """round -> value."""
    if not callable(metric):
        return results.values(cell, who, metric)
    found = {run.round: metric(run.metrics) for run in results.runs(cell.name, who)}
    return {number: float(value) for number, value in found.items() if value is not None}


def median_of(results: Results, cell: Cell, who: str, metric: Metric = None) -> float | None:
    values = values_of(results, cell, who, metric)
    return median(values.values()) if values else None


def quotient(above: str, below: str, unit: float = 1) -> Metric:
    """None where one of them was not counted."""
    def metric(run: Mapping) -> float | None:
        return run[above] * unit / run[below] if run.get(above) is not None and run.get(below) else None
    return metric


def share_of_time(name: str) -> Metric:
    """Of a counter of nanoseconds, in the time that all threads had."""
    def metric(run: Mapping) -> float | None:
        waited, seconds, threads = (run.get(key) for key in (name, "seconds", "threads"))
        return waited / (1e9 * seconds * threads) if waited is not None and seconds and threads else None
    return metric


def with_threads(cell: Cell) -> str:
    return f"with {cell.threads} thread{'s' * (cell.threads > 1)}"


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"
