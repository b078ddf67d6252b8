"""The three questions that the page asks of a cell, and the metric that answers each.

A cell need not answer all: runs with a clock around the calls say nothing about throughput, and 1,000 idle threads say
nothing about speed.
"""

from dataclasses import dataclass

from ..bench.catalogue import Cell


@dataclass(frozen=True)
class Question:
    id: str
    title: str
    better: str   # of an allocator that wins
    subject: str  # what the ratio is a ratio of


TIME = Question("time", "Time", "fast", "time")
MEMORY = Question("memory", "Memory", "lean", "memory")
TAIL = Question("tail", "Latency tail", "steady", "99.9th percentile of a call")
QUESTIONS = (TIME, MEMORY, TAIL)

_TIMES = ("ns_per_op", "seconds", "wall_s", "cpu_s")


def metric_for(cell: Cell, question: Question) -> str | None:
    if question is TAIL:
        return "latency_p999_ns" if cell.metric.startswith("latency_") else None
    if question is TIME:
        return cell.metric if cell.metric in _TIMES else None
    if cell.family == "memory" and cell.metric not in _TIMES:
        return cell.metric
    return "vm_hwm_kb" if cell.counts_peak else None


def cells_asked(cells: list[Cell], question: Question) -> list[tuple[Cell, str]]:
    """The cells that answer, each with its metric."""
    return [(cell, metric) for cell in cells if (metric := metric_for(cell, question))]
