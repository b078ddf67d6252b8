"""LPs that come and go: as in C++, whichever way they are run."""

import math
import re
from typing import NamedTuple

import hmalloc_pdes as pdes
import pandas
import pytest
from colonies import Cell, Colony, colonies
from conftest import named
from hmalloc_pdes.processes import Message, Processes
from test_outside import stopped
from test_python import in_cxx

SMALL = {"colonies": 30, "room": 20}
WAYS = [{"threads": 2}, {"threads": 2, "sync": "neighbours"}, {"plain": True}, {"plain": True, "threads": 2}]


@pytest.mark.parametrize("options", [{}, {"seed": 7}, {"generator": "philox"}, {"ties": "hashed"}])
def test_colonies_have_the_digest_of_those_in_cxx(options):
    expected, result = in_cxx("colonies", **SMALL, **options), colonies.run(**SMALL, **options)
    assert f"{result.digest:#018x}" == expected["digest"]
    for name in ("events", "made", "ended", "undelivered"):
        assert getattr(result, name) == expected[name]
    assert result.ended > 1000 and {name: result.statistics[name].value for name in ("cells", "divisions", "refused")} == {
        name: expected["statistics"][name] for name in ("cells", "divisions", "refused")}
    life = expected["statistics"]["life"]
    assert {part: getattr(result.statistics["life"], part) for part in life} == life
    assert result.statistics["life"].count == result.ended  # each has said it once


def same(result, expected, *lps):
    def numbers(of):
        return of.digest, of.statistics, of.events_by_type, of.made, of.ended, of.undelivered

    assert numbers(result) == numbers(expected)
    for lp in lps:
        pandas.testing.assert_frame_equal(result.states(lp), expected.states(lp))


@pytest.mark.parametrize("options", WAYS)
def test_how_colonies_are_run_changes_nothing(options):
    same(colonies.run(**SMALL, **options), colonies.run(**SMALL), Cell, Colony)


# ---- What an LP can have, if it comes and goes.

class Next(NamedTuple):
    pass


@pdes.makes
class Enters(NamedTuple):
    door: int


@pdes.cancellable
class Impatient(NamedTuple):
    pass


class Word(NamedTuple):
    said: float


class Left(NamedTuple):
    who: int


@pdes.lp
class Door:
    seats: pdes.Vacancies
    nobody: pdes.Vacancies
    first: int
    refused: int = 0
    waiting: pdes.Histogram

    def start(self, context):
        if self.seats.take() != -1:
            raise ValueError("there were none")
        self.seats.set(self.first, 10)
        context.send_self(context.exponential(0.3), Next())

    def on_next(self, context, event: Next):
        seat = self.seats.take()
        if seat >= 0:
            context.send(seat, 0.5, Enters(context.id))
        else:
            self.refused += 1
        if self.nobody.take() != -1:
            raise ValueError("these are others")
        context.send_self(context.exponential(0.3), Next())

    def on_left(self, context, event: Left):
        self.seats.give_back(event.who)

    def report(self, report):
        report.count("refused", self.refused)


@pdes.lp(streams=1)
class Guest:
    number: int
    door: int = -1
    heard: float = 0.0
    patience: pdes.Timer
    words: pdes.Histogram
    present: pdes.Level = 1
    places: pdes.Array(int, 2)

    def on_enters(self, context, event: Enters):
        if self.door != -1 or self.heard != 0 or self.patience.is_set() or self.places[0] != 0:
            raise ValueError("this is somebody else's")
        self.door = event.door
        self.places[0] = context.id
        self.present.restart(context.now)
        if context.chance(0.1):
            self.leave(context)
        else:
            context.set(self.patience, context.exponential(3.0), Impatient())
            self.talk(context)

    def on_next(self, context, event: Next):
        self.talk(context)

    def talk(self, context):
        context.send(4 + context.integer(40), 0.5, Word(context.uniform(stream=1)))
        context.send_self(context.exponential(1.0, stream=1), Next())

    def on_word(self, context, event: Word):
        self.heard += event.said
        self.words.add(event.said)
        if event.said < 0.3:
            context.set(self.patience, 2.0, Impatient())

    def on_impatient(self, context, event: Impatient):
        self.leave(context)

    def leave(self, context):
        context.send_self(0.25, Enters(self.door))  # makes nobody
        context.send(self.door, 0.5, Left(context.id))
        context.vacate()

    def report(self, report):
        report.count("guests", 1)
        report.sum("heard", self.heard)
        report.sum("left_at", report.now)
        report.histogram("words", self.words)
        report.level("present", self.present)


@pdes.model(end=200, lookahead=0.5)
def cafe(simulation, undelivered="dropped"):
    simulation.add(Door, 4, first=range(4, 44, 10))
    assert simulation.add_vacant(Guest, 40, undelivered=undelivered, number=range(4, 44)) == 4


@pytest.mark.parametrize("options", [*WAYS[::2], WAYS[3]])
def test_what_an_lp_that_comes_and_goes_can_have(options):
    result, alone = cafe.run(**options), cafe.run()
    same(result, alone, Door, Guest)
    of = alone.statistics
    assert alone.made > alone.ended > 100 and of["guests"].value == alone.made and alone.undelivered > alone.ended
    assert alone.cancelled > 100
    assert of["heard"].value == pytest.approx(of["words"].mean * of["words"].count)
    assert of["present"].mean == 1 and of["present"].time == pytest.approx(3 * alone.made, rel=0.2)
    assert 0 < of["left_at"].value < 200 * alone.made


def test_the_result_says_who_has_come_and_gone():
    result = cafe.run()
    present = len(result.states(Guest))
    assert f"\n{result.made:,} LPs made, {result.ended:,} ended, {present} there at the end\n" in str(result)
    assert " made" not in str(cafe.run(end=0.1))


@pytest.mark.parametrize("plain", [False, True])
def test_a_class_may_be_added_both_ways_and_starts_where_somebody_is(plain):
    @pdes.lp
    class Bird:
        started: int = 0
        left: int = 3

        def start(self, context):
            self.started = 1
            context.send(context.id + 2, 1.0, Enters(0))

        def on_enters(self, context, event: Enters):
            context.send_self(1.0, Next())

        def on_next(self, context, event: Next):
            self.left -= 1

    @pdes.model(end=3, lookahead=1)
    def birds(simulation):
        assert simulation.add(Bird, 2) == 0 and simulation.add_vacant(Bird, 3) == 2

    result = birds.run(plain=plain)
    assert [*result.states(Bird).itertuples(name=None)] == [(0, 1, 3), (1, 1, 3), (2, 0, 2), (3, 0, 2)]
    assert (result.made, result.ended) == (2, 0)


def test_the_states_at_the_end_are_of_those_who_are_there():
    for plain in (False, True):
        result = cafe.run(plain=plain)
        states = result.states(Guest)
        assert len(states) == result.made - result.ended < 40 and states.index.name == "lp"
        assert [*states["number"]] == [*states.index] and (states["door"] == (states.index - 4) // 10).all()
        nobody = cafe.run(end=0.1, plain=plain).states(Guest)
        assert len(nobody) == 0 and [*nobody.columns] == [*states.columns]
    assert len(colonies.run(**SMALL).states(Colony)) == 30


@pytest.mark.parametrize("model, options, lp", [(colonies, SMALL | {"end": 100}, Cell), (cafe, {"end": 1000}, Guest)])
@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("before, after", [(1, 2), (2, 1)])
def test_a_run_goes_on_with_those_who_are_there(tmp_path, model, options, lp, plain, before, after):
    file, whole = tmp_path / "save", model.run(**options)
    stopped(model, file, threads=before, plain=plain, **options)
    result = model.run(resume=file, threads=after, plain=plain, **options)
    same(result, whole, lp)
    assert 0 < result.events_before < whole.events and len(result.states(lp)) == whole.made - whole.ended


@pytest.mark.parametrize("plain", [False, True])
def test_an_event_from_outside_makes_an_lp_too(plain):
    born = pdes.Injected(0.25, 9, Enters(0))
    result, alone = cafe.run(replay=[born], end=0.5, plain=plain), cafe.run(end=0.5, plain=plain)
    assert result.made == alone.made + 1 == len(result.states(Guest)) and result.states(Guest)["door"][9] == 0


# ---- What cannot be.

class Go(NamedTuple):
    pass


@pdes.lp
class Host:
    fault: int

    def start(self, context):
        context.send_self(1.0, Next())

    def on_next(self, context, event: Next):
        if self.fault == 1:
            context.vacate()
        elif self.fault == 2:
            context.send(1, 1.0, Go())
        elif self.fault == 3:
            context.send_self(1.0, Enters(0))
        else:
            context.send(1, 1.0, Enters(0))
            if self.fault == 4:
                context.send(1, 2.0, Enters(0))
            elif self.fault == 5:
                context.send(1, 2.0, Word(0.0))
            else:
                context.send(1, 2.0, Go())


@pdes.lp
class Visitor:
    fault: int

    def on_enters(self, context, event: Enters):
        if self.fault == 6:
            raise ValueError("bad luck")

    def on_go(self, context, event: Go):
        context.vacate()
        context.vacate()
        if self.fault == 7:
            context.send(0, 1.0, Word(0.0))
        else:
            context.send(0, 1.0, Next())

    def report(self, report):
        report.sum("waited", 1.0 if self.fault != 9 else math.inf)
        if self.fault == 8:
            raise ValueError("no words")


@pdes.lp
class Listener:
    def on_word(self, context, event: Word):
        pass


@pdes.model(end=4.5, lookahead=1)
def visit(simulation, fault=0, undelivered="refused"):
    simulation.add(Host, 1, fault=fault)
    simulation.add_vacant(Visitor, 1, undelivered=undelivered, fault=fault)
    simulation.add(Listener, 1)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("fault, said", enumerate([
    r"LP 0 \(Host\), at time 1 on Next from LP 0, ends itself: it is there for the whole run, as .*",
    r"LP 1 \(Visitor\), at time 2 on Go from LP 0, is vacant: nobody is there to execute Go",
    r"LP 0 \(Host\), at time 2 on Enters from LP 0, is there already: Enters makes an LP at a vacant id",
    r"LP 1 \(Visitor\), at time 3 on Enters from LP 0, is there already: Enters makes an LP at a vacant id",
    r"LP 1 \(Visitor\), at time 3 on Word from LP 0, has no handler for Word",
    r"LP 1 \(Visitor\), at time 2 on Enters from LP 0, failed: ValueError: bad luck",
    r"LP 0 \(Host\), at time 4 on Word from LP 1, has no handler for Word",
    r"LP 1 \(Visitor\), at time 3 on Go from LP 0, failed to report: ValueError: no words",
    r"LP 1 \(Visitor\), at time 3 on Go from LP 0: statistic 'waited': inf is not a finite number",
], 1))
def test_what_goes_wrong_is_one_line(plain, fault, said):
    for threads in (1, 2):
        with pytest.raises(pdes.Error, match=f"^{said}$"):
            visit.run(fault=fault, plain=plain, threads=threads)


@pdes.lp
class Giver:
    seats: pdes.Vacancies

    def start(self, context):
        self.seats.give_back(-1)


@pytest.mark.parametrize("plain", [False, True])
def test_an_id_that_cannot_be_is_not_given_back(plain):
    with pytest.raises(pdes.Error, match=r"^LP 0 \(Giver\), at its start, failed: MemoryError$"):
        pdes.model(end=1)(named("give", lambda simulation: simulation.add(Giver, 1))).run(plain=plain)


@pdes.lp
class Dreamer:
    first: int
    room: int
    seats: pdes.Vacancies

    def start(self, context):
        self.seats.set(self.first, self.room)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("first, room", [(-1, 3), (0, -3), (2**32, 3), (0, 2**40)])
def test_ids_that_cannot_be_are_not_vacant(first, room, plain):
    dream = pdes.model(end=1)(named("dream", lambda simulation: simulation.add(Dreamer, 1, first=first, room=room)))
    said = r"^LP 0 \(Dreamer\), at its start, failed: ValueError: there are no such ids to be vacant$"
    with pytest.raises(pdes.Error, match=said):
        dream.run(plain=plain)


@pytest.mark.parametrize("plain", [False, True])
def test_what_makes_no_sense_is_one_line(plain):
    def said(add, **options):
        with pytest.raises(pdes.Error) as error:
            pdes.model(end=5, lookahead=1)(named("m", add)).run(plain=plain, **options)
        assert "\n" not in str(error.value)
        return str(error.value)

    assert said(lambda simulation: simulation.add_vacant(Listener, 1)) == (
        "nothing makes LPs of class Listener: it has no handler of an event that makes LPs")
    assert said(lambda simulation: simulation.add_vacant(Visitor, 1, fault=0, undelivered="lost")) == (
        "undelivered events are 'refused' or 'dropped', not 'lost'")
    assert said(lambda simulation: simulation.add_vacant(Visitor, 1, fault=0, n=1)) == "Visitor has no field 'n'"
    assert said(lambda simulation: simulation.add_vacant(Guest, 1, number=0, words=2)) == "Guest.words takes no value"
    assert said(lambda simulation: simulation.add(Door, 1, first=0, seats=range(3))) == "Door.seats takes no value"
    assert said(lambda simulation: simulation.add_vacant(Visitor, 1)) == "Visitor needs a value of 'fault'"

    def three(simulation):
        simulation.add(Door, 1, first=1)
        simulation.add_vacant(Guest, 2, number=[1, 2, 3])

    assert re.match(r"Guest\.number cannot be (\[1, 2, 3\]|3 values) for 2 LPs", said(three))

    @pdes.makes
    @pdes.cancellable
    class Both(NamedTuple):
        pass

    @pdes.lp
    class Maker:
        def on_both(self, context, event: Both):
            pass

    assert said(lambda simulation: simulation.add(Maker, 1)) == "event Both makes LPs, and so no timer can cancel it"


@pytest.mark.parametrize("plain", [False, True])
def test_whatever_is_sent_to_nobody_can_be_dropped(plain):
    result = visit.run(fault=2, undelivered="dropped", plain=plain)
    assert (result.made, result.ended, result.undelivered) == (0, 0, 1)
    whole = visit.run(plain=plain)
    assert (whole.made, whole.ended, whole.undelivered) == (1, 1, 0) and whole.statistics["waited"].value == 1


def test_an_lp_in_plain_python_has_objects_of_its_own_each_time():
    class Names(NamedTuple):
        pass

    @pdes.makes
    class Comes(NamedTuple):
        name: object

    @pdes.lp
    class Inn:
        def start(self, context):
            for at in range(3):
                context.send(1, 1.0 + 3 * at, Comes(["guest", at]))
                context.send(1, 2.0 + 3 * at, Names())

    @pdes.lp
    class Sleeper:
        names: object = list

        def on_comes(self, context, event: Comes):
            self.names.append(event.name)

        def on_names(self, context, event: Names):
            if context.now < 8:
                context.vacate()

        def report(self, report):
            report.count("names", len(self.names))

    @pdes.model(end=20)
    def inn(simulation):
        simulation.add(Inn, 1)
        simulation.add_vacant(Sleeper, 1)

    result = inn.run(plain=True)
    assert result.statistics["names"].value == result.made == 3 and result.ended == 2
    assert [*result.states(Sleeper)["names"]] == [[["guest", 2]]]


def test_an_lp_of_processes_comes_and_goes():
    @pdes.lp
    class Patient(Processes):
        words: int = 0

        def setup(self, env):
            env.process(self.waiting(env))
            env.process(self.asking(env))

        def waiting(self, env):
            yield env.timeout(2.5)
            env.send(0, 1.0, env.id)
            env.vacate()

        def asking(self, env):
            while True:
                yield env.timeout(1.0)
                self.words += 1

        def on_enters(self, context, event: Enters):
            self.start(context)

        def report(self, report):
            report.count("words", self.words)

    @pdes.lp
    class Ward:
        def start(self, context):
            context.send(1, 1.0, Enters(context.id))

        def on_free(self, context, bed: Message):
            context.send(bed.value, 1.0, Enters(context.id))

    @pdes.model(end=10, lookahead=1)
    def ward(simulation):
        simulation.add(Ward, 1)
        simulation.add_vacant(Patient, 1)

    result = ward.run(plain=True)
    assert (result.made, result.ended, result.undelivered) == (2, 2, 4)  # an end and a timeout of each
    assert result.statistics["words"].value == 4
