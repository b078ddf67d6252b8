"""Checkpoints of plain Python in which LPs come and go."""

import threading
import warnings
from typing import NamedTuple

import hmalloc_pdes as pdes
import pytest
from conftest import Tick
from hmalloc_pdes.processes import Processes
from test_outside import Stop, stopped
from test_vacancies import Door, Enters, Guest, cafe, same


@pdes.makes
class Comes(NamedTuple):
    bag: object


class Opens(NamedTuple):
    bag: object


class Does(NamedTuple):
    what: object


class Word(NamedTuple):
    said: object


class Gone(NamedTuple):
    room: int
    bag: object
    who: object


@pdes.cancellable
class Late(NamedTuple):
    what: object


LOCK = threading.Lock()  # which cannot be pickled


@pdes.lp
class Lodger:
    """Whose bag lies in its room, and in events on their way to itself."""

    plain_python = True
    porter: int
    bag: object = None
    alarm: pdes.Timer
    words: object = list
    secret: object = None

    def comes(self, context, event: Comes):
        if self.bag is not None or self.words or self.alarm.is_set():
            raise ValueError("this is somebody else's")
        self.bag = event.bag
        context.set(self.alarm, context.exponential(3.0), Late(self.leave))
        context.send_self(context.exponential(0.5), Opens(self.bag))
        context.send_self(context.exponential(3.0), Does(self.leave))

    def opens(self, context, event: Opens):
        if event.bag is not self.bag:
            raise ValueError("it has one bag")
        event.bag.append(context.now)
        context.send_self(context.exponential(0.5), event)
        context.send(context.integer(context.lp_count), 0.5, Word([context.now]))

    def word(self, context, event: Word):
        self.words += event.said

    def is_late(self, context, event: Late):
        event.what(context)

    def does(self, context, event: Does):
        event.what(context)

    def leave(self, context):
        tells = context.chance(0.5)
        self.secret = None if tells else LOCK
        context.send(self.porter, 0.5, Gone(context.id, self.bag, self if tells else None))
        context.vacate()

    def report(self, report):
        report.sum("words", sum(self.words))
        report.count("secrets", self.secret is LOCK)


@pdes.lp
class Porter:
    plain_python = True
    rooms: pdes.Vacancies
    first: int
    bags: object = list
    best: object = None  # of those who have told who they are

    def start(self, context):
        self.rooms.set(self.first, 4)
        context.send_self(context.exponential(0.3), Tick(0))

    def tick(self, context, event: Tick):
        room = self.rooms.take()
        if room >= 0:
            context.send(room, 0.5, Comes(self.bags.pop() if self.bags else []))
        context.send_self(context.exponential(0.3), Tick(event.n + 1))

    def gone(self, context, event: Gone):
        self.bags.append(event.bag)
        self.rooms.give_back(event.room)
        if event.who is not None and (self.best is None or len(event.who.words) > len(self.best.words)):
            self.best = event.who

    def word(self, context, event: Word):
        pass

    def report(self, report):
        report.sum("words_of_the_best", sum(self.best.words))


@pdes.model(end=300, lookahead=0.5)
def hotel(simulation, porters=3):
    simulation.add(Porter, porters, first=[porters + 4 * porter for porter in range(porters)])
    for porter in range(porters):
        simulation.add_vacant(Lodger, 4, undelivered="dropped", porter=porter)


def saved(model, file, at=20, **options):
    """Saves a run soon after that time, of which nobody complains, and leaves it there."""
    def stop(_, now, *more):
        if now > at:
            raise Stop

    with warnings.catch_warnings(record=True) as said, pytest.raises(pdes.Error) as error:
        warnings.simplefilter("always", RuntimeWarning)
        model.run(checkpoint=file, interval=1e-9, progress=stop, **options)
    assert isinstance(error.value.__cause__, Stop) and not [str(warning.message) for warning in said]


@pytest.mark.parametrize("before, after", [(1, 2), (2, 1)])
def test_who_is_there_goes_on_without_what_is_left_of_others(tmp_path, before, after):
    whole = hotel.run()
    saved(hotel, tmp_path / "save", threads=before)
    result = hotel.run(resume=tmp_path / "save", threads=after)
    same(result, whole)
    assert whole.ended > 1000 and whole.undelivered > 1000 and 0 < result.events_before < whole.events
    assert 100 < whole.statistics["secrets"].value < whole.ended - 100
    for name in ("bag", "words"):
        assert [*result.states(Lodger)[name]] == [*whole.states(Lodger)[name]]
    assert [*result.states(Porter)["bags"]] == [*whole.states(Porter)["bags"]]


def in_plain_python(lp):
    return pdes.lp(streams=lp.__pdes__.streams)(type(lp.__name__, (lp,), {"plain_python": True}))


@pytest.mark.parametrize("door, guest", [(in_plain_python(Door), Guest), (Door, in_plain_python(Guest))])
@pytest.mark.parametrize("before, after", [(1, 2), (2, 1)])
def test_compiled_classes_beside_plain_ones(tmp_path, door, guest, before, after):
    @pdes.model(end=400, lookahead=0.5)
    def mixed(simulation, door=door, guest=guest):
        simulation.add(door, 4, first=range(4, 44, 10))
        simulation.add_vacant(guest, 40, undelivered="dropped", number=range(4, 44))

    stopped(mixed, tmp_path / "save", threads=before)
    result = mixed.run(resume=tmp_path / "save", threads=after)
    same(result, cafe.run(end=400))
    assert result.events_before > 0 and len(result.states(guest)) == result.made - result.ended


@pdes.lp
class Caller:
    plain_python = True

    def start(self, context):
        context.send(1, 1, Word(LOCK))
        context.send(2, 1, Enters(0))
        context.send_self(2, Tick(0))

    def tick(self, context, event: Tick):
        context.send_self(1, event)


@pdes.lp
class Deaf:
    def on_enters(self, context, event: Enters):
        context.vacate()


@pdes.lp
class Secretive:
    plain_python = True
    secret: object = None

    def on_enters(self, context, event: Enters):
        self.secret = LOCK
        context.vacate()


@pytest.mark.parametrize("vacant, more", [(Lodger, {"porter": 0}), (Deaf, {})])
def test_what_nobody_has_got_or_reports_is_not_kept(tmp_path, vacant, more):
    @pdes.model(end=10000, lookahead=1)
    def calling(simulation, vacant=vacant):
        simulation.add(Caller, 1)
        simulation.add_vacant(vacant, 1, undelivered="dropped", **more)
        simulation.add_vacant(Secretive, 1)
        simulation.add_vacant(Lodger, 0, porter=0)  # which gets words

    saved(calling, tmp_path / "save")
    assert calling.run(resume=tmp_path / "save").digest == calling.run().digest


@pdes.lp
class Patient(Processes):
    def setup(self, env):
        raise AssertionError("nobody has come")

    def on_enters(self, context, event: Enters):
        self.start(context)


def test_processes_are_not_saved(tmp_path):
    @pdes.model(end=1)
    def ward(simulation):
        simulation.add_vacant(Patient, 1)

    for option in ("checkpoint", "resume"):
        with pytest.raises(pdes.Error, match="^LPs of class Patient cannot be saved: their processes are generators, "):
            ward.run(**{option: tmp_path / "save"})
