"""One run of a simulation over its time, from the series that `hmalloc pdes MODEL --series FILE` writes, and what it came
to, from its --summary: a page that needs nothing else."""

import csv
import json
import math
import re
from dataclasses import dataclass, field
from pathlib import Path

from markupsafe import Markup

from ..errors import Failure
from . import packing, parts

_NEEDED = ("wall_s", "now", "events_per_s", "window", "pending", "bytes")
_COLUMN_OF_ARRAY = re.compile(r"(.+)_(\d+)")
_COLOURS = ("#c4122f", "#0b5aa5", "#00805f", "#d98200", "#6a51b0", "#3f9fd8", "#b0579b", "#7d7412")
_EACH_CHART_PX = 260
_MOST_POINTS = 4000
_AXIS = {"showgrid": False, "showline": True, "linecolor": "#1b1f24", "zeroline": False, "ticks": "outside",
         "automargin": True}


@dataclass
class Series:
    numbers: dict[str, list[float]] = field(default_factory=dict)       # name -> a value for each point
    of_threads: dict[str, list[list[float]]] = field(default_factory=dict)  # name -> thread -> the same


def read(path: Path) -> Series:
    """CSV with columns blocked_0, blocked_1, ... or lines of JSON with lists.  The last line of a run that still writes
    may be half a line."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{path}: {getattr(error, 'strerror', None) or 'not a text'}") from error
    try:
        points = _lines_of_json(text) if text.startswith("{") else _table(text)
        series = _by_name(points)
    except (ValueError, TypeError, KeyError) as error:
        raise Failure(f"{path}: not the series of a simulation ({error})") from error
    missing = [name for name in _NEEDED if name not in series.numbers]
    if not points or missing or "blocked" not in series.of_threads:
        raise Failure(f"{path}: not the series of a simulation: "
                      f"{'no ' + ', '.join(missing or ['blocked']) if points else 'it has no points'}")
    return series


def _lines_of_json(text: str) -> list[dict]:
    whole = text.splitlines()
    return [json.loads(line) for line in (whole if text.endswith("\n") else whole[:-1])]


def _table(text: str) -> list[dict]:
    rows = list(csv.DictReader(text.splitlines() if text.endswith("\n") else text.splitlines()[:-1]))
    points = []
    for row in rows:
        point: dict = {}
        for name, value in row.items():
            if array := _COLUMN_OF_ARRAY.fullmatch(name):
                point.setdefault(array[1], []).append(float(value))
            else:
                point[name] = float(value)
        points.append(point)
    return points


def _by_name(points: list[dict]) -> Series:
    """No more points than a page can show: every second, third ..., and the last."""
    series, every = Series(), -(-len(points) // _MOST_POINTS)
    points = points[::-every][::-1] if every > 1 else points
    for name, first in (points[0] if points else {}).items():
        values = [point[name] for point in points]
        if isinstance(first, list):
            series.of_threads[name] = [[_number(value[thread]) for value in values] for thread in range(len(first))]
        else:
            series.numbers[name] = [_number(value) for value in values]
    return series


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


_OF_A_SUMMARY = ("model", "events", "seconds", "events_per_s", "reached", "end", "stopped", "digest", "sync", "queue",
                 "allocator", "seed", "ranks", "peak_bytes", "peak_pending", "thread_activity", "waited_on", "statistics")


def read_summary(path: Path) -> dict | None:
    """None if the run did not come so far."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{path}: {getattr(error, 'strerror', None) or 'not a text'}") from error
    if not text:
        return None
    try:
        found = json.loads(text)
        missing = [name for name in _OF_A_SUMMARY if name not in found]
        if not missing:
            facts(found), threads_of(found), bottleneck(found), statistics(found)  # whether each is what it should be
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise Failure(f"{path}: not the summary of a simulation ({error})") from error
    if missing:
        raise Failure(f"{path}: not the summary of a simulation: no {', '.join(missing)}")
    return found


# ---- What it came to. -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Thread:
    number: int
    events: int
    works: float                # share of its time
    waits_on: list[float]       # the same, for each thread
    blocked_others_s: float     # all that waited for it


def threads_of(summary: dict) -> list[Thread]:
    waited = summary["waited_on"]
    found = []
    for number, activity in enumerate(summary["thread_activity"]):
        whole = activity["working_s"] + activity["blocked_s"] or 1
        found.append(Thread(number, activity["events"], activity["working_s"] / whole,
                            [seconds / whole for seconds in waited[number]] if number < len(waited) else [],
                            sum(row[number] for row in waited if number < len(row))))
    return found


def bottleneck(summary: dict) -> str:
    """Who the others waited for, in a sentence; empty with one thread, and where not all threads are known."""
    threads = threads_of(summary)
    all_s = sum(thread.blocked_others_s for thread in threads)
    gathered = summary.get("gathered", 0)
    if 2 * gathered > summary.get("windows", 0):
        return f"One thread executed {gathered:,} of {summary['windows']:,} windows for all, and the others slept meanwhile."
    if len(threads) < 2 or all_s <= 0 or summary["ranks"] > 1:
        return ""
    worst = max(threads, key=lambda thread: thread.blocked_others_s)
    working = [activity["working_s"] for activity in summary["thread_activity"]]
    took = max(activity["working_s"] + activity["blocked_s"] for activity in summary["thread_activity"])
    even = sum(working) / len(working)
    return (f"Of all waiting, {100 * worst.blocked_others_s / all_s:.0f} % was for thread {worst.number}. The threads took "
            f"{took:.3g} s; with the same work for each and no waiting they would have taken {even:.3g} s.")


def facts(summary: dict) -> list[tuple[str, str]]:
    early = ", ended by the model" if summary.get("ended_by_model") else ", stopped early" if summary["stopped"] else ""
    threads = len(summary["thread_activity"])
    how = [f"{threads} thread{'s' if threads > 1 else ''}", summary["sync"], summary["queue"], summary["allocator"],
           f"seed {summary['seed']}"]
    if summary["ranks"] > 1:
        how[0] = f"{summary['ranks']} ranks of {how[0]}; threads are those of rank 0"
    found = [("events", f"{summary['events']:,} in {summary['seconds']:.3g} s, {short(summary['events_per_s'])} a second"),
             ("virtual time", f"{summary['reached']:.6g} of {summary['end']:.6g}{early}"),
             ("digest", summary["digest"]),
             ("how", ", ".join(how))]
    if parameters := summary.get("model_parameters"):
        found.insert(-1, ("parameters", ", ".join(f"{name} {_said(value)}" for name, value in parameters.items())))
    if summary.get("lookahead") and threads * summary["ranks"] > 1:
        of = f"; {summary['windows']:,} windows" if summary["sync"] == "windows" else ""
        found.append(("lookahead", f"{summary['lookahead']:.6g}{of}"))
    found += [("memory", f"{short(summary['peak_bytes'], 'B')} at most for {summary['peak_pending']:,} pending events")]
    if path := summary.get("critical_path"):
        chain = (f"{path['events']:,} event{'s' if path['events'] > 1 else ''} to {path['last']}: at most "
                 f"{path['parallelism']:.3g} threads can be busy")
        found.append(("longest chain", chain if path["events"] else "none: nothing was executed"))
    if "error" in summary:  # the digest depends on how far each thread was
        found = [("failed", summary["error"]), *(row for row in found if row[0] != "digest")]
    return found


def statistics(summary: dict) -> list[tuple[str, str]]:
    said = []
    for name, value in (summary["statistics"] | summary.get("derived", {})).items():
        if isinstance(value, dict):
            value = ", ".join(f"{word.replace('_', ' ')} {_said(number)}" for word, number in value.items())
        said.append((name, _said(value)))
    return said


def _said(value: object) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{word}: {_said(number)}" for word, number in value.items())
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}" if isinstance(value, float) else str(value or "none")


def short(value: float | None, unit: str = "") -> str:
    """12.3 M, or 12.3 MB"""
    value = value or 0.0
    limit, sign = next(((limit, sign) for limit, sign in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
                        if abs(value) >= 0.9995 * limit), (1, ""))
    return f"{value / limit:.3g} {sign}{unit}".rstrip()


# ---- Pictures. ------------------------------------------------------------------------------------------------------


def write(series: Series, name: str, path: Path, summary: dict | None = None) -> None:
    drawn, script = figure(series), parts.joined(("unpack.js", "simulation.js"))
    page = parts.environment().get_template("simulation.html.j2").render(
        name=name, titles=[chart.title for chart in _charts(series)], script=Markup(script),
        facts=facts(summary) if summary else [], threads=threads_of(summary) if summary else [],
        bottleneck=bottleneck(summary) if summary else "", statistics=statistics(summary) if summary else [],
        policy=parts.policy([packing.plotting_library(), script]), library=packing.packed_library(),
        data=packing.packed(json.dumps(drawn, allow_nan=False)))
    parts.replace_file(path, page)


def figure(series: Series) -> dict:
    """Charts one below the other against real time; pointing at a line also tells the virtual time."""
    charts = _charts(series)
    traces, annotations = [], []
    layout: dict = {"height": _EACH_CHART_PX * len(charts) + 60, "hovermode": "x", "margin": {"t": 40},
                    "annotations": annotations}
    for row, chart in enumerate(charts):
        top = 1 - row / len(charts)
        number = str(row + 1) if row else ""
        x_title = {"title": {"text": "seconds"}} if row == len(charts) - 1 else {"showticklabels": False}
        layout[f"xaxis{number}"] = _AXIS | x_title | {"anchor": f"y{number}"} | ({"matches": "x"} if row else {})
        layout[f"yaxis{number}"] = _AXIS | {"title": {"text": chart.unit}, "rangemode": "tozero",
                                            "domain": [top - 0.78 / len(charts), top]}
        layout[f"legend{number}"] = {"y": top, "yanchor": "top"}
        annotations.append({"text": chart.title, "x": 0.5, "y": top, "xref": "paper", "yref": "paper",
                            "yanchor": "bottom", "showarrow": False, "font": {"size": 16}})
        traces += [_trace(series, chart, place, number) for place in range(len(chart.lines))]
    return {"traces": traces, "layout": layout}


def _trace(series: Series, chart: "_Chart", place: int, number: str) -> dict:
    name, values = chart.lines[place]
    return {"type": "scatter", "mode": "lines", "name": name, "x": _known(series.numbers["wall_s"]),
            "y": _known(values), "customdata": _known(series.numbers["now"]),
            "xaxis": f"x{number}", "yaxis": f"y{number}",
            "hovertemplate": f"{name}: %{{y:.4~s}} {chart.unit}<br>virtual time %{{customdata:.6~g}}<extra></extra>",
            "line": {"color": _COLOURS[place % len(_COLOURS)], "width": 1.5},
            "showlegend": len(chart.lines) > 1, "legend": f"legend{number}"}


def _known(values: list[float]) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values]


@dataclass(frozen=True)
class _Chart:
    title: str
    unit: str
    lines: list[tuple[str, list[float]]]


def _without_a_stub(series: Series, rates: list[float]) -> list[float]:
    """The last interval ends with the run, and may be so short that its rate says nothing."""
    before, last = series.numbers["wall_s"][-3:-1], series.numbers["wall_s"][-1]
    return [*rates[:-1], math.nan] if len(before) == 2 and last - before[1] < (before[1] - before[0]) / 2 else rates


def _changes(lengths: list[float]) -> bool:
    known = [length for length in lengths if math.isfinite(length)]
    return bool(known) and max(known) - min(known) > 1e-6 * max(known)


def _charts(series: Series) -> list[_Chart]:
    numbers = series.numbers
    utilised = [(f"thread {thread}", _without_a_stub(series, [100 * (1 - share) for share in shares]))
                for thread, shares in enumerate(series.of_threads["blocked"])]
    found = [_Chart("Events executed", "events/s", [("rate", _without_a_stub(series, numbers["events_per_s"]))]),
             _Chart("Utilisation: not waiting for others", "%", utilised)]
    if _changes(numbers["window"]):  # none with neighbour synchronisation; often all are as long as the lookahead
        found.append(_Chart("Length of the last window", "virtual time", [("window", numbers["window"])]))
    return [*found, _Chart("Memory of pending events and queues", "bytes", [("memory", numbers["bytes"])]),
            _Chart("Pending events", "events", [("pending", numbers["pending"])])]
