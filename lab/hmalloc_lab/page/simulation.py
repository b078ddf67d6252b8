"""One run of a simulation over its time, from the series that `hmalloc pdes MODEL --series FILE` writes: a page that
needs nothing else."""

import csv
import json
import math
import re
from dataclasses import dataclass, field
from pathlib import Path

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from ..errors import Failure

_NEEDED = ("wall_s", "now", "events_per_s", "window", "pending", "bytes")
_COLUMN_OF_ARRAY = re.compile(r"(.+)_(\d+)")
_COLOURS = ("#c4122f", "#0b5aa5", "#00805f", "#d98200", "#6a51b0", "#3f9fd8", "#b0579b", "#7d7412")
_EACH_CHART_PX = 260


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
    series = Series()
    for name, first in (points[0] if points else {}).items():
        values = [point[name] for point in points]
        if isinstance(first, list):
            series.of_threads[name] = [[_number(value[thread]) for value in values] for thread in range(len(first))]
        else:
            series.numbers[name] = [_number(value) for value in values]
    return series


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


# ---- Pictures. ------------------------------------------------------------------------------------------------------


def write(series: Series, name: str, path: Path) -> None:
    page = figure(series, name).to_html(include_plotlyjs=True, full_html=True, config={"displaylogo": False})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}", 1) from error


def figure(series: Series, name: str) -> go.Figure:
    """Against real time; pointing at a line also tells the virtual time."""
    charts = _charts(series)
    drawn = make_subplots(rows=len(charts), cols=1, shared_xaxes=True, vertical_spacing=0.06,
                          subplot_titles=[title for title, _, _ in charts])
    for row, (_, unit, lines) in enumerate(charts, 1):
        for number, (line, values) in enumerate(lines):
            hover = f"{line}: %{{y:.4~s}} {unit}<br>virtual time %{{customdata:.6~g}}<extra></extra>"
            drawn.add_scatter(x=series.numbers["wall_s"], y=values, customdata=series.numbers["now"], name=line,
                              row=row, col=1, mode="lines", hovertemplate=hover,
                              line={"color": _COLOURS[number % len(_COLOURS)], "width": 1.5},
                              showlegend=len(lines) > 1, legend=f"legend{row}" if row > 1 else "legend")
        drawn.update_yaxes(title_text=unit, rangemode="tozero", row=row, col=1)
        top = drawn.layout[f"yaxis{row if row > 1 else ''}"].domain[1]
        drawn.update_layout({f"legend{row if row > 1 else ''}": {"y": top, "yanchor": "top"}})
    drawn.update_xaxes(title_text="seconds", row=len(charts), col=1)
    drawn.update_layout(title=name, template="simple_white", hovermode="x", height=_EACH_CHART_PX * len(charts) + 100)
    return drawn


def _charts(series: Series) -> list[tuple[str, str, list[tuple[str, list[float]]]]]:
    """(title, unit, lines) of each."""
    numbers = series.numbers
    utilised = [(f"thread {thread}", [100 * (1 - share) for share in shares])
                for thread, shares in enumerate(series.of_threads["blocked"])]
    found = [("Events executed", "events/s", [("rate", numbers["events_per_s"])]),
             ("Utilisation: time not spent waiting for other threads", "%", utilised)]
    if any(length > 0 for length in numbers["window"]):  # none with neighbour synchronisation
        found.append(("Length of the last window", "virtual time", [("window", numbers["window"])]))
    return [*found, ("Memory of pending events and queues", "bytes", [("memory", numbers["bytes"])]),
            ("Pending events", "events", [("pending", numbers["pending"])])]
