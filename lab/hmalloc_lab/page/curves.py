"""What is drawn as lines: time over threads, resident memory over time, latency percentiles."""

from itertools import pairwise

from hdrh.histogram import HdrHistogram

from ..bench.catalogue import Cell
from ..bench.results import Results
from ..bench.store import Run
from .formats import compact

_STEPS = 40  # of a resident-set curve: what a small chart can show
_PERCENTILES = (0, 10, 25, 50, 75, 90, 95, 98, 99, 99.5, 99.8, 99.9, 99.95, 99.98, 99.99)


def thread_groups(results: Results) -> list[dict]:
    """Cells that differ in their number of threads only: [{title, family, unit, cells: [index, ...]}, ...]."""
    groups: dict[tuple, list[int]] = {}
    for index, cell in enumerate(results.campaign.cells):
        if "threads" in cell.point and cell.metric in ("ns_per_op", "seconds"):
            rest = tuple((key, value) for key, value in cell.point.items() if key != "threads")
            groups.setdefault((cell.workload, cell.family, cell.metric, rest), []).append(index)
    cells = results.campaign.cells
    return [{"title": " ".join([workload, *(f"{key}={value}" for key, value in rest)]), "family": family,
             "cells": sorted(members, key=lambda index: cells[index].threads)}
            for (workload, family, _, rest), members in groups.items() if len(members) > 1]


def resident(results: Results, cell: Cell) -> list | None:
    """[step in ms, [KB, KB more, ...]] of one typical run per allocator; null: no samples."""
    curves = [_curve(_typical(results, cell, name)) for name in results.allocators]
    return curves if any(curves) else None


def _typical(results: Results, cell: Cell, name: str) -> Run | None:
    """The run of median peak among those that were sampled."""
    runs = [run for run in results.runs(cell.name, name) if len(run.resident) > 1]
    runs.sort(key=lambda run: max(kb for _, kb in run.resident))
    return runs[len(runs) // 2] if runs else None


def _curve(run: Run | None) -> list | None:
    """On an even grid; each step shows the most that was resident in it, so that no peak is lost."""
    if run is None:
        return None
    end = run.resident[-1][0] or 1
    steps = min(_STEPS, len(run.resident))
    highest: list[float | None] = [None] * steps
    for at, kb in run.resident:
        index = min(int(at / end * steps), steps - 1)
        highest[index] = max(kb, highest[index] or 0)
    filled, last = [], run.resident[0][1]
    for value in highest:
        last = value if value is not None else last
        filled.append(compact(last, 3))
    return [compact(end / steps), [filled[0], *(after - before for before, after in pairwise(filled))]]


def latency(results: Results, cell: Cell) -> dict | None:
    """{"malloc": [per allocator [[percentile, ns], ...] | null], "free": ...} over all rounds."""
    found = {}
    for kind in ("malloc", "free"):
        curves = [_percentiles([run.latency[kind] for run in results.runs(cell.name, name) if run.latency.get(kind)])
                  for name in results.allocators]
        if any(curves):
            found[kind] = curves
    return found or None


def _percentiles(encoded: list[str]) -> list | None:
    if not encoded:
        return None
    whole = HdrHistogram.decode(encoded[0])
    for text in encoded[1:]:
        whole.add(HdrHistogram.decode(text))
    # Beyond one sample of the tail a percentile would only repeat the maximum.
    known = [p for p in _PERCENTILES if (1 - p / 100) * whole.get_total_count() >= 1]
    return [[p, whole.get_value_at_percentile(p)] for p in known]
