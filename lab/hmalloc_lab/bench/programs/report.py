"""What the family's tables say: wall time, CPU time, page faults and peak memory, each over the row's best.

They take the least of the rounds: what a program does is fixed, so that whatever comes on top was somebody else's."""

import statistics
from collections.abc import Iterator

from ..catalogue import Cell
from ..results import Results
from ..statistics import geometric_mean
from ..store import AllocatorRow
from ..tables import number, table
from .runs import is_program

# metric: column, its heading, what is measured
METRICS = {
    "wall_s": ("wall", "Wall time", "Seconds from start to end."),
    "cpu_s": ("CPU", "CPU time", "Seconds of user and system time, of all processes and threads."),
    "minor_faults": ("faults", "Page faults", "Of all processes."),
    "vm_hwm_kb": ("peak", "Peak memory", "Kilobytes resident at most, of the largest process."),
}
_MEANING = "Over the row's best, the least of the rounds: geometric mean over the programs, and the worst of them."


def cells(results: Results) -> list[Cell]:
    return [cell for cell in results.cells.values() if is_program(cell)]


def over_best(results: Results, cell: Cell, metric: str) -> dict[str, float]:
    """Drop-in allocator -> its least value divided by the least of all."""
    found = {row.name: min(values) for row in results.drop_ins if (values := _values(results, cell, row, metric))}
    best = min(found.values(), default=0)
    return {name: value / best for name, value in found.items()} if best > 0 else {}


def _values(results: Results, cell: Cell, row: AllocatorRow, metric: str) -> list[float]:
    return [run.metrics[metric] for run in results.good_runs(cell.name, row.name) if metric in run.metrics]


def summary(results: Results) -> tuple[list[str], list[list[str]]]:
    """Head and rows, who needs the least CPU time first; a star for whoever has not run in every cell."""
    asked, rows = cells(results), []
    ratios = {metric: [over_best(results, cell, metric) for cell in asked] for metric in METRICS}
    for row in results.drop_ins:
        found = {metric: [of[row.name] for of in ratios[metric] if row.name in of] for metric in METRICS}
        if found["cpu_s"]:
            star = "" if len(found["cpu_s"]) == len(asked) else " *"
            rows.append((geometric_mean(found["cpu_s"]) or 0, [row.name + star, *map(_mean_and_worst, found.values())]))
    return ["allocator", *(each[0] for each in METRICS.values())], [words for _, words in sorted(rows)]


def _mean_and_worst(ratios: list[float]) -> str:
    mean = geometric_mean(ratios)
    return "-" if mean is None else f"{mean:.2f}, {max(ratios):.2f}"


def markdown(results: Results) -> Iterator[str]:
    """Nothing if no program was measured."""
    if not cells(results):
        return
    yield "## Programs"
    yield f"{_MEANING} This family is no part of the means over all cells."
    yield table(*summary(results))
    for metric, (_, title, meaning) in METRICS.items():
        yield f"### Programs: {title.lower()}"
        yield (f"{meaning} The least of the rounds + how far the median lies above it; in brackets over the row's best, "
               "which is bold.")
        yield table(["program", *(row.name for row in results.drop_ins)],
                    ([cell.name, *_row(results, cell, metric)] for cell in cells(results)))


def _row(results: Results, cell: Cell, metric: str) -> Iterator[str]:
    ratios = over_best(results, cell, metric)
    for row in results.drop_ins:
        values = _values(results, cell, row, metric)
        if not values:
            yield "-"
            continue
        least, ratio = min(values), ratios.get(row.name)
        text = f"{number(least)} +{statistics.median(values) / least - 1:.0%}" if least else number(least)
        yield f"**{text}** (1.00)" if ratio == 1 else f"{text} ({ratio:.2f})" if ratio else text
