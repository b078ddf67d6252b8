"""What all papers share: which cells a figure is made of, who was measured, and what was measured of them."""

from collections.abc import Callable, Mapping, Sequence

from ...bench.catalogue import Cell
from ...bench.results import Results
from ..figure import Chart, Table

Cells = Callable[[Results], list[Cell]]
Draw = Callable[[Results], Sequence[Chart | Table]]
Who = str | tuple[str, ...]       # a name, or several of which the first that was measured counts
Cast = Callable[[str], bool]      # which allocators a picture shows
Metric = str | Callable[[Mapping], float | None]  # a metric's name, or what to make of those of a run

GLIBC = "glibc"


# ---- Cells. ---------------------------------------------------------------------------------------------------------


def cells(workload: str, where: Callable[[Cell], bool] | None = None, **point) -> Cells:
    """The cells of a workload by number of threads; those with arenas or a latency clock only where asked for."""
    point = {"arenas": None, "latency": None, **point}
    return lambda results: sorted(results.select(workload, where, **point), key=lambda cell: cell.threads)


def joined(*parts: Cells) -> Cells:
    return lambda results: [cell for part in parts for cell in part(results)]


def one_thread(chosen: Cells) -> Cells:
    return lambda results: [cell for cell in chosen(results) if cell.threads == 1]


def several_threads(chosen: Cells) -> Cells:
    return lambda results: [cell for cell in chosen(results) if cell.threads > 1]


def most_threads(chosen: Cells) -> Cells:
    """Those of the largest number of threads that anything was measured with."""
    def choose(results: Results) -> list[Cell]:
        found = [cell for cell in chosen(results) if measured_in(results, [cell])]
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


# ---- Allocators. ----------------------------------------------------------------------------------------------------


def chosen(results: Results, who: Who) -> str:
    names = (who,) if isinstance(who, str) else who
    return next((name for name in names if name in results.allocators), names[0])


def only(*names: str) -> Cast:
    return lambda name: name in names


def measured_in(results: Results, among: Sequence[Cell], cast: Cast | None = None) -> list[str]:
    """The allocators that have a result in any of these cells, in the campaign's order; of a cast also those that the
    user gave."""
    return [name for name, row in results.allocators.items()
            if (cast is None or cast(name) or row.kind == "given")
            and any(results.runs(cell.name, name) for cell in among)]


# ---- Numbers. -------------------------------------------------------------------------------------------------------


def values_of(results: Results, cell: Cell, who: str, metric: Metric | None = None) -> dict[int, float]:
    """round -> value."""
    if not callable(metric):
        return results.values(cell, who, metric)
    found = {run.round: metric(run.metrics) for run in results.runs(cell.name, who)}
    return {number: float(value) for number, value in found.items() if value is not None}


# ---- Words. ---------------------------------------------------------------------------------------------------------


def with_threads(cell: Cell) -> str:
    return "with 1 thread" if cell.threads == 1 else f"with {cell.threads} threads"


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"
