"""The result as Markdown: each allocator over the row's best, in the mean and at worst, and the rows behind it."""

from collections.abc import Iterator

from ...ratios import spread
from .. import tables
from ..catalogue import Cell
from ..results import Results
from ..statistics import geometric_mean, to_best

# metric: column, its heading where it has a table of its own, what is measured
METRICS = {
    "ns_per_op": ("time", "Time", "Nanoseconds of wall time for a malloc with its free."),
    "cpu_ns_per_op": ("CPU", "CPU time", "Nanoseconds of CPU time, of all threads, for a malloc with its free."),
    "peak_over_live": ("peak", "Memory at its peak", "Growth of the resident set at its peak, over the most bytes live."),
    "held_over_live": ("held", "Memory over time", "The same over time: the sum of 32 looks, over the sum of what was "
                       "live at them."),
    "left_over_live": ("left", "Memory left after idleness", "Growth of the resident set after a second of sleep and a "
                       "few calls, over the bytes of the blocks that stay."),
}


def summary(results: Results) -> str:
    parts = ["Over the row's best, the leanest for memory: geometric mean over the rows, and the worst row."]
    for title, cells in _groups(results):
        if rows := _summary_rows(results, cells):
            number = f"{len(cells)} row{'s' if len(cells) > 1 else ''}"
            parts += [f"{title}, {number}:", tables.table(["allocator", *(each[0] for each in METRICS.values())], rows)]
    return "\n\n".join(parts)


def _groups(results: Results) -> Iterator[tuple[str, list[Cell]]]:
    cells = list(results.cells.values())
    for title, found in (("All", cells), ("One thread", [cell for cell in cells if cell.threads == 1]),
                         ("Several threads", [cell for cell in cells if cell.threads > 1])):
        if found and (title == "All" or len(found) < len(cells)):
            yield title, found


def _summary_rows(results: Results, cells: list[Cell]) -> list[list[str]]:
    """Whoever has the least time first; whoever has not run in every row is told by a star."""
    ratios = {metric: [to_best(results, cell, metric) for cell in cells] for metric in METRICS}
    rows = []
    for row in results.drop_ins:
        found = [[of[row.name] for of in ratios[metric] if row.name in of] for metric in METRICS]
        if found[0]:
            star = "" if len(found[0]) == len(cells) else " *"
            rows.append((geometric_mean(found[0]) or 0, [row.name + star, *map(_mean_and_worst, found)]))
    return [words for _, words in sorted(rows)]


def _mean_and_worst(ratios: list[float]) -> str:
    mean = geometric_mean(ratios)
    return "-" if mean is None else f"{mean:.2f}, {max(ratios):.2f}"


def markdown(results: Results) -> str:
    of = results.campaign
    parts = [f"# Production mixes, {of.started[:10]}", f"    {of.command}",
             f"The mixes were drawn by lot, of seed {of.seed}: `--seed {of.seed}` draws them again. A star marks an "
             "allocator that has not run in every row.",
             "## Summary", summary(results)]
    for metric, (_, title, meaning) in METRICS.items():
        parts += [f"## {title}", f"{meaning} Median ± half the distance between the quartiles over the rounds; in "
                  "brackets over the row's best, which is bold.", _rows(results, metric)]
    parts += ["## The machine", tables.campaign(results), "## Allocators", tables.allocators(results),
              "## Failures", tables.failures(results), "## Noisy rounds", tables.noisy(results)]
    return "\n\n".join(parts) + "\n"


def _rows(results: Results, metric: str) -> str:
    names = [row.name for row in results.drop_ins]
    return tables.table(["mix", "threads", "handed over", *names], (
        [str(cell.point["mix"]), str(cell.threads), f"{cell.point.get('handover', 0)} %",
         *_values(results, cell, metric, names)] for cell in results.cells.values()))


def _values(results: Results, cell: Cell, metric: str, names: list[str]) -> Iterator[str]:
    over_best = to_best(results, cell, metric)
    for name in names:
        values = list(results.values(cell, name, metric).values())
        if not values:
            yield "-"
            continue
        middle = spread(values)
        text = f"{tables.number(middle.median)} ±{middle.relative:.0%}"
        ratio = over_best.get(name)
        yield f"**{text}** (1.00)" if ratio == 1 else f"{text} ({ratio:.2f})" if ratio else text
