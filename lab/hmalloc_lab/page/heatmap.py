"""The cells as numbers for the script of the page: medians, spreads, intervals, every round, counters.

Every list is in the order of the allocators and has null where one was not measured.
"""

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
        if not values:
            for column in columns.values():
                column.append(None)
            continue
        columns["median"].append(compact(results.median(cell, name, metric)))
        columns["low"].append(compact(min(values.values())))
        columns["high"].append(compact(max(values.values())))
        columns["against"].append(_against_ours(results, cell, name, metric))
        columns["count"].append(len(values))
        columns["rounds"].append([[run.round, compact(run.metrics[metric])] for run in results.good_runs(cell.name, name)
                                  if run.metrics.get(metric) is not None])
    return {"metric": metric, "unit": UNITS.get(metric, ""), **columns}


def _against_ours(results: Results, cell: Cell, name: str, metric: str) -> list | None:
    if name == OURS or OURS not in results.allocators:
        return None
    ratio = statistics.ratio(results, cell, name, OURS, metric)
    return [compact(ratio.median), compact(ratio.low), compact(ratio.high), ratio.verdict] if ratio else None


def _counters(results: Results, cell: Cell) -> list[dict]:
    found = []
    for metric, (title, unit) in COUNTERS.items():
        medians = [compact(results.median(cell, name, metric)) for name in results.allocators]
        if any(median is not None for median in medians):
            found.append({"title": title, "unit": unit, "values": medians})
    return found
