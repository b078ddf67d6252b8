"""Writes a campaign as one HTML page that needs nothing else: no server, no net, no other file."""

import json
from pathlib import Path

from markupsafe import Markup

from ..bench.cores import table
from ..bench.participants import is_baseline
from ..bench.results import Results
from ..bench.statistics import VERDICTS
from ..bench.store import AllocatorRow
from . import cores, curves, heatmap, machine, overview, packing, palette, parts, replay, sharing, verdicts
from .papers import all_figures
from .questions import QUESTIONS

# One after the other: each uses what those before it define.
_SCRIPTS = ("unpack.js", "state.js", "plots.js", "overview.js", "curves.js", "figures.js", "cores.js", "heatmap.js",
            "details.js", "filters.js", "moving.js", "sharing.js", "paper.js", "start.js")
_STYLES = ("frame.css", "overview.css", "results.css", "cores.css", "narrow.css", "print.css")
_SECTIONS = (
    ("overview", "Overview"), ("heatmap", "Every cell"), ("threads", "Threads"), ("memory", "Memory over time"),
    ("latency", "Latency tails"), ("replay", "Replayed traces"), ("papers", "What the papers claim"),
    ("cores", "Many cores, simulated"), ("environment", "Environment"))
_KINDS = (
    ("hmalloc", ("hmalloc", "explicit")), ("Peers", ("system", "peer")), ("Yours", ("user",)), ("None", ("no-allocator",)))


def write(results: Results, path: Path, simulated: cores.Figure = cores.NONE) -> None:
    """simulated: what was found on many cores, in a campaign of its own."""
    parts.replace_file(path, render(results, simulated))


def render(results: Results, simulated: cores.Figure = cores.NONE) -> str:
    campaign = results.campaign
    script = parts.joined(_SCRIPTS)
    rankings = overview.rankings(results)
    shown = [verdicts.show(results, figure) for figure in all_figures()]
    data = _data(results, rankings, shown) | {"cores": simulated.data, "guests": simulated.guests}
    told, duels = machine.describe(results), overview.duels(results)
    return parts.templates().get_template("page.html.j2").render(
        results=results,
        campaign=campaign,
        machine=told,
        style=Markup(parts.joined(_STYLES)),
        script=Markup(script),
        library=packing.packed_library(),
        policy=parts.policy([packing.plotting_library(), script]),
        looks=palette.looks(results.allocators.values()),
        choices=[(question.id, question.title) for question in QUESTIONS],
        rankings=rankings,
        duels=duels,
        summary=sharing.summary(results, told, rankings, duels),
        replay=(traces := replay.traces(results)),
        replayed=replay.served(traces),
        papers=verdicts.by_paper(shown),
        untold=verdicts.untold(shown),
        verdict_counts=verdicts.counts(shown),
        counts=verdicts.counts,
        cores=simulated,
        text=table,
        sections=_SECTIONS,
        kinds=_kinds(results),
        place={name: index for index, name in enumerate(results.allocators)},
        thread_counts=sorted({cell.threads for cell in campaign.cells}),
        reference=data["reference"],
        cpus=campaign.environment.get("CPUs"),
        has={"threads": data["threadGroups"], "memory": any("resident" in cell for cell in data["cells"]),
             "latency": any("latency" in cell for cell in data["cells"])},
        data=packing.packed(_json(data)))


def _kinds(results: Results) -> list[tuple[str, list[AllocatorRow]]]:
    """The allocators as the filters group them."""
    groups = [(title, [row for row in results.of_kind(*kinds) if not is_baseline(row)]) for title, kinds in _KINDS]
    groups.insert(2, ("Baselines", [row for row in results.allocators.values() if is_baseline(row)]))
    return [(title, rows) for title, rows in groups if rows]


def _data(results: Results, rankings: list[overview.Ranking], shown: list[verdicts.Shown]) -> dict:
    cells = []
    for cell in results.campaign.cells:
        entry = heatmap.cell_data(results, cell)
        for key, value in (("resident", curves.resident(results, cell)), ("latency", curves.latency(results, cell))):
            if value:
                entry[key] = value
        cells.append(entry)
    fast, lean = rankings[0], rankings[1]
    return {
        "allocators": palette.described(results),
        "reference": next((row.name for row in results.of_kind("system")), next(iter(results.allocators), "")),
        "cpus": results.campaign.environment.get("CPUs"),
        "noisy": sorted(results.noisy_rounds),
        "counters": heatmap.counter_names(),
        "verdicts": VERDICTS,
        "cells": cells,
        "threadGroups": curves.thread_groups(results),
        "scatter": overview.scatter(fast, lean),
        "figures": {each.figure.id: [verdicts.chart_data(chart) for chart in each.charts] for each in shown},
    }


def _json(data: dict) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
