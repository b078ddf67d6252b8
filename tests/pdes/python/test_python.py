"""Models in Python: the answers of those in C++, errors of one line, sweeps."""

import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import hmalloc_pdes as pdes
import numpy as np
import pandas
import pytest
from hmalloc_pdes import records
from hmalloc_pdes.slow import Events
from models import Airport, Hop, Node, airport, arq, phold

PROGRAMS = Path(os.environ["HM_PDES_PROGRAMS"])
SMALL = {"phold": {"end": 20, "lps": 300, "events_per_lp": 3}, "airport": {"end": 60, "width": 8, "height": 6, "planes": 9},
         "arq": {"wires": 9, "precision": 0.1, "batch": 5}}
MODELS = {"phold": phold, "airport": airport, "arq": arq}


@pytest.fixture(autouse=True)
def machine_code():
    """Nobody runs as plain Python unasked."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", pdes.SlowModelWarning)
        yield


def in_cxx(name, **options):
    program = PROGRAMS / f"hmalloc-pdes-{name}"
    if not program.exists():
        pytest.skip(f"{program.name} is not built")
    words = [f"--{option.replace('_', '-')}={value}" for option, value in options.items()]
    return json.loads(subprocess.run([program, *words, "--json"], capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("options", [{}, {"seed": 7}, {"generator": "philox"}, {"ties": "hashed", "queue": "heap"}])
def test_digest_is_that_of_the_model_in_cxx(name, options):
    expected = in_cxx(name, **SMALL[name], **options)
    result = MODELS[name].run(**SMALL[name], **options)
    assert f"{result.digest:#018x}" == expected["digest"]
    assert (result.events, result.dropped) == (expected["events"], expected["dropped"])
    assert result.cancelled == expected.get("cancelled", 0) and (result.cancelled > 0) == (name == "arq")
    for statistic, value in expected["statistics"].items():
        got = result.statistics[statistic]
        if not isinstance(value, dict):
            assert got.value == value
            continue
        quantiles, batches = value.pop("quantiles", {}), value.pop("batches", got.count)
        assert batches == got.count and value.pop("confidence", 0.95) == 0.95
        assert {part: getattr(got, part) for part in value} == value
        assert {q: got.quantile(float(q)) for q in quantiles} == quantiles


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("options", [
    {"threads": 2}, {"threads": 2, "sync": "neighbours"}, {"allocator": "free-list"}, {"plain": True}, {"plain": True, "threads": 2}])
def test_how_it_is_run_changes_no_answer(name, options):
    assert MODELS[name].run(**SMALL[name], **options).digest == MODELS[name].run(**SMALL[name]).digest


def test_what_is_asked_changes_the_answer():
    answers = {phold.run(**SMALL["phold"] | other).digest for other in ({}, {"seed": 2}, {"remote": 0.3}, {"generator": "philox"})}
    assert len(answers) == 4


# ---- A class of LPs for each kind of thing that can be in one.

class Tick(NamedTuple):
    n: int


class Nothing(NamedTuple):
    pass


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


def test_machine_code_and_plain_python_are_the_same_whatever_a_model_uses():
    fast, plain = everything.run(), everything.run(plain=True)
    assert (fast.digest, fast.statistics) == (plain.digest, plain.statistics)
    assert fast.statistics["times"].count > 50 and fast.events_by_type == plain.events_by_type
    states, others = fast.states(Everything), plain.states(Everything)
    assert [*states.columns] == [*others.columns]
    for name in states:
        assert [np.ravel(value).tolist() for value in states[name]] == [np.ravel(value).tolist() for value in others[name]], name
    assert everything.run(threads=2, end=5).digest == everything.run(plain=True, end=5).digest


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


@pytest.mark.parametrize("options", [{}, {"threads": 2}, {"plain": True}, {"threads": 2, "plain": True, "sync": "neighbours"}])
def test_what_lps_observe(options):
    result, alone = observed.run(**options), observed.run()
    assert (result.digest, result.statistics) == (alone.digest, alone.statistics)
    of = result.statistics
    assert {statistic.kind for statistic in of.values()} == {"level", "histogram", "interval", "count"}
    assert of["spread"].count == of["large"].count == of["seen"].value > 300
    assert of["spread"].least <= of["spread"].quantile(0.01) < of["spread"].quantile(0.5) < of["spread"].quantile(0.99)
    assert of["spread"].quantile(0.5) == pytest.approx(2 * np.log(2), rel=0.2) and of["spread"].mean == pytest.approx(2, rel=0.2)
    assert of["large"].most == 0 > of["large"].quantile(0.5) > of["large"].least
    assert of["means"].batch_size == 7 and of["seen"].value // 7 - 5 <= of["means"].count and 0 < of["means"].half_width < 2
    assert of["present"].least < of["present"].mean < of["present"].most and 0 < of["present"].time < 5 * 60
    states, others = result.states(Observer), alone.states(Observer)
    pandas.testing.assert_frame_equal(states, others)
    assert (states["best"] > 0).all() and (states["area"] != 0).all() and {*states["present.since"]} != {0.0}
    assert not [column for column in states if column.startswith("spread")]


def test_what_lps_observe_in_frames_and_words():
    result = observed.run()
    frame, of = result.frame(), result.statistics
    assert frame.loc["spread", "p90"] == of["spread"].quantile(0.9) and frame.loc["means", "half_width"] == of["means"].half_width
    assert frame.loc["present", "value"] == of["present"].mean and frame.loc["seen", ["mean", "p50", "half_width"]].isna().all()
    assert [*frame.columns] == ["kind", "value", "count", "sum", "mean", "least", "most", "half_width", "p50", "p90", "p99"]
    row = result.row()
    assert row["spread"] == of["spread"].mean and row["spread.p99"] == of["spread"].quantile(0.99)
    assert row["means.half_width"] == of["means"].half_width and "seen.count" not in row
    lines = dict(line.split(maxsplit=1) for line in str(result).splitlines()[2:])
    assert lines["present"].startswith("mean over time ") and "; 50, 90, 99 %: " in lines["spread"]
    assert lines["means"].endswith(f"with 95 % confidence; {of['means'].count} batches of 7")
    with pytest.raises(pdes.Error, match="^a level has no quantiles$"):
        of["present"].quantile(0.5)
    nobody = observed.run(end=0.5).statistics
    assert nobody["spread"].quantile(0.5) == nobody["spread"].mean == 0
    assert (nobody["present"].least, nobody["present"].mean, nobody["present"].most) == (0, 2, 4)


class Counter(pdes.Tally):
    def add(self, value):
        super().add(1)


@pdes.lp
class Own:
    ticks: Counter

    def start(self, context):
        context.send_self(1, Tick(7))

    def tick(self, context, event: Tick):
        self.ticks.add(event.n)

    def report(self, report):
        report.tally("ticks", self.ticks)


def test_what_is_derived_from_what_observes_is_plain_python():
    @pdes.model(end=5)
    def own(simulation):
        simulation.add(Own, 1)

    with pytest.warns(pdes.SlowModelWarning, match="^Own runs as plain Python"):
        assert own.run().statistics["ticks"].mean == 1


@pytest.mark.parametrize("plain", [False, True])
def test_fields_that_observe_and_cannot_be(plain):
    def said(model=observed, **options):
        with pytest.raises(pdes.Error) as error:
            model.run(plain=plain, **options)
        return str(error.value)

    def built(**values):
        return pdes.model(end=5, lookahead=0.1)(_named("m", lambda simulation: simulation.add(Observer, 2, **values)))

    assert said(built()) == "Observer needs a value of 'means'"
    assert said(built(means=0)) == "Observer.means cannot be 0 for 2 LPs: a batch needs at least one observation"
    assert said(built(means="x")).startswith("Observer.means cannot be 'x' for 2 LPs: ")
    assert said(built(means=1, spread=1)) == "Observer.spread takes no value"
    assert said(built(means=1, present="x")).startswith("Observer.present cannot be 'x' for 2 LPs: ")
    assert re.match(r"Observer\.present cannot be (\[1, 2, 3\]|3 values) for 2 LPs", said(built(means=1, present=[1, 2, 3])))


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


@pytest.mark.parametrize("options", [{}, {"threads": 2}, {"plain": True}, {"threads": 2, "plain": True}])
def test_timers(options):
    result, alone = sleepers.run(**options), sleepers.run()
    assert (result.digest, result.statistics, result.cancelled) == (alone.digest, alone.statistics, alone.cancelled)
    of = {name: statistic.value for name, statistic in result.statistics.items()}
    assert of["heard"] > 400 and of["cancelled"] > 100 and of["in_vain"] > 50 and result.cancelled > of["cancelled"]
    pandas.testing.assert_frame_equal(result.states(Sleeper), alone.states(Sleeper))
    assert [*alone.states(Sleeper).columns] == ["fault", "awaited", "heard", "sent", "cancelled", "in_vain"]
    with pytest.raises(pdes.Error, match=r"^LP . \(Sleeper\), at time .* on Tick from LP ., sends Alarm to LP . with delay -1: a delay"):
        sleepers.run(fault=1, **options)
    with pytest.raises(pdes.Error, match=r"^LP . \(Sleeper\), at time .* on Tick from LP ., sends with priority 64: the last is 63$"):
        sleepers.run(fault=2, **options)


def test_an_event_that_no_timer_cancels():
    @pdes.lp
    class Wrong:
        timer: pdes.Timer

        def start(self, context):
            context.set(self.timer, 1.0, Tick(0))

        def tick(self, context, event: Tick):
            pass

    @pdes.model(end=10)
    def wrong(simulation):
        simulation.add(Wrong, 1)

    for plain, where in (False, "Wrong"), (True, r"LP 0 \(Wrong\) failed at time 0"):
        with pytest.raises(pdes.Error, match=f"^{where}: Tick can be cancelled by no timer: write @cancellable above it$"):
            wrong.run(plain=plain)


@pytest.mark.parametrize("plain", [False, True])
def test_events_that_timers_cancel_come_from_outside_too(plain):
    outside = pdes.Outside()
    assert outside.inject(1, Alarm(True, -1))
    result = sleepers.run(pace=1e4, outside=outside, plain=plain)
    assert [event.event for event in result.injected] == [Alarm(True, -1)]
    assert sleepers.run(replay=result.injected, plain=not plain).digest == result.digest != sleepers.run().digest


@pdes.lp
class Ender:
    ticks: int = 0
    delay: float

    def start(self, context):
        context.send_self(1 + 0.25 * context.id, Tick(0))

    def tick(self, context, event: Tick):
        self.ticks += 1
        if self.ticks == 5:
            context.end_after(self.delay)
        context.send((context.id + 1) % context.lp_count, 1, Tick(event.n + 1))

    def report(self, report):
        report.count("ticks", self.ticks)


@pdes.model(end=1000, lookahead=1)
def ended(simulation, delay=1.5):
    simulation.add(Ender, 4, delay=delay)


@pytest.mark.parametrize("options", [{}, {"threads": 2}, {"plain": True}, {"threads": 2, "sync": "neighbours"}])
def test_a_model_ends_its_run(options):
    result, alone = ended.run(**options), ended.run()
    assert (result.digest, result.reached, result.stopped) == (alone.digest, alone.reached, False)
    assert alone.reached == 1 + 4 + 1.5 and result.statistics["ticks"].value < 30
    with pytest.raises(pdes.Error, match=r"ends the run after 0\.5: that is below the lookahead 1"):
        ended.run(delay=0.5, **options)


def test_frames():
    result = airport.run(**SMALL["airport"])
    frame = result.frame()
    assert frame.loc["waiting", "count"] == result.statistics["waiting"].count > 0
    assert frame.loc["waiting", "mean"] == pytest.approx(frame.loc["waiting", "sum"] / frame.loc["waiting", "count"])
    many = airport.run(**SMALL["airport"], threads=2)
    assert f"\n2 threads, {many.windows:,} windows of {many.events / many.windows:,.1f} events\n" in str(many)
    assert "windows" not in str(result)
    assert frame.loc["departures", "value"] == result.statistics["departures"].value and frame["value"].notna().all()
    assert frame.loc["departures", ["sum", "mean", "least", "most"]].isna().all()  # it has none
    states = result.states(Airport)
    assert states["departures"].sum() == frame.loc["departures", "count"]
    assert states["waiting.count"].sum() == frame.loc["waiting", "count"] and states.index.name == "lp"
    assert (states["average.count"] == (states["waiting.count"] > 0)).all()  # which the report itself has changed
    seen = []
    history = phold.run(lps=1000, end=300, interval=0.001, progress=lambda *at: seen.append(at)).history()
    assert history["events"].is_monotonic_increasing and len(history) == len(seen) > 0


@pytest.mark.parametrize("plain", [False, True])
def test_a_class_that_is_added_twice(plain):
    @pdes.model(end=5, lookahead=0.1)
    def two(simulation):
        assert simulation.add(Node, np.int64(2), events=1, remote=0, mean=1) == 0
        assert simulation.add(Faulty, 1, fault=0) == 2
        assert simulation.add(Node, 3, events=[2, 3, 4], remote=0, mean=1) == 3

    states = two.run(plain=plain).states(Node)
    assert [*states.index] == [0, 1, 3, 4, 5] and [*states["events"]] == [1, 1, 2, 3, 4]


# ---- What Numba does not take.

class Names(NamedTuple):
    names: list


@pdes.lp
class Gossip:
    heard: object = list

    def start(self, context):
        context.send((context.id + 1) % context.lp_count, 1, Names([f"LP {context.id}"]))

    def hear(self, context, event: Names):
        self.heard.append("; ".join(event.names))
        context.send((context.id + 1) % context.lp_count, 1, Names([*event.names, f"LP {context.id}"]))

    def report(self, report):
        report.count("names", sum(len(line) for line in self.heard))


@pdes.model(end=5, lookahead=1)
def gossip(simulation):
    simulation.add(Gossip, 3)


def test_objects_run_as_plain_python_with_one_warning():
    with pytest.warns(pdes.SlowModelWarning, match="^Gossip runs as plain Python.*Names has a field that is no number$") as warned:
        result = gossip.run()
    assert len(warned) == 1
    assert gossip.run(threads=2).digest == result.digest
    assert result.states(Gossip)["heard"][0][:2] == ["LP 2", "LP 1; LP 2"] and result.statistics["names"].value > 0


@pdes.lp
class Keeper:
    contexts: object = list

    def start(self, context):
        self.contexts.append(context)
        context.send_self(1, Tick(0))

    def tick(self, context, event: Tick):
        self.contexts.append(context)


def test_a_context_is_of_one_handler():
    @pdes.model(end=5)
    def keeping(simulation):
        simulation.add(Keeper, 1)

    with pytest.warns(pdes.SlowModelWarning):
        [contexts] = keeping.run().states(Keeper)["contexts"]
    for context in contexts:
        context.send_self(1, Tick(0))  # as what a process leaves behind does when it is collected
        with pytest.raises(ctypes.ArgumentError):
            context.uniform()


@pdes.lp
class Formatter:
    def start(self, context):
        context.send_self(1, Tick(0))

    def tick(self, context, event: Tick):
        if f"{event.n:>5}".strip():
            context.send_self(1, Tick(event.n + 1))


@pdes.model(end=5)
def formatter(simulation):
    simulation.add(Formatter, 1)


def test_the_warning_says_what_numba_does_not_take():
    with pytest.warns(pdes.SlowModelWarning, match="Formatter runs as plain Python.*format spec"):
        assert formatter.run().events == 4


# ---- Errors.

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

    def report(self, report):
        report.sum("n", self.n if self.fault != 11 else np.inf)


@pdes.model(end=10, lookahead=0.5)
def faulty(simulation, fault=0, count=2):
    simulation.add(Faulty, count, fault=fault)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("fault, said", enumerate([
    r"LP 0 \(Faulty\), at time 1 on Tick from LP 0, sends Tick to LP 1 with delay -1: a delay must be 0 or more",
    r"LP 0 \(Faulty\) sends Tick to LP 99 at time 1: there are only 2 LPs",
    r"LP 0 \(Faulty\) sends Tick to LP -1 at time 1: there are only 2 LPs",
    r"lookahead violation: LP 0 \(Faulty\), at time 1 on Tick from LP 0, sends .* the delay 0.1 is below the lookahead 0.5",
    r"LP 0 \(Faulty\), at time 1 on Tick from LP 0, sends with priority 64: the last is 63",
    r"LP 0 \(Faulty\) draws an integer below 0",
    r"LP 0 \(Faulty\) has no random stream 3",
    r"LP 0 \(Faulty\) failed at time 1: ValueError: bad luck",
    r"LP 0 \(Faulty\) failed at time 1: ZeroDivisionError: division by zero",
    r"LP 0 \(Faulty\) failed at time 1: IndexError: index.* is out of bounds.*",
    r"statistic 'n': inf is not a finite number",
], 1))
def test_what_goes_wrong_in_a_handler_is_one_line(plain, fault, said):
    for threads in (1, 2):
        with pytest.raises(pdes.Error, match=f"^{said.replace('LP 0', 'LP [01]').replace('LP 1 ', 'LP [01] ')}$"):
            faulty.run(fault=fault, plain=plain, threads=threads)
    assert faulty.run(plain=plain).events == 2  # and the next run is a good one


@pytest.mark.parametrize("given, said", [
    ({"count": 0}, "there are no LPs"),
    ({"thread": 2}, "model faulty has no parameter 'thread', nor is that an option of the engine"),
    ({"threads": 0}, "a run needs at least one thread"),
    ({"threads": "two"}, "option threads cannot be 'two'"),
    ({"queue": "stack"}, "option queue cannot be 'stack'"),
    ({"end": -1}, "the end must be a time of 0 or more"),
    ({"threads": 2, "lookahead": 0}, "more than one thread or rank needs a lookahead above 0"),
    ({"fault": "x"}, "Faulty.fault cannot be 'x' for 2 LPs: invalid literal.*"),
    ({"fault": [1, 2, 3]}, "Faulty.fault .* for 2 LPs.*"),
])
@pytest.mark.parametrize("plain", [False, True])
def test_what_makes_no_sense_is_one_line(given, said, plain):
    with pytest.raises(pdes.Error, match=f"^{said}$"):
        faulty.run(plain=plain, **given)


def test_an_event_that_nobody_handles():
    @pdes.lp
    class Lost:
        def start(self, context):
            context.send_self(1, Nothing())

        def tick(self, context, event: Tick):
            pass

    @pdes.model(end=10)
    def lost(simulation):
        simulation.add(Lost, 1)

    for plain, where in (False, "Lost"), (True, r"LP 0 \(Lost\) failed at time 0"):
        with pytest.raises(pdes.Error, match=f"^{where}: Nothing is no event of this model: no LP has a handler of it$"):
            lost.run(plain=plain)


def test_an_event_that_this_class_does_not_handle():
    @pdes.lp
    class Caller:
        def start(self, context):
            context.send_self(1, Nothing())

    @pdes.model(end=10)
    def call(simulation):
        simulation.add(Caller, 1)
        simulation.add(Everything, 1)

    with pytest.raises(pdes.Error, match=r"^LP 0 \(Caller\), at time 1 on Nothing from LP 0, has no handler for Nothing$"):
        call.run()


# ---- Beside real time, and from outside.

class Knock(NamedTuple):
    number: int


class Word(NamedTuple):
    said: object


@pdes.lp
class Door:
    last: float = 0.0
    heard: int = 0

    def start(self, context):
        context.send_self(1, Nothing())

    def nothing(self, context, event: Nothing):
        self.see(context)
        context.send_self(1, Nothing())

    def knock(self, context, event: Knock):
        self.see(context)
        self.heard += event.number
        if event.number % 3 != 0:
            context.send((context.id + 1) % context.lp_count, 0.5, Knock(event.number - 1))

    def see(self, context):
        if context.now < self.last:
            raise ValueError("an event from the past")
        self.last = context.now

    def report(self, report):
        report.count("heard", self.heard)


@pdes.model(end=40, lookahead=0.5)
def doors(simulation):
    simulation.add(Door, 6)


def knocking(outside, given):
    """A thread that gives until the run is over."""
    def give():
        while outside.inject(len(given) % 6, Knock(len(given)), len(given) % 2):
            given.append(1)
            time.sleep(0.0003)
    thread = threading.Thread(target=give, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("options", [{}, {"threads": 2}, {"threads": 3, "plain": True}])
def test_what_a_thread_gives_to_a_paced_run_comes_again_in_a_replay(options):
    outside, given = pdes.Outside(), [1, 1]
    assert outside.inject(0, Knock(7)) and outside.inject(1, Knock(8))  # before there is a run
    thread = knocking(outside, given)
    result = doors.run(pace=200, outside=outside, **options)
    thread.join()
    assert result.wall_s >= 0.199 and 2 <= len(result.injected) <= len(given)
    assert {event.event.number for event in result.injected} >= {7, 8} and all(0 <= event.time < 40 for event in result.injected)
    assert not outside.inject(0, Knock(1))
    for again in ({}, {"threads": 2}, {"plain": True}, {"pace": 400}):
        replayed = doors.run(replay=result.injected, **again)
        assert (replayed.digest, replayed.events, replayed.injected) == (result.digest, result.events, result.injected)
    assert doors.run().digest != result.digest and doors.run(pace=400).digest == doors.run().digest
    assert doors.run().injected == []


@pdes.lp
class Listener:
    words: object = list

    def start(self, context):
        context.send_self(1, Word("tick"))

    def word(self, context, event: Word):
        self.words.append(event.said)

    def report(self, report):
        report.count("words", len(self.words))


def test_objects_come_from_outside_too():
    @pdes.model(end=2, lookahead=1)
    def listening(simulation):
        simulation.add(Listener, 1)

    with pytest.warns(pdes.SlowModelWarning):
        listening.run()
    outside = pdes.Outside()
    assert outside.inject(0, Word({"a": 1})) and outside.inject(0, Word([2]))
    result = listening.run(pace=100, outside=outside)
    assert [event.event.said for event in result.injected] == [{"a": 1}, [2]]
    again = listening.run(replay=result.injected)
    assert again.states(Listener)["words"][0] == result.states(Listener)["words"][0] and len(again.injected) == 2
    assert again.digest == result.digest


def test_no_two_objects_have_one_ticket():
    events = Events((records.EventType(Word, 0),))
    packed, before = [[] for _ in range(8)], sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=lambda own=own: own.extend(events.pack(Word(0))[1] for _ in range(3000)))
                   for own in packed]
        for step in (threading.Thread.start, threading.Thread.join):
            for thread in threads:
                step(thread)
    finally:
        sys.setswitchinterval(before)
    assert len({ticket for own in packed for ticket in own}) == 8 * 3000


def test_a_process_hears_what_comes_from_outside():
    from hmalloc_pdes.processes import Message, Processes

    @pdes.lp
    class Clerk(Processes):
        heard: int = 0

        def setup(self, env):
            env.process(self.listen(env))

        def listen(self, env):
            while True:
                self.heard += yield env.inbox.get()

        def report(self, report):
            report.count("heard", self.heard)

    @pdes.model(end=2)
    def clerk(simulation):
        simulation.add(Clerk, 1)

    outside = pdes.Outside()
    outside.inject(0, Message(5))
    result = clerk.run(pace=100, outside=outside)
    assert result.statistics["heard"].value == 5 and clerk.run(replay=result.injected).digest == result.digest


def test_what_cannot_come_from_outside_is_one_line():
    def said(call):
        with pytest.raises(pdes.Error) as error:
            call()
        return str(error.value)

    def given(*event, **options):
        outside = pdes.Outside()
        assert outside.inject(*event)
        return said(lambda: doors.run(outside=outside, **{"pace": 1e6} | options))

    assert given(6, Knock(1)) == "an event from outside is for LP 6, which does not exist"
    assert given(-1, Knock(1)) == "an event from outside is for LP -1, which does not exist"
    assert given(0, Knock(1), 64) == "an event from outside has a priority above 63"
    assert given(0, Tick(1)) == "Tick is no event of this model: no LP has a handler of it"
    assert given(0, Knock(1), pace=0) == "a run takes events from outside only if it keeps a pace"
    assert given(0, Knock(1), pace="x") == "option pace cannot be 'x'"
    assert given(0, Knock(1), colour=1).startswith("model doors has no parameter 'colour'")
    for event, about in ((pdes.Injected(1, 6, Knock(1)), "what is replayed is for LP 6, which does not exist"),
                         (pdes.Injected(1, -1, Knock(1)), "what is replayed is for LP -1, which does not exist"),
                         (pdes.Injected(-1, 0, Knock(1)), "what is replayed came from another model"),
                         (pdes.Injected(1, 0, Tick(1)), "Tick is no event of this model: no LP has a handler of it")):
        assert said(lambda event=event: doors.run(replay=[event])) == about
    outside, given_later = pdes.Outside(), []
    thread = threading.Thread(daemon=True, target=lambda: given_later.append(said(lambda: wrongly(outside))))

    def wrongly(outside):
        while outside.inject(0, Knock(1)):
            time.sleep(0.01)
            outside.inject(9, Knock(1))

    thread.start()
    assert doors.run(pace=100, outside=outside).stopped is False  # whoever gives nonsense hears of it, and not the run
    thread.join()
    assert given_later == ["an event from outside is for LP 9, which does not exist"]
    assert said(lambda: doors.run(pace=1, outside=outside)) == "an Outside is of one run"


def test_a_run_that_fails_tells_who_gives_to_it():
    @pdes.model(end=10, lookahead=0)
    def none(simulation):
        pass

    for model, options in ((none, {"pace": 1}), (doors, {"pace": 1, "colour": 1}), (doors, {"threads": 0, "pace": 1}), (doors, {"pace": "x"})):
        outside, given = pdes.Outside(), []
        thread = knocking(outside, given)
        with pytest.raises(pdes.Error):
            model.run(outside=outside, **options)
        thread.join(30)
        assert not thread.is_alive()


@pytest.mark.parametrize("plain", [False, True])
def test_ctrl_c_ends_a_paced_run_in_which_nothing_happens(plain):
    interrupted(f"""
from test_python import *
outside = pdes.Outside()
doors.run(end=1e9, pace=1e-3, outside=outside, plain={plain}, progress=lambda *at: print(flush=True))
""", lambda child: child.stdout.readline())


# ---- Checkpoints.

class Stop(Exception):
    pass


def stopped(model, file, **options):
    """Saves a run at its first progress, and leaves it there."""
    def stop(*_):
        raise Stop

    with pytest.raises(pdes.Error) as error:
        model.run(checkpoint=file, interval=1e-9, progress=stop, **options)
    assert isinstance(error.value.__cause__, Stop)


LONG = {phold: {"end": 100, "lps": 1000}, airport: {"end": 20000, "width": 8, "height": 6, "planes": 9}, arq: {"precision": 0.01}, everything: {"end": 20000}, observed: {"end": 20000}, sleepers: {"end": 20000}}


@pytest.mark.parametrize("model", LONG, ids=lambda model: model.__name__)
@pytest.mark.parametrize("before, after", [(1, 2), (2, 1), (3, 2)])
def test_a_run_that_goes_on_comes_to_what_it_would_have(tmp_path, model, before, after):
    file, whole = tmp_path / "a run\\1.save", model.run(**LONG[model])
    stopped(model, file, threads=before, **LONG[model])
    result = model.run(resume=file, threads=after, **LONG[model])
    assert (result.digest, result.statistics, result.events) == (whole.digest, whole.statistics, whole.events)
    assert result.events_by_type == whole.events_by_type and 0 < result.events_before < whole.events and not result.checkpoints
    for lp, *_ in result.finals.items():
        for (_, ended), (_, expected) in zip(result.finals[lp], whole.finals[lp]):
            assert all(np.array_equal(ended[name], expected[name]) for name in expected)
    assert file.exists()


def test_a_run_is_saved_as_often_as_asked(tmp_path):
    file = tmp_path / "save"
    result = phold.run(checkpoint=str(file), checkpoint_every=0.001, threads=2, **LONG[phold])
    assert result.checkpoints > 0 and phold.run(resume=str(file), **LONG[phold]).digest == result.digest


def test_ctrl_c_saves_a_run(tmp_path):
    interrupted(f"from models import phold\nphold.run(end=1e9, checkpoint={str(tmp_path / 'save')!r}, "
                "progress=lambda *at: print(*at, flush=True))", lambda child: child.stdout.readline())
    assert (tmp_path / "save").exists()


def test_a_checkpoint_that_cannot_be_written_is_a_warning(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()

    def remove(*_):
        if folder.exists():
            folder.rmdir()

    with pytest.warns(RuntimeWarning, match="^no checkpoint at time .*: .*No such file or directory"):
        phold.run(checkpoint=folder / "save", checkpoint_every=0.001, interval=1e-9, progress=remove, **LONG[phold])


def test_checkpoints_that_cannot_be(tmp_path):
    class Other:
        events: int
        remote: float
        average: float = 1.0

        start = Node.start

        def hop(self, context, event: Hop):
            pass

        def delay(self, context):
            return 1.0

    def renamed(simulation, lps=1000, events_per_lp=1, remote=0.25, mean=1.0):
        simulation.add(pdes.lp(_named("Node", Other)), lps, events=events_per_lp, remote=remote)

    def said(model=phold, **options):
        with pytest.raises(pdes.Error) as error:
            model.run(**LONG[phold] | {"resume": tmp_path / "save"} | options)
        return str(error.value).removeprefix(f"{tmp_path}/")

    stopped(phold, tmp_path / "save", **LONG[phold])
    name = "phold(lps=1000, events_per_lp=1, remote=0.25, mean=1.0) with fields "
    assert said(mean=2.0).startswith(f"save is of another simulation: of '{name}")
    assert said(seed=2) == "save is of another simulation: its seed is 1, not 2"
    assert said(pdes.model(end=1, lookahead=0.1)(_named("phold", renamed))).startswith(f"save is of another simulation: of '{name}")
    assert said(checkpoint_every=1) == "checkpoints need a file"
    assert said(checkpoint_every="x") == "option checkpoint-every cannot be 'x'"
    assert said(plain=True) == "LPs of class Node cannot be saved: they run as plain Python"
    assert said(plain=True, resume=None, checkpoint=tmp_path / "new") == "LPs of class Node cannot be saved: they run as plain Python"
    assert said(replay=[pdes.Injected(1, 0, Hop(1))]) == "events are replayed from the beginning, not from a checkpoint"
    assert said(resume=tmp_path / "none") == "none cannot be read: No such file or directory"
    (tmp_path / "save").write_bytes((tmp_path / "save").read_bytes()[:-9])
    assert said().startswith("save is ")
    with pytest.raises(pdes.Error, match="^model phold has no parameter 'checkpoint', nor is that an option of the engine$"):
        pdes.sweep(phold, {"seed": [1, 2]}, checkpoint=tmp_path / "save")


def test_options_follow_from_parameters():
    @pdes.model(end=20, lookahead=lambda mean: mean / 4)
    def hops(simulation, lps=20, mean=1.0):
        simulation.add(Node, lps, events=1, remote=0.5, mean=mean)

    assert [hops.run(**given).options["lookahead"] for given in ({}, {"mean": 2.0}, {"lookahead": 0.1})] == [0.25, 0.5, 0.1]
    assert hops.run(mean=2.0).digest == hops.run(mean=2.0, lookahead=0.5).digest != hops.run(mean=2.0, lookahead=0.25).digest
    frame = pdes.sweep(hops, {"mean": [1.0, 2.0]}, progress=False)
    assert [*frame["lookahead"]] == [0.25, 0.5]
    with pytest.raises(pdes.Error, match="^model hops: lookahead follows from reach, which is no parameter$"):
        pdes.model(end=1, lookahead=lambda reach: reach)(hops.__wrapped__)


def test_classes_and_models_that_cannot_be():
    with pytest.raises(pdes.Error, match="^Idle does nothing"):
        pdes.lp(type("Idle", (), {}))

    class Twice:
        def one(self, context, event: Tick):
            pass

        def two(self, context, event: Tick):
            pass

    with pytest.raises(pdes.Error, match="^Twice has two handlers of Tick: one, two$"):
        pdes.lp(Twice)
    with pytest.raises(pdes.Error, match="^model m: parameter seed has the name of an option"):
        pdes.model(_named("m", lambda simulation, seed=1: None))
    with pytest.raises(pdes.Error, match="^model m: parameter outside has the name of an option"):
        pdes.model(_named("m", lambda simulation, outside=1: None))
    with pytest.raises(pdes.Error, match="^model m: parameter x has no default$"):
        pdes.model(_named("m", lambda simulation, x: None))

    def run_one(lp, **values):
        pdes.model(end=1)(_named("m", lambda simulation: simulation.add(lp, 1, **values))).run()

    for lp, values, said in ((int, {}, "int is no class of LPs"), (Node, {"n": 1}, "Node has no field 'n'"),
                             (Node, {"events": 1, "mean": 1}, "Node needs a value of 'remote'")):
        with pytest.raises(pdes.Error, match=f"^{said}"):
            run_one(lp, **values)


def _named(name, function):
    function.__name__ = name
    return function


def interrupted(text, begun):
    """What a program says that gets a Ctrl-C when it has begun, and ends of it."""
    listens = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # if tests run in the background
    child = subprocess.Popen([sys.executable, "-B", "-c", listens + text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        begun(child)
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=60)
    finally:
        child.kill()
    assert child.returncode == -signal.SIGINT and said.splitlines()[-1] == "KeyboardInterrupt"


@pytest.mark.parametrize("plain", [False, True])
def test_ctrl_c_ends_a_run(plain):
    interrupted(f"from models import phold\nphold.run(end=1e9, plain={plain}, progress=lambda *at: print(*at, flush=True))",
                lambda child: child.stdout.readline())


def test_ctrl_c_ends_a_sweep_and_leaves_what_is_done(tmp_path):
    file = tmp_path / "sweep.csv"

    def first_is_done(child):
        while not file.exists() and child.poll() is None:
            time.sleep(0.01)

    interrupted("import hmalloc_pdes as pdes\nfrom models import phold\n"
                f"pdes.sweep(phold, {{'end': [5, 1e9]}}, processes=1, file={str(file)!r})", first_is_done)
    assert [*pandas.read_csv(file)["end"]] == [5]


# ---- Sweeps.

GRID = {"remote": [0.1, 0.5], "seed": [1, 2, 3]}
TINY = {"lps": 50, "end": 5}


def test_a_sweep_is_its_runs():
    frame = pdes.sweep(phold, GRID, processes=2, progress=False, **TINY)
    assert len(frame) == 6 and [*frame["remote"]] == [0.1] * 3 + [0.5] * 3
    for _, row in frame.iterrows():
        assert row["digest"] == f"{phold.run(remote=row['remote'], seed=row['seed'], **TINY).digest:#018x}"


@pytest.mark.filterwarnings("error:.*(float_precision|fill value)")  # which pandas will no longer take
def test_a_sweep_goes_on_where_it_was_left(tmp_path, monkeypatch):
    file = tmp_path / "sweep.csv"
    pdes.sweep(phold, GRID | {"seed": [1, 3]}, file=file, progress=False, **TINY)
    kept = file.read_text().splitlines()
    whole = pdes.sweep(phold, GRID, file=file, processes=2, progress=False, **TINY)
    assert len(whole) == 6 and set(kept) < set(file.read_text().splitlines())  # times and all: they were not run again
    monkeypatch.setattr(type(phold), "run", None)
    again = pdes.sweep(phold, GRID, file=file, progress=False, **TINY)
    assert (again["digest"] == whole["digest"]).all()


def test_a_run_of_a_sweep_that_fails_is_tried_again(tmp_path):
    file = tmp_path / "sweep.csv"
    frame = pdes.sweep(faulty, {"fault": [0, 8]}, file=file, progress=False)
    assert [*frame["error"]] == ["", "LP 0 (Faulty) failed at time 1: ValueError: bad luck"]
    assert {*pandas.read_csv(file)["fault"]} == {0, 8}
    file.write_text(file.read_text().replace("bad luck", "of another day"))
    tried = pdes.sweep(faulty, {"fault": [8]}, file=file, progress=False)
    assert [*tried["error"]] == [*frame["error"][1:]]


@pytest.mark.parametrize("call, said", [
    (lambda file: pdes.sweep(phold, {"far": [1]}, file=file), "model phold has no parameter 'far'"),
    (lambda file: pdes.sweep(phold, {"seed": []}, file=file), "there is nothing to run"),
    (lambda file: pdes.sweep(airport, {"width": [4]}, file=file), "is of another sweep: it has no column 'width'")])
def test_sweeps_that_cannot_be(tmp_path, call, said):
    file = tmp_path / "sweep.csv"
    file.write_text("remote,digest,error\n0.1,0x1,\n")
    with pytest.raises(pdes.Error, match=re.escape(said)):
        call(file)


def test_parquet_and_arrow(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    file = tmp_path / "sweep.parquet"
    whole = pdes.sweep(phold, GRID, file=file, progress=False, **TINY)
    result = airport.run(**SMALL["airport"])
    table = result.arrow()
    assert phold.run(**SMALL["phold"]).arrow().num_rows == 0 and table.num_rows == 5
    assert dict(zip(table["statistic"].to_pylist(), table["value"].to_pylist())) == {
        name: statistic.value for name, statistic in result.statistics.items()}
    assert table.schema.field("count").type == "int64" and table["mean"].null_count == 3
    in_file, order = pandas.read_parquet(file), ["remote", "seed"]  # there in the order in which they were done
    pandas.testing.assert_frame_equal(in_file.sort_values(order, ignore_index=True), whole.assign(error="").sort_values(
        order, ignore_index=True), check_dtype=False)
    monkeypatch.setattr(type(phold), "run", None)
    assert (pdes.sweep(phold, GRID, file=file, progress=False, **TINY)["digest"] == whole["digest"]).all()


def test_plot(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    frame = pdes.sweep(phold, GRID, progress=False, **TINY)
    axes = pdes.plot(frame, "remote", "events")
    [line] = axes.get_lines()
    assert [*line.get_ydata()] == [*frame.groupby("remote")["events"].mean()] and axes.collections
    assert len(pdes.plot(frame, "seed", "events", by="remote").get_lines()) == 2
