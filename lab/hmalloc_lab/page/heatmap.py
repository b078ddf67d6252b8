"""The cells as numbers for the script of the page: medians, spreads, intervals, every round, counters.

Every list is in the order of the allocators and has null where one was not measured.  Numbers are as short as the page
can show them; unpack.js puts them into their places.
"""

import math

from ..bench import statistics
from ..bench.catalogue import UNITS, Cell
from ..bench.results import Results
from .formats import compact
from .overview import OURS
from .questions import QUESTIONS, metric_for

COUNTERS = {  # metric: (what it is called, its unit)
    "wall_s": ("wall time", "s"),
    "user_s": ("user time", "s"),
    "system_s": ("system time", "s"),
    "vm_hwm_kb": ("peak resident", "KB"),
    "vm_peak_kb": ("peak virtual", "KB"),
    "minor_faults": ("minor faults", ""),
    "major_faults": ("major faults", ""),
    "voluntary_switches": ("waits", ""),
    "involuntary_switches": ("forced switches", ""),
    "instructions": ("instructions", ""),
}


def anchor(cell: Cell) -> str:
    """The id of the cell's row."""
    return "cell-" + "-".join("".join(c if c.isalnum() else " " for c in cell.name).split())


def cell_data(results: Results, cell: Cell) -> dict:
    answers = {question.id: _answer(results, cell, metric) for question in QUESTIONS
               if (metric := metric_for(cell, question))}
    return {"name": cell.name, "id": anchor(cell), "family": cell.family, "workload": cell.workload,
            "threads": cell.threads, "answers": answers, "counters": _counters(results, cell)}


def _answer(results: Results, cell: Cell, metric: str) -> dict:
    columns = {"median": [], "low": [], "high": [], "count": [], "against": [], "rounds": []}
    for name in results.allocators:
        values = results.values(cell, name, metric)
        median = compact(results.median(cell, name, metric))
        if median is None:
            for column in columns.values():
                column.append(None)
            continue
        columns["median"].append(median)
        columns["low"].append(_share(min(values.values()), median))
        columns["high"].append(_share(max(values.values()), median))
        columns["against"].append(_against_ours(results, cell, name, metric))
        columns["count"].append(len(values))
        columns["rounds"].append(_rounds(results, cell, name, metric, median))
    return {"metric": metric, "unit": UNITS.get(metric, ""), **columns}


def _rounds(results: Results, cell: Cell, name: str, metric: str, median: float) -> list[float | None]:
    """Also of the noisy ones, from the first on; null where one has no value."""
    values = {run.round: run.metrics.get(metric) for run in results.good_runs(cell.name, name)}
    return [_share(values.get(number), median) for number in range(1, max(values) + 1)]


def _share(value: float | None, median: float) -> float | int | None:
    """Thousandths of the median above it: most of them have one or two digits.  Of a median of 0 the value itself."""
    if value is None or not math.isfinite(value):
        return None
    return round((value / median - 1) * 1000) if median else compact(value)


def _against_ours(results: Results, cell: Cell, name: str, metric: str) -> list | None:
    """Median, interval, and the place of the verdict among VERDICTS."""
    if name == OURS or OURS not in results.allocators:
        return None
    ratio = statistics.ratio(results, cell, name, OURS, metric)
    return [*(compact(value, 3) for value in (ratio.median, ratio.low, ratio.high)),
            statistics.VERDICTS.index(ratio.verdict)] if ratio else None


def counter_names() -> list[dict]:
    return [{"title": title, "unit": unit} for title, unit in COUNTERS.values()]


def _counters(results: Results, cell: Cell) -> list[list | None]:
    """Medians in the order of counter_names(); null for one that nobody has."""
    found = [[compact(results.median(cell, name, metric), 3) for name in results.allocators] for metric in COUNTERS]
    return [medians if any(median is not None for median in medians) else None for medians in found]
