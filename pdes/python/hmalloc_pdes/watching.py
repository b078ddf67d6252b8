"""What a run tells while it goes on and when it is over, in the form of the programs of models in C++ (docs/pdes.md)."""

import json
import math

from . import options
from .errors import Error


class Points:
    """Progress becomes points: with rates over the time since the one before."""

    def __init__(self, end):
        self._end = end
        self._wall_s, self._events, self._blocked_s = 0.0, 0, []
        self._last = {"window": 0.0, "pending": 0, "bytes": 0}

    def of(self, at):
        return self._next(at.wall_s, at.now, at.events, at.windows, at.blocked_s[:at.thread_count],
                          at.thread_events[:at.thread_count],
                          {"window": at.window, "pending": at.pending, "bytes": at.bytes})

    def last(self, result):
        """Its totals, with the window and memory that were seen last."""
        self._end = result.reached if result.ended_by_model else self._end
        return self._next(result.wall_s, result.reached, result.events, result.windows,
                          [thread.blocked_s for thread in result.threads], [thread.events for thread in result.threads],
                          self._last)

    def _next(self, wall_s, now, events, windows, blocked_s, thread_events, last):
        took = wall_s - self._wall_s
        before = self._blocked_s or [0.0] * len(blocked_s)
        shares = [min(max((after - was) / took, 0.0), 1.0) if took > 0 else 0.0 for was, after in zip(before, blocked_s)]
        percent = min(max(100 * now / self._end, 0.0), 100.0) if self._end > 0 else 0.0
        point = {"wall_s": wall_s, "now": now, "percent": percent,
                 "events": events, "events_per_s": (events - self._events) / took if took > 0 else 0.0,
                 "window": last["window"], "windows": windows, "pending": last["pending"], "bytes": last["bytes"],
                 "blocked": shares, "thread_events": thread_events}
        self._wall_s, self._events, self._blocked_s, self._last = wall_s, events, blocked_s, last
        return point


class OutputFile:
    """Opened before the run, so that a wrong name is told at once.  What cannot be written later ends no run: `check` tells
    it."""

    def __init__(self, option, path):
        self._name, self._error = f"{option}: {path}", None
        try:
            self._file = open(path, "w", encoding="utf-8")  # noqa: SIM115 (a run is in between)
        except OSError as error:
            raise Error(f"{self._name} cannot be written: {error.strerror}") from None

    def line(self, text):
        try:
            if self._error is None:
                print(text, file=self._file, flush=True)
        except OSError as error:
            self._error = error

    def check(self):
        if self._error is not None:
            raise Error(f"{self._name} cannot be written: {self._error.strerror}")


class Series:
    """Points in a file: a table with a heading, in which lists become columns blocked_0, blocked_1 ..., or lines of JSON."""

    def __init__(self, path):
        self._file, self._table, self._begun = OutputFile("--series", path), not path.endswith(".jsonl"), False

    def add(self, point):
        if not self._table:
            self._file.line(as_json(point))
            return
        columns = {}
        for name, value in point.items():
            columns |= {f"{name}_{i}": one for i, one in enumerate(value)} if isinstance(value, list) else {name: value}
        if not self._begun:
            self._file.line(",".join(columns))
        self._begun = True
        self._file.line(",".join(map(str, columns.values())))

    def check(self):
        self._file.check()


def as_json(value):
    """On one line; what JSON has no number for is null."""
    return json.dumps(_finite(value), allow_nan=False)


def _finite(value):
    if isinstance(value, dict):
        return {str(name): _finite(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if hasattr(value, "tolist"):  # NumPy's
        return _finite(value.tolist())
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def summary(model, result):
    """With the names that the programs in C++ have for the same."""
    how = {option.name: option.default for option in options.SIMULATION + options.ENGINE} | result.options
    found = {"model": model, "digest": f"{result.digest:#018x}", "events": result.events, "seconds": result.wall_s,
             "events_per_s": result.events_per_s}
    found |= {name: getattr(result, name)
              for name in ("events_before", "checkpoints", "reached", "stopped", "ended_by_model", "ranks", "windows",
                           "gathered", "sent", "crossed", "dropped", "cancelled", "made", "ended", "undelivered",
                           "peak_bytes", "peak_pending", "events_by_type")}
    found |= {name: how[name] for name in ("end", "lookahead", "seed", "threads", "allocator", "queue", "sync", "generator",
                                           "ties", "partition", "balance", "balance_by", "gather")}
    found |= {"statistics": {name: _statistic(one) for name, one in result.statistics.items()},
              "model_parameters": result.parameters,
              "thread_activity": [{"events": thread.events, "working_s": thread.working_s, "blocked_s": thread.blocked_s}
                                  for thread in result.threads],
              "waited_on": [thread.waited_on for thread in result.threads]}
    if "trace" in result.options:
        found["trace_lost"] = result.trace_lost
    if result.delays is not None:
        found["delays"] = {name: value for name, value in vars(result.delays).items() if name != "links"}
        found["delays"]["links"] = [{name.rstrip("_"): value for name, value in vars(link).items()}
                                    for link in result.delays.links]
    if result.path is not None:
        found["critical_path"] = vars(result.path)
    return found


def _statistic(one):
    if one.kind in ("count", "sum"):
        return one.value
    return {"mean": one.mean} | {name: value for name, value in one.numbers().items() if name != "value"}
