"""What a run reports."""

from dataclasses import dataclass, field

import numpy as np

from .records import TALLY, Tally

_KINDS = ("count", "sum", "tally")
_SAID = {"count": ("kind", "value", "count"), "sum": ("kind", "value", "sum"),
         "tally": ("kind", "value", "count", "sum", "mean", "least", "most")}


@dataclass(frozen=True)
class Statistic:
    """A number that LPs have reported: a count, a sum, or a tally, which has all of these."""

    kind: str
    count: int
    sum: float
    least: float
    most: float

    @property
    def mean(self):
        return self.sum / self.count if self.count else 0.0

    @property
    def value(self):
        """Of a tally the mean."""
        return {"count": self.count, "sum": self.sum, "tally": self.mean}[self.kind]


@dataclass(frozen=True)
class Result:
    """Of one run: what it was asked for, what came of it."""

    parameters: dict
    options: dict
    digest: int
    reached: float
    stopped: bool
    wall_s: float
    events: int
    sent: int
    crossed: int
    dropped: int
    windows: int
    peak_pending: int
    peak_bytes: int
    events_before: int
    checkpoints: int
    events_by_type: dict
    statistics: dict
    injected: list = field(repr=False)
    series: list = field(repr=False)
    finals: dict = field(repr=False)

    @property
    def events_per_s(self):
        return self.events / self.wall_s if self.wall_s else 0.0

    def frame(self):
        """The statistics as a DataFrame, one a row."""
        import pandas

        columns = ["kind", "value", "count", "sum", "mean", "least", "most"]
        rows = [[getattr(statistic, column) if column in _SAID[statistic.kind] else None for column in columns]
                for statistic in self.statistics.values()]
        frame = pandas.DataFrame(rows, columns=columns, index=pandas.Index(self.statistics, name="statistic"))
        return frame.astype({"count": "Int64"} | dict.fromkeys(columns[3:], float))

    def arrow(self):
        """The statistics as a table of Arrow's; needs pyarrow."""
        import pyarrow

        return pyarrow.Table.from_pandas(self.frame())

    def states(self, lp):
        """The states of a class of LPs at the end as a DataFrame, one LP a row."""
        import pandas

        groups = []
        for ids, columns in self.finals[lp.__name__]:
            parts = [part for name, values in columns.items() for part in _parts(name, values)]
            groups.append(pandas.DataFrame(dict(parts), index=pandas.Index(ids, name="lp")))
        return pandas.concat(groups)

    def history(self):
        """How the run went, as a DataFrame: a row for each interval of real time."""
        import pandas

        return pandas.DataFrame(self.series, columns=["wall_s", "now", "events", "pending", "bytes"])

    def row(self):
        """All in one dictionary of numbers and words, as a line of a sweep has it."""
        row = self.parameters | self.options | {"digest": f"{self.digest:#018x}"}
        row |= {name: getattr(self, name) for name in ("reached", "events", "wall_s", "events_per_s")}
        for name, statistic in self.statistics.items():
            row[name] = statistic.value
            if statistic.kind == "tally":
                row |= {f"{name}.count": statistic.count, f"{name}.least": statistic.least, f"{name}.most": statistic.most}
        return row

    def __str__(self):
        how = "stopped" if self.stopped else "reached"
        lines = [f"{self.events:,} events in {self.wall_s:.3g} s, {self.events_per_s:,.0f} events/s; {how} {self.reached:g}",
                 f"digest {self.digest:#018x}"]
        if self.options.get("threads", 1) > 1 and self.windows:
            of_each = self.events / self.windows
            lines.append(f"{self.options['threads']} threads, {self.windows:,} windows of {of_each:,.1f} events")
        for name, s in self.statistics.items():
            number = f"{s.count}: mean {s.mean:.6g}, from {s.least:.6g} to {s.most:.6g}" if s.kind == "tally" else s.value
            lines.append(f"{name:<20} {number}")
        return "\n".join(lines)


def _parts(name, values):
    """A column, or for a Tally four, or for an array one of arrays."""
    if isinstance(values, np.ndarray) and values.dtype.names:
        return [(f"{name}.{part}", values[part]) for part in values.dtype.names]
    if isinstance(values, list) and values and isinstance(values[0], Tally):
        return [(f"{name}.{part}", [getattr(value, part) for value in values]) for part in TALLY.names]
    return [(name, list(values) if isinstance(values, np.ndarray) and values.ndim > 1 else values)]


def statistics_of(result):
    numbers = (result.statistics[i] for i in range(result.statistic_count))
    return {number.name.decode(): Statistic(_KINDS[number.kind], number.count, number.sum, number.least, number.most)
            for number in numbers}
