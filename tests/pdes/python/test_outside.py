"""A run beside real time, with events from outside; one that Ctrl-C ends; and one that goes on from a checkpoint."""

import os
import signal
import subprocess
import sys
import threading
import time
from typing import NamedTuple

import hmalloc_pdes as pdes
import numpy as np
import pandas
import pytest
from conftest import Nothing, Tick, everything, named, observed, sleepers
from hmalloc_pdes import records
from hmalloc_pdes.slow import Events
from models import Hop, Node, airport, arq, phold


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
    outside, given_later, begun = pdes.Outside(), [], threading.Event()
    thread = threading.Thread(daemon=True, target=lambda: given_later.append(said(lambda: wrongly(outside))))

    def wrongly(outside):
        begun.wait()
        while outside.inject(0, Knock(1)):
            time.sleep(0.01)
            outside.inject(9, Knock(1))

    thread.start()
    told = {"interval": 0.001, "progress": lambda *at: begun.set()}
    assert doors.run(pace=100, outside=outside, **told).stopped is False  # whoever gives nonsense hears of it, and not the run
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


# ---- Ctrl-C.

def interrupted(text, begun):
    """What a program says that gets a Ctrl-C when it has begun, and ends of it."""
    listens = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # if tests run in the background
    child = subprocess.Popen([sys.executable, "-B", "-c", listens + text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        begun(child)
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=300)
    finally:
        child.kill()
    assert child.returncode == -signal.SIGINT and said.splitlines()[-1] == "KeyboardInterrupt"


@pytest.mark.parametrize("plain", [False, True])
def test_ctrl_c_ends_a_run(plain):
    interrupted(f"from models import phold\nphold.run(end=1e9, plain={plain}, progress=lambda *at: print(*at, flush=True))",
                lambda child: child.stdout.readline())


@pytest.mark.parametrize("plain", [False, True])
def test_ctrl_c_ends_a_paced_run_in_which_nothing_happens(plain):
    interrupted(f"""
from test_outside import *
outside = pdes.Outside()
doors.run(end=1e9, pace=1e-3, outside=outside, plain={plain}, progress=lambda *at: print(flush=True))
""", lambda child: child.stdout.readline())


@pytest.mark.parametrize("plain", [False, True])
def test_ctrl_c_saves_a_run(tmp_path, plain):
    interrupted(f"from models import phold\nphold.run(end=1e9, plain={plain}, checkpoint={str(tmp_path / 'save')!r}, "
                "progress=lambda *at: print(*at, flush=True))", lambda child: child.stdout.readline())
    assert (tmp_path / "save").exists()


def test_ctrl_c_ends_a_sweep_and_leaves_what_is_done(tmp_path):
    file = tmp_path / "sweep.csv"

    def first_is_done(child):
        while not file.exists() and child.poll() is None:
            time.sleep(0.01)

    interrupted("import hmalloc_pdes as pdes\nfrom models import phold\n"
                f"pdes.sweep(phold, {{'end': [5, 1e9]}}, processes=1, file={str(file)!r})", first_is_done)
    assert [*pandas.read_csv(file)["end"]] == [5]


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


LONG = {phold: {"end": 100, "lps": 1000}, airport: {"end": 20000, "width": 8, "height": 6, "planes": 9},
        arq: {"precision": 0.01}, everything: {"end": 20000}, observed: {"end": 20000}, sleepers: {"end": 20000}}


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


def test_a_checkpoint_that_cannot_be_written_is_a_warning(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()

    def remove(*_):
        if folder.exists():
            folder.rmdir()

    with pytest.warns(RuntimeWarning, match="^no checkpoint at time .*: .*No such file or directory"):
        phold.run(checkpoint=folder / "save", checkpoint_every=0.001, interval=1e-9, progress=remove, **LONG[phold])


def test_a_set_is_the_same_parameter_in_every_process():
    """Where its order differs."""
    program = """from hmalloc_pdes import checkpoints
from models import phold
run, _, _ = phold.prepare(lps=2, plain=True)
print(checkpoints.options(run, "roads", {"open": {"north", "east", "south", "west"}}, resume="save"))"""
    said = {subprocess.run([sys.executable, "-c", program], check=True, text=True, capture_output=True,
                           env=os.environ | {"PYTHONHASHSEED": seed}).stdout for seed in "12345"}
    assert len(said) == 1 and "{'east', 'north', 'south', 'west'}" in said.pop()


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
        simulation.add(pdes.lp(named("Node", Other)), lps, events=events_per_lp, remote=remote)

    def said(model=phold, **options):
        with pytest.raises(pdes.Error) as error:
            model.run(**LONG[phold] | {"resume": tmp_path / "save"} | options)
        return str(error.value).removeprefix(f"{tmp_path}/")

    stopped(phold, tmp_path / "save", **LONG[phold])
    assert said(mean=2.0) == "save is of another simulation: its mean is 1.0, not 2.0"
    assert said(seed=2) == "save is of another simulation: its seed is 1, not 2"
    other_fields = pdes.model(end=1, lookahead=0.1)(named("phold", renamed))
    assert said(other_fields).startswith("save is of another simulation: its layout is ")
    other_name = pdes.model(end=1, lookahead=0.1)(named("hold", renamed))
    assert said(other_name) == "save is of another simulation: of 'phold', not 'hold'"
    assert said(checkpoint_every=1) == "checkpoints need a file"
    assert said(checkpoint_every="x") == "option checkpoint-every cannot be 'x'"
    assert said(replay=[pdes.Injected(1, 0, Hop(1))]) == "events are replayed from the beginning, not from a checkpoint"
    assert said(resume=tmp_path / "none") == "none cannot be read: No such file or directory"
    (tmp_path / "save").write_bytes((tmp_path / "save").read_bytes()[:-9])
    assert said().startswith("save is ")
    with pytest.raises(pdes.Error, match="^model phold has no parameter 'checkpoint', nor is that an option of the engine$"):
        pdes.sweep(phold, {"seed": [1, 2]}, checkpoint=tmp_path / "save")


def test_a_model_whose_events_have_other_fields_is_another(tmp_path):
    def counting(number):
        class Count(NamedTuple):
            n: number

        @pdes.lp
        class Counter:
            def start(self, context):
                context.send_self(1, Count(0))

            def count(self, context, event: Count):
                context.send_self(1, Count(event.n + 1))

        @pdes.model(end=20000)
        def counters(simulation):
            simulation.add(Counter, 3)

        return counters

    stopped(counting(int), tmp_path / "save")
    counting(int).run(resume=tmp_path / "save")
    with pytest.raises(pdes.Error, match="save is of another simulation: its layout is"):
        counting(float).run(resume=tmp_path / "save")
