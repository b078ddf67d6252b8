"""What LPs observe, timers, the end of a run, and the frames of its result."""

import re

import hmalloc_pdes as pdes
import numpy as np
import pandas
import pytest
from conftest import SMALL, Alarm, Observer, Sleeper, Tick, named, observed, sleepers
from models import Airport, airport, phold


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
        return pdes.model(end=5, lookahead=0.1)(named("m", lambda simulation: simulation.add(Observer, 2, **values)))

    assert said(built()) == "Observer needs a value of 'means'"
    assert said(built(means=0)) == "Observer.means cannot be 0 for 2 LPs: a batch needs at least one observation"
    assert said(built(means="x")).startswith("Observer.means cannot be 'x' for 2 LPs: ")
    assert said(built(means=1, spread=1)) == "Observer.spread takes no value"
    assert said(built(means=1, present="x")).startswith("Observer.present cannot be 'x' for 2 LPs: ")
    assert re.match(r"Observer\.present cannot be (\[1, 2, 3\]|3 values) for 2 LPs", said(built(means=1, present=[1, 2, 3])))


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

    for plain, where in (False, "Wrong"), (True, r"LP 0 \(Wrong\), at its start, failed"):
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
    many = airport.run(**SMALL["airport"], threads=2, gather="off")
    assert f"\n2 threads, {many.windows:,} windows of {many.events / many.windows:,.1f} events\n" in str(many)
    assert "windows" not in str(result)
    gathered = airport.run(**SMALL["airport"], threads=2, gather="always")
    assert gathered.gathered == gathered.windows and gathered.digest == many.digest and many.gathered == 0
    assert f" events; one thread executed {gathered.windows:,} for all\n" in str(gathered)
    assert ("\nthat is little for 2 threads" in str(many)) == (many.events / many.windows < 40)
    assert frame.loc["departures", "value"] == result.statistics["departures"].value and frame["value"].notna().all()
    assert frame.loc["departures", ["sum", "mean", "least", "most"]].isna().all()  # it has none
    states = result.states(Airport)
    assert states["departures"].sum() == frame.loc["departures", "count"]
    assert states["waiting.count"].sum() == frame.loc["waiting", "count"] and states.index.name == "lp"
    assert (states["average.count"] == (states["waiting.count"] > 0)).all()  # which the report itself has changed
    seen = []
    history = phold.run(lps=1000, end=300, interval=0.001, progress=lambda *at: seen.append(at)).history()
    assert history["events"].is_monotonic_increasing and len(history) == len(seen) > 0
