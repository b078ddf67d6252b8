"""Models in Python: the answers of those in C++, what a class can have, plain Python, errors of one line."""

import ctypes
import json
import os
import subprocess
from pathlib import Path
from typing import NamedTuple

import hmalloc_pdes as pdes
import numpy as np
import pytest
from conftest import SMALL, Everything, Faulty, Nothing, Tick, everything, faulty, named
from models import Node, airport, arq, phold

PROGRAMS = Path(os.environ["HM_PDES_PROGRAMS"])
MODELS = {"phold": phold, "airport": airport, "arq": arq}


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
    {"threads": 2}, {"threads": 2, "sync": "neighbours"}, {"threads": 2, "balance_by": "events"}, {"allocator": "free-list"}, {"plain": True}, {"plain": True, "threads": 2}])
def test_how_it_is_run_changes_no_answer(name, options):
    assert MODELS[name].run(**SMALL[name], **options).digest == MODELS[name].run(**SMALL[name]).digest


def test_what_is_asked_changes_the_answer():
    answers = {phold.run(**SMALL["phold"] | other).digest for other in ({}, {"seed": 2}, {"remote": 0.3}, {"generator": "philox"})}
    assert len(answers) == 4


def test_machine_code_and_plain_python_are_the_same_whatever_a_model_uses():
    fast, plain = everything.run(), everything.run(plain=True)
    assert (fast.digest, fast.statistics) == (plain.digest, plain.statistics)
    assert fast.statistics["times"].count > 50 and fast.events_by_type == plain.events_by_type
    states, others = fast.states(Everything), plain.states(Everything)
    assert [*states.columns] == [*others.columns]
    for name in states:
        assert [np.ravel(value).tolist() for value in states[name]] == [np.ravel(value).tolist() for value in others[name]], name
    assert everything.run(threads=2, end=5).digest == everything.run(plain=True, end=5).digest


@pdes.lp
class Narrow:
    one: np.uint8 = 1
    two: np.uint32 = 2
    tenth: np.float32 = 0.1
    difference: float = 0.0
    product: float = 0.0

    def start(self, context):
        self.difference = self.one - self.two
        self.product = self.tenth * self.tenth


@pytest.mark.parametrize("plain", [False, True])
def test_numbers_are_narrow_only_in_memory(plain):
    @pdes.model(end=1)
    def narrow(simulation):
        simulation.add(Narrow, 1)

    [state] = narrow.run(plain=plain).states(Narrow).to_dict("records")
    assert (state["difference"], state["product"]) == (-1, float(np.float32(0.1)) ** 2)


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

@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("fault, said", enumerate([
    r"LP 0 \(Faulty\), at time 1 on Tick from LP 0, sends Tick to LP 1 with delay -1: a delay must be 0 or more",
    r"LP 0 \(Faulty\), at time 1 on Tick from LP 0, sends Tick to LP 99: there are only 2 LPs",
    r"LP 0 \(Faulty\), at time 1 on Tick from LP 0, sends Tick to LP -1: there are only 2 LPs",
    r"lookahead violation: LP 0 \(Faulty\), at time 1 on Tick from LP 0, sends .* the delay 0.1 is below the lookahead 0.5",
    r"LP 0 \(Faulty\), at time 1 on Tick from LP 0, sends with priority 64: the last is 63",
    r"LP 0 \(Faulty\), at time 1 on Tick from LP 0, draws an integer below 0",
    r"LP 0 \(Faulty\), at time 1 on Tick from LP 0, has no random stream 3",
    r"LP 0 \(Faulty\), at time 1 on Tick from LP 0, failed: ValueError: bad luck",
    r"LP 0 \(Faulty\), at time 1 on Tick from LP 0, failed: ZeroDivisionError: division by zero",
    r"LP 0 \(Faulty\), at time 1 on Tick from LP 0, failed: IndexError: index.* is out of bounds.*",
    r"LP 0 \(Faulty\), at the end: statistic 'n': inf is not a finite number",
    r"LP 0 \(Faulty\), at time 1 on Tick from LP 0, sends Tick to LP 1 for time inf: a time must be finite",
    r"LP 0 \(Faulty\), at time 1 on Tick from LP 0, sends Tick to LP 0 for time inf: a time must be finite",
    r"LP 0 \(Faulty\), at time 1 on Tick from LP 0, ends the run after inf: a time must be finite",
    r"LP 0 \(Faulty\), at time 1 on Tick from LP 0, failed: ValueError: bad luck",
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

    for plain, where in (False, "Lost"), (True, r"LP 0 \(Lost\), at its start, failed"):
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
        pdes.model(named("m", lambda simulation, seed=1: None))
    with pytest.raises(pdes.Error, match="^model m: parameter outside has the name of an option"):
        pdes.model(named("m", lambda simulation, outside=1: None))
    with pytest.raises(pdes.Error, match="^model m: parameter x has no default$"):
        pdes.model(named("m", lambda simulation, x: None))

    def run_one(lp, **values):
        pdes.model(end=1)(named("m", lambda simulation: simulation.add(lp, 1, **values))).run()

    for lp, values, said in ((int, {}, "int is no class of LPs"), (Node, {"n": 1}, "Node has no field 'n'"),
                             (Node, {"events": 1, "mean": 1}, "Node needs a value of 'remote'")):
        with pytest.raises(pdes.Error, match=f"^{said}"):
            run_one(lp, **values)
