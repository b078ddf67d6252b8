"""What a run reports."""

import ctypes
from dataclasses import dataclass, field

import numpy as np

from . import library
from .errors import Error

_KINDS = ("count", "sum", "tally", "level", "histogram", "interval")
HISTORY = ("wall_s", "now", "events", "pending", "bytes")  # of progress, what a Result keeps
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
_SAID = {"count": ("value", "count"), "sum": ("value", "sum"),
         "tally": ("value", "count", "sum", "mean", "least", "most"),
         "level": ("value", "mean", "least", "most"),
         "histogram": ("value", "count", "sum", "mean", "least", "most", *_QUANTILES),
         "interval": ("value", "count", "mean", "half_width")}


@dataclass(frozen=True)
class Statistic:
    """What LPs have reported under one name."""

    kind: str
    count: int  # of observations; of an interval: of batches
    sum: float
    least: float
    most: float
    time: float = 0.0  # of a level: of all LPs together
    half_width: float = 0.0  # of an interval: the mean is within it, either way, with a confidence of 95 %
    batch_size: int = 0
    steps: tuple = field(default=(), repr=False)  # of a histogram: those that are not empty, with their counts

    @property
    def mean(self):
        """Of a level that over time."""
        of = self.time if self.kind == "level" else self.count
        return self.sum / of if of > 0 else 0.0

    @property
    def value(self):
        """Of whatever has a mean that."""
        return {"count": self.count, "sum": self.sum}.get(self.kind, self.mean)

    def quantile(self, q):
        """Of a histogram, to 2 %; 0 < q < 1."""
        if self.kind != "histogram":
            raise Error(f"a {self.kind} has no quantiles")
        steps, counts = zip(*self.steps) if self.steps else ((), ())
        histogram = library.Statistic(count=self.count, least=self.least, most=self.most, step_count=len(steps),
                                      steps=(ctypes.c_int32 * len(steps))(*steps),
                                      step_counts=(ctypes.c_uint64 * len(counts))(*counts))
        return library.call.quantile(histogram, q)

    def numbers(self):
        """What there is of it, by name."""
        return {name: self.quantile(_QUANTILES[name]) if name in _QUANTILES else getattr(self, name)
                for name in _SAID[self.kind]}

    def __str__(self):
        if self.kind in ("count", "sum"):
            return str(self.value)
        if self.kind == "level":
            return f"mean over time {self.mean:.6g}, from {self.least:.6g} to {self.most:.6g}"
        if self.kind == "interval":
            of = f"{self.count} batches of {self.batch_size}"
            return f"{self.mean:.6g}, within {self.half_width:.3g} with 95 % confidence; {of}"
        text = f"{self.count}: mean {self.mean:.6g}, from {self.least:.6g} to {self.most:.6g}"
        if self.kind == "histogram":
            text += "; 50, 90, 99 %: " + ", ".join(f"{self.quantile(q):.3g}" for q in _QUANTILES.values())
        return text


@dataclass(frozen=True)
class Link:
    """From a class to a class, by a type of event."""

    from_: str
    to: str
    event: str
    count: int
    smallest: float
    suggested_lookahead: float


@dataclass(frozen=True)
class Delays:
    """Of events between LPs."""

    count: int
    smallest: float
    mean: float
    largest: float
    p1: float
    p50: float
    p99: float
    suggested_lookahead: float  # by what was seen, which is no proof: the model must guarantee it; 0: there is none
    links: list  # the smallest delay first

    def __str__(self):
        if not self.count:
            return "no LP sent another one anything: any lookahead would do"
        lines = [f"{self.count:,} events between LPs, delays from {self.smallest:g} to {self.largest:g}, mean {self.mean:g}"]
        lines += [f"  {link.smallest:g} and more, from {link.from_} to {link.to}, {link.count:,} of {link.event}"
                  for link in self.links[:8]]
        if not self.suggested_lookahead:
            return "\n".join([*lines, "  there is no lookahead: some events take no time to another LP"])
        lines.append(f"  lookahead={self.suggested_lookahead:g}, if the model guarantees it: what was seen is no proof")
        if len(self.links) > 1 and self.links[1].smallest > self.links[0].smallest:
            lines.append(f"  without the first link it could be {self.links[1].suggested_lookahead:g}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Path:
    """The longest chain of events of which each had to wait for the one before."""

    events: int
    last: str  # where it ends: an LP
    parallelism: float  # so many threads could be busy, at most

    def __str__(self):
        if not self.events:
            return "longest chain: none, nothing was executed"
        return f"longest chain: {self.events:,} events to {self.last}: at most {self.parallelism:.3g} threads can be busy"


@dataclass(frozen=True)
class Thread:
    """Of this process."""

    events: int
    working_s: float
    blocked_s: float  # waiting for other threads and ranks
    waited_on: list  # seconds, for each thread; empty if that is not known


_LITTLE = 20  # events of a window for each thread: a barrier takes as long


@dataclass(frozen=True)
class Result:
    """Of one run: what it was asked for, what came of it."""

    parameters: dict
    options: dict
    digest: int
    reached: float
    stopped: bool
    ended_by_model: bool
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
    cancelled: int
    made: int  # LPs that come and go
    ended: int
    undelivered: int
    gathered: int
    events_by_type: dict
    statistics: dict
    delays: Delays | None  # with lookahead_report
    path: Path | None  # with critical_path
    trace_lost: int
    ranks: int
    threads: list
    injected: list = field(repr=False)
    series: list = field(repr=False)
    finals: dict = field(repr=False)

    @property
    def events_per_s(self):
        return self.events / self.wall_s if self.wall_s else 0.0

    def frame(self):
        """The statistics as a DataFrame, one a row."""
        import pandas

        columns = ["kind", "value", "count", "sum", "mean", "least", "most", "half_width", *_QUANTILES]
        rows = [{"kind": statistic.kind} | statistic.numbers() for statistic in self.statistics.values()]
        frame = pandas.DataFrame(rows, columns=columns, index=pandas.Index(self.statistics, name="statistic"))
        return frame.astype({"count": "Int64"} | dict.fromkeys(columns[3:], float))

    def arrow(self):
        """The statistics as a table of Arrow's; needs pyarrow."""
        import pyarrow

        return pyarrow.Table.from_pandas(self.frame())

    def states(self, lp):
        """The states of a class of LPs at the end as a DataFrame, one LP a row; ids where nobody is have none."""
        import pandas

        groups = []
        added = self.finals[lp.__name__]
        for ids, columns in [group for group in added if len(group[0])] or added[:1]:  # an empty column has any type
            parts = [part for name, values in columns.items() for part in _parts(name, values)]
            groups.append(pandas.DataFrame(dict(parts), index=pandas.Index(ids, name="lp")))
        return pandas.concat(groups)

    def history(self):
        """How the run went, as a DataFrame: a row for each interval of real time."""
        import pandas

        return pandas.DataFrame(self.series, columns=HISTORY)

    def row(self):
        """All in one dictionary of numbers and words, as a line of a sweep has it."""
        row = self.parameters | self.options | {"digest": f"{self.digest:#018x}"}
        row |= {name: getattr(self, name) for name in ("reached", "events", "wall_s", "events_per_s")}
        for name, statistic in self.statistics.items():
            row[name] = statistic.value
            row |= {f"{name}.{part}": number for part, number in statistic.numbers().items()
                    if part not in ("value", "mean", "sum", statistic.kind)}
        return row

    def __str__(self):
        how = "stopped" if self.stopped else "reached"
        lines = [f"{self.events:,} events in {self.wall_s:.3g} s, {self.events_per_s:,.0f} events/s; {how} {self.reached:g}",
                 f"digest {self.digest:#018x}"]
        if self.options.get("threads", 1) > 1 and self.options.get("sync", "windows") == "windows" and self.windows:
            threads = self.options["threads"]
            of_each = (self.events - self.events_before) / self.windows
            by_one = f"; one thread executed {self.gathered:,} for all" if self.gathered else ""
            lines.append(f"{threads} threads, {self.windows:,} windows of {of_each:,.1f} events{by_one}")
            if of_each < _LITTLE * threads:
                lines.append(f"that is little for {threads} threads: one may be faster")
        if self.made:
            lines.append(f"{self.made:,} LPs made, {self.ended:,} ended, {self.made - self.ended:,} there at the end")
        for name, s in self.statistics.items():
            lines.append(f"{name:<20} {s}")
        lines += [str(measured) for measured in (self.delays, self.path) if measured is not None]
        return "\n".join(lines)


def _parts(name, values):
    """A column, or for what observes one for each of its numbers, or for an array one of arrays."""
    if isinstance(values, np.ndarray) and values.dtype.names:
        return [(f"{name}.{part}", values[part]) for part in values.dtype.names]
    return [(name, list(values) if isinstance(values, np.ndarray) and values.ndim > 1 else values)]


def delays_of(result):
    of = result.delays
    links = [Link(link.from_.decode(), link.to.decode(), link.event.decode(), link.count, link.smallest,
                  link.suggested_lookahead) for link in of.links[:of.link_count]]
    numbers = {name: getattr(of, name) for name, _ in library.Delays._fields_ if "link" not in name}
    return Delays(**numbers, links=links)


def path_of(result):
    events = result.path_events
    return Path(events, result.path_last.decode(), result.events / events if events else 0.0)


def threads_of(result):
    return [Thread(of.events, of.working_s, of.blocked_s, of.waited_on[:of.waited_on_count])
            for of in result.threads[:result.thread_count]]


def statistics_of(result):
    def statistic(number):
        steps = tuple((number.steps[i], number.step_counts[i]) for i in range(number.step_count))
        return Statistic(_KINDS[number.kind], number.count, number.sum, number.least, number.most, number.time,
                         number.half_width, number.batch_size, steps)

    numbers = (result.statistics[i] for i in range(result.statistic_count))
    return {number.name.decode(): statistic(number) for number in numbers}
