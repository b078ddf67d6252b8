"""Many cores, simulated: a page of its own for a campaign of `bench cores`, and its figure in the report beside it."""

import json
import sqlite3
from dataclasses import asdict, dataclass, field
from pathlib import Path

from markupsafe import Markup

from ..bench.catalogue import Cell
from ..bench.cores import cells, table
from ..bench.cores.commands import DATABASE, PROFILE
from ..bench.results import Results
from ..bench.store import Store
from ..errors import Failure
from . import machine, packing, palette, parts
from .figure import Chart, Point, Series
from .overview import OURS
from .verdicts import chart_data

_SCRIPTS = ("unpack.js", "state.js", "plots.js", "figures.js", "cores.js", "paper.js", "start_cores.js")
_STYLES = ("frame.css", "overview.css", "results.css", "cores.css", "narrow.css", "print.css")
# In the tables of all patterns: metric, its title, what it says.
_COUNTS = (("instructions", "Instructions", "Within malloc, free and the end of threads, for each malloc with its free."),
           ("locked", "Locked instructions", "Of these, those that lock: what an atomic exchange is on x86-64."))


@dataclass(frozen=True)
class Figure:
    """A chart for each pattern; why there is none otherwise."""

    charts: list[Chart]
    date: str = ""
    command: str = ""
    versions: tuple[str, ...] = ()
    looks: dict[str, palette.Look] = field(default_factory=dict)
    lack: str = ""

    @property
    def notes(self) -> list[str]:
        return [cells.PATTERNS.get(chart.title, "") for chart in self.charts]

    @property
    def data(self) -> list[dict]:
        return [chart_data(chart) for chart in self.charts]

    @property
    def guests(self) -> dict[str, dict]:
        """Their looks, for the page of a campaign in which they have no part."""
        return {name: asdict(look) for name, look in self.looks.items()}


NONE = Figure([])


def figure(results: Results) -> Figure:
    charts = [chart for pattern, row in table.by_pattern(results).items()
              if (chart := _chart(results, pattern, row)).series]
    told, looks = machine.describe(results), palette.looks(results.allocators.values())
    return Figure(charts, told.date, results.campaign.command, tuple(told.versions), looks,
                  "" if charts else "nothing was counted of these allocators")


def _chart(results: Results, pattern: str, row: list[Cell]) -> Chart:
    """Who is drawn last lies on top."""
    names = sorted(results.allocators, key=lambda name: name == OURS)
    curves = [Series(name, [Point(cell.threads, found) for cell in row
                            if (found := table.value(results, cell, name)) is not None]) for name in names]
    return Chart("lines", "cores", "lines moved for a pair", [curve for curve in curves if curve.points], log_x=True,
                 log_y=True, title=pattern)


def beside(database: Path, names: str = "") -> Figure:
    """Of the last finished campaign in cores.db beside that database.  What is wrong with it costs no other page."""
    path = database.with_name(DATABASE)
    if not path.is_file():
        return NONE
    try:
        with Store(path) as kept:
            number = kept.finished(PROFILE)
            found = Results(kept.load(number)) if number else None
    except (Failure, sqlite3.Error) as error:
        return Figure([], lack=str(error))
    if found and names:
        found = found.among([name for name in names.split(",") if name in found.allocators])
    return figure(found) if found else NONE


# ---- The page of its own. -------------------------------------------------------------------------------------------


def write(results: Results, path: Path) -> None:
    parts.replace_file(path, render(results))


def render(results: Results) -> str:
    script, drawn = parts.joined(_SCRIPTS), figure(results)
    data = {"allocators": palette.described(results), "cores": drawn.data, "guests": {}}
    return parts.templates().get_template("cores.html.j2").render(
        results=results,
        campaign=results.campaign,
        machine=machine.describe(results),
        cores=drawn,
        text=table,
        model=table.model(results) if results.cells else "",
        moved=table.with_ratios(results),
        counts=[(title, says, table.of_each_pair(results, metric)) for metric, title, says in _COUNTS],
        patterns=[(pattern, row, table.per_cores(results, row), table.details(results, row[-1]))
                  for pattern, row in table.by_pattern(results).items()],
        functions=table.functions(results),
        style=Markup(parts.joined(_STYLES)),
        script=Markup(script),
        library=packing.packed_library(),
        policy=parts.policy([packing.plotting_library(), script]),
        looks=palette.looks(results.allocators.values()),
        data=packing.packed(json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)))
