"""What several files test with: models of their own, and that none of them runs as plain Python unasked."""

import warnings
from typing import NamedTuple

import hmalloc_pdes as pdes
import numpy as np
import pytest

SMALL = {"phold": {"end": 20, "lps": 300, "events_per_lp": 3}, "airport": {"end": 60, "width": 8, "height": 6, "planes": 9},
         "arq": {"wires": 9, "precision": 0.1, "batch": 5}}


@pytest.fixture(autouse=True)
def machine_code():
    """Nobody runs as plain Python unasked."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", pdes.SlowModelWarning)
        yield


def named(name, function):
    function.__name__ = name
    return function


class Tick(NamedTuple):
    n: int


class Nothing(NamedTuple):
    pass


# ---- A class of LPs for each kind of thing that can be in one.

class Numbers(NamedTuple):
    a: bool
    b: np.uint8
    c: np.float32
    d: np.int16


@pdes.lp(streams=2)
class Everything:
    places: pdes.Array(float, 3)
    small: np.uint8 = 250
    half: np.float32 = 0.1
    seen: bool = False
    times: pdes.Tally

    def start(self, context):
        context.send_self(1, Nothing())
        context.send_self(1, Tick(1), priority=3)

    def nothing(self, context, event: Nothing):
        self.small += 10
        self.half += context.uniform(1)
        self.places[1] += context.exponential(2, 2)
        context.send((context.id + 1) % context.lp_count, 1 + context.uniform(stream=2), Numbers(True, 300, self.half, -5))

    def tick(self, context, event: Tick):
        context.send_self(1.5 if context.chance(0.5, 1) else 1, Tick(event.n + context.integer(10, 2)))
        self.times.add(event.n)

    def numbers(self, context, event: Numbers):
        self.seen = event.a
        self.places[2] += event.b + event.c + event.d
        context.send_self(0, Nothing())

    def report(self, report):
        report.count("small", self.small)
        report.sum("places", self.places[1] + self.places[2])
        report.tally("times", self.times)


@pdes.model(end=20, lookahead=1)
def everything(simulation, lps=5):
    simulation.add(Everything, lps, half=np.linspace(0, 1, lps))


@pdes.lp(streams=1)
class Observer:
    present: pdes.Level = 2
    spread: pdes.Histogram
    seen: int = 0
    means: pdes.BatchMeans
    large: pdes.Histogram
    best: float = 0.0
    until: float = 0.0
    area: float = 0.0

    def start(self, context):
        context.send_self(1 + context.uniform(), Tick(0))

    def tick(self, context, event: Tick):
        value = context.exponential(2.0, 1)
        self.spread.add(value)
        self.large.add(-1000 * event.n)
        self.means.add(value)
        if event.n == 10:
            self.present.restart(context.now)
        elif event.n % 3 == 0:
            self.present.set(context.now, event.n)
        else:
            self.present.add(context.now, -0.5)
        self.seen += 1
        self.best = min(self.means.half_width(), 1e9) + self.means.mean() + self.present.value
        self.until, self.area = self.present.time(context.now + 1), self.present.area(context.now + 1)
        context.send((context.id + 1) % context.lp_count, 0.1 + context.uniform(), Tick(event.n + 1))

    def report(self, report):
        report.level("present", self.present)
        report.histogram("spread", self.spread)
        report.histogram("large", self.large)
        report.interval("means", self.means)
        report.count("seen", self.seen)


@pdes.model(end=60, lookahead=0.1)
def observed(simulation, lps=5):
    simulation.add(Observer, lps, means=7, present=np.arange(lps))


@pdes.cancellable
class Alarm(NamedTuple):
    on: bool
    number: int


@pdes.lp(streams=1)
class Sleeper:
    first: pdes.Timer
    spread: pdes.Histogram
    second: pdes.Timer
    fault: int = 0
    awaited: int = -1
    heard: int = 0
    sent: int = 0
    cancelled: int = 0
    in_vain: int = 0

    def start(self, context):
        if self.first.is_set() or self.second.cancel():
            raise ValueError("nobody has set it")
        context.send_self(context.uniform(), Tick(0))

    def tick(self, context, event: Tick):
        if self.fault == 1:
            context.set(self.first, -1.0, Alarm(True, 0))
        elif self.fault == 2:
            context.set(self.first, 1.0, Alarm(True, 0), 64)
        if context.chance(0.5):
            context.set(self.first, context.exponential(2.0), Alarm(True, event.n), priority=1)
            self.awaited = event.n
            if not self.first.is_set():
                raise ValueError("it has been set")
        elif self.first.cancel():
            self.cancelled += 1
            self.awaited = -1
            if self.first.is_set() or self.first.cancel():
                raise ValueError("it has been cancelled")
        else:
            self.in_vain += 1
        context.set(self.second, context.exponential(1.0, 1), Alarm(False, event.n))
        context.send((context.id + 1) % context.lp_count, 0.1 + context.exponential(0.5), Alarm(True, -1))
        self.sent += 1
        context.send_self(context.exponential(1.0), Tick(event.n + 1))

    def alarm(self, context, event: Alarm):
        if (event.number >= 0 and event.on and self.first.is_set()) or (not event.on and self.second.is_set()):
            raise ValueError("it rings, and so is no longer set")
        if event.number >= 0 and event.on and event.number != self.awaited:
            raise ValueError("it has been cancelled, or set anew")
        if event.number == -1:
            self.sent -= 1
        else:
            self.heard += 1
            self.spread.add(event.number + 1)

    def report(self, report):
        report.count("heard", self.heard)
        report.count("cancelled", self.cancelled)
        report.count("in_vain", self.in_vain)
        report.count("on_their_way", self.sent + self.first.is_set() + self.second.is_set())
        report.histogram("spread", self.spread)


@pdes.model(end=200, lookahead=0.1)
def sleepers(simulation, lps=4, fault=0):
    simulation.add(Sleeper, lps, fault=fault)


# ---- A class that does one thing wrong for each fault.

@pdes.lp
class Faulty:
    fault: int
    n: float = 0.0
    places: pdes.Array(float, 2)

    def start(self, context):
        context.send_self(1, Tick(self.fault))

    def tick(self, context, event: Tick):
        other = (context.id + 1) % context.lp_count
        if event.n == 1:
            context.send(other, -1.0, Tick(0))
        elif event.n == 2:
            context.send(99, 1.0, Tick(0))
        elif event.n == 3:
            context.send(-1, 1.0, Tick(0))
        elif event.n == 4:
            context.send(other, 0.1, Tick(0))
        elif event.n == 5:
            context.send_self(1, Tick(0), 64)
        elif event.n == 6:
            self.n = context.integer(0)
        elif event.n == 7:
            self.n = context.uniform(3)
        elif event.n == 8:
            raise ValueError("bad luck")
        elif event.n == 9:
            self.n = 1 / (event.n - 9)
        elif event.n == 10:
            self.places[event.n] = 1.0
        elif event.n == 12:
            context.send(other, np.inf, Tick(0))
        elif event.n == 13:
            context.send_self(np.inf, Tick(0))
        elif event.n == 14:
            context.end_after(np.inf)
        elif event.n == 15:
            raise ValueError("bad\nluck\n")

    def report(self, report):
        report.sum("n", self.n if self.fault != 11 else np.inf)


@pdes.model(end=10, lookahead=0.5)
def faulty(simulation, fault=0, count=2):
    simulation.add(Faulty, count, fault=fault)
