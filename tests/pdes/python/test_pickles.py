"""Checkpoints of what runs as plain Python."""

import dataclasses
import threading
from collections import deque
from typing import NamedTuple

import hmalloc_pdes as pdes
import numpy as np
import pytest
from conftest import Tick, everything, observed, sleepers
from hmalloc_pdes import members
from hmalloc_pdes.processes import Processes
from models import airport, phold
from test_outside import LONG, Stop, stopped


@dataclasses.dataclass
class Machine:
    """Which its workshop's list and the event of its repair both refer to."""

    name: str
    repairs: int = 0
    broken: bool = False


class Repaired(NamedTuple):
    machine: object


class Word(NamedTuple):
    said: object


@pdes.cancellable
class Late(NamedTuple):
    machine: object


@pdes.lp(streams=1)
class Workshop:
    plain_python = True  # for objects
    machines: object
    first: int = 0  # of all of them
    waiting: object = deque
    heard: object = dict
    places: pdes.Array(float, 2)
    alarm: pdes.Timer
    spread: pdes.Histogram
    lengths: pdes.Tally
    choose: object = None
    late: int = 0

    def start(self, context):
        self.machines = [Machine(f"{context.id}.{i}") for i in range(3)]
        self.choose = self.next_one  # a state that refers to itself
        context.send_self(context.exponential(1.0), Tick(0))

    def next_one(self, number):
        return self.machines[number % len(self.machines)]

    def tick(self, context, event: Tick):
        machine = self.choose(context.integer(3))
        if not machine.broken:
            machine.broken = True
            context.send_self(context.exponential(2.0, stream=1), Repaired(machine))
            context.set(self.alarm, context.exponential(2.0), Late(machine))
        elif context.chance(0.2):
            self.alarm.cancel()
        self.waiting.append(event.n)
        self.places[event.n % 2] += 1
        self.lengths.add(len(self.waiting))
        context.send_self(context.exponential(1.0), Tick(event.n + 1))
        other = self.first + context.integer(context.lp_count - self.first)
        context.send(other, 0.5 + context.exponential(3.0), Word([machine.name, machine.repairs]))

    def repaired(self, context, event: Repaired):
        event.machine.broken = False  # of the list, too
        event.machine.repairs += 1
        self.spread.add(event.machine.repairs)
        if self.waiting:
            self.waiting.popleft()

    def is_late(self, context, event: Late):
        self.late += 1
        event.machine.repairs += 10

    def word(self, context, event: Word):
        name, repairs = event.said
        self.heard[name] = self.heard.get(name, 0) + repairs

    def report(self, report):
        report.count("late", self.late)
        report.count("heard", sum(self.heard.values()))
        report.count("repairs", sum(machine.repairs for machine in self.machines))
        report.tally("lengths", self.lengths)
        report.histogram("spread", self.spread)


@pdes.model(end=300, lookahead=0.5)
def workshops(simulation, shops=5):
    simulation.add(Workshop, shops, machines=None)


PLAIN = {workshops: {}, everything: {"end": 2000}, observed: {"end": 1000}, sleepers: {"end": 1000},
         phold: {"end": 20, "lps": 300}, airport: {"end": 500, "width": 8, "height": 6, "planes": 9}}


def same(one, other):
    return vars(one) == vars(other) if isinstance(one, members.Observed) else np.array_equal(one, other)


@pytest.mark.parametrize("model", PLAIN, ids=lambda model: model.__name__)
@pytest.mark.parametrize("before, after", [(1, 2), (3, 1)])
def test_a_run_that_goes_on_comes_to_what_it_would_have(tmp_path, model, before, after):
    file, options = tmp_path / "save", PLAIN[model] | {"plain": True}
    whole = model.run(**options)
    stopped(model, file, threads=before, **options)
    result = model.run(resume=file, threads=after, **options)
    assert (result.digest, result.statistics, result.events) == (whole.digest, whole.statistics, whole.events)
    assert result.cancelled == whole.cancelled and 0 < result.events_before < whole.events
    for lp, groups in result.finals.items():
        for (_, ended), (_, expected) in zip(groups, whole.finals[lp]):
            for name in expected.keys() - {"choose"}:
                assert all(same(*pair) for pair in zip(ended[name], expected[name], strict=True))


@pdes.lp
class Counter:
    n: int = 0

    def start(self, context):
        context.send_self(context.uniform(), Tick(0))

    def tick(self, context, event: Tick):
        self.n += event.n
        context.send_self(context.uniform(), Tick(event.n + 1))


def test_compiled_classes_beside_plain_ones(tmp_path):
    @pdes.model(end=300, lookahead=0.5)
    def both(simulation):
        simulation.add(Counter, 3)
        simulation.add(Workshop, 5, machines=None, first=3)

    stopped(both, tmp_path / "save", threads=2)
    assert both.run(resume=tmp_path / "save").digest == both.run().digest


def test_a_plain_run_is_saved_as_often_as_asked(tmp_path):
    result = workshops.run(checkpoint=tmp_path / "save", checkpoint_every=0.001, threads=2)
    assert result.checkpoints > 1 and workshops.run(resume=tmp_path / "save").digest == result.digest


def test_what_is_saved_is_what_is_on_its_way(tmp_path):
    """Neither what would come beyond the end, nor what was cancelled."""
    @pdes.lp
    class Sender:
        plain_python = True
        alarm: pdes.Timer

        def start(self, context):
            context.send_self(1, Tick(0))

        def tick(self, context, event: Tick):
            context.send_self(1e6, Word(f"beyond the end {event.n}"))
            context.set(self.alarm, 1e3, Late(f"set anew {event.n}"))
            context.send_self(1, Tick(event.n + 1))

        def word(self, context, event: Word):
            pass

        def is_late(self, context, event: Late):
            pass

    @pdes.model(end=10000)
    def senders(simulation):
        simulation.add(Sender, 1)

    stopped(senders, tmp_path / "save")
    saved = (tmp_path / "save").read_bytes()
    assert (saved.count(b"beyond the end"), saved.count(b"set anew")) == (0, 1)


@pdes.lp
class Holder:
    plain_python = True
    what: object = None
    sent: object = None

    def start(self, context):
        context.send_self(1, Word(self.sent))
        self.sent = None

    def word(self, context, event: Word):
        context.send_self(0.001, event)


LOCK, GENERATOR = threading.Lock(), (i for i in ())


@pytest.mark.parametrize("what, sent, about", [
    (LOCK, None, "Holder.what of LP 2: TypeError: cannot pickle '_thread.lock' object"),
    (1, GENERATOR, "event Word: TypeError: cannot pickle 'generator' object"),
])
def test_what_cannot_be_pickled_is_a_warning(tmp_path, what, sent, about):
    @pdes.model(end=20, lookahead=0.001)
    def holding(simulation):
        simulation.add(Holder, 2)
        simulation.add(Holder, 1, what=what, sent=sent)

    with pytest.warns(RuntimeWarning, match=f"^no checkpoint at time .*: an LP cannot be saved: {about}$"):
        result = holding.run(checkpoint=tmp_path / "save", checkpoint_every=0.001)
    assert result.digest == holding.run().digest


def test_plain_checkpoints_that_cannot_be(tmp_path, monkeypatch):
    file = tmp_path / "save"

    def said(model=workshops, **options):
        with pytest.raises(pdes.Error) as error:
            model.run(**{"resume": file} | options)
        assert "\n" not in str(error.value)
        return str(error.value).removeprefix(f"{tmp_path}/")

    stopped(phold, file, plain=True, **LONG[phold])
    assert said(phold, **LONG[phold]) == "save is of another simulation: its plain Python is Node, not none"
    stopped(phold, file, **LONG[phold])
    assert said(phold, plain=True, **LONG[phold]) == "save is of another simulation: its plain Python is none, not Node"

    stopped(workshops, file)
    whole = file.read_bytes()
    file.write_bytes(whole[:-9])
    assert said() == "save is damaged: it ends early"
    file.write_bytes(whole.replace(b"repairs", b"rePairs"))
    assert said() == "save is damaged: a checksum is wrong"
    file.write_bytes(whole)
    monkeypatch.delattr(f"{__name__}.Machine")
    assert said().startswith("save cannot be resumed: AttributeError: Can't get attribute 'Machine' on <module")


def test_processes_are_not_saved(tmp_path):
    @pdes.lp
    class Clerk(Processes):
        def setup(self, env):
            raise AssertionError("it has begun")

    @pdes.model(end=1)
    def clerk(simulation):
        simulation.add(Clerk, 1)

    for option in ("checkpoint", "resume"):
        with pytest.raises(pdes.Error, match="^LPs of class Clerk cannot be saved: their processes are generators, "
                                             "which cannot be pickled$"):
            clerk.run(**{option: tmp_path / "save"})


@pdes.lp
class Listener:
    plain_python = True
    words: object = list

    def start(self, context):
        context.send_self(1, Tick(0))

    def tick(self, context, event: Tick):
        context.send_self(1, event)

    def word(self, context, event: Word):
        self.words.append(event.said)
        context.send_self(5, event)


def test_what_came_from_outside_is_not_mistaken_for_what_comes_after(tmp_path):
    @pdes.model(end=100)
    def listening(simulation):
        simulation.add(Listener, 1)

    outside, later = pdes.Outside(), pdes.Outside()
    outside.inject(0, Word("before"))
    later.inject(0, Word("after"))

    def stop(_, now, *more):
        if now > 20:
            raise Stop

    with pytest.raises(pdes.Error):
        listening.run(pace=1000, outside=outside, checkpoint=tmp_path / "save", interval=1e-9, progress=stop)
    [words] = listening.run(pace=1000, outside=later, resume=tmp_path / "save").states(Listener)["words"]
    assert words.count("before") > 10 and words.count("after") > 10
