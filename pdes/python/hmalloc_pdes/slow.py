"""Handlers as plain Python: for what Numba does not take.  The engine, and so the answer, is the same; the speed is not."""

import ctypes
import itertools
import secrets

import numpy as np

from . import library, members, records
from .errors import Error

call = library.call


_OVER = "the handler has returned"


class Context:
    """What a handler may ask of the engine."""

    def __init__(self, run, lp):
        self._run, self._lp = run, lp
        self.state, self.leaves = None, False  # for Entries
        at = lp.contents
        self.now, self.end, self.lookahead, self.id, self.lp_count = at.now, at.end, at.lookahead, at.id, at.lp_count

    def bits(self, stream=0):
        return call.bits(self._lp, stream)

    def uniform(self, stream=0):
        return call.uniform(self._lp, stream)

    def chance(self, p, stream=0):
        return self.uniform(stream) < p

    def exponential(self, mean, stream=0):
        return call.exponential(self._lp, stream, mean)

    def integer(self, n, stream=0):
        return call.integer(self._lp, stream, int(n))

    def close(self):
        """The handler has returned, and the engine's part is gone: ctypes refuses this one."""
        self._lp = _OVER

    def send(self, to, delay, event, priority=0):
        if self._lp is _OVER:  # by a process that never went on: it is collected, and leaves its `with`
            return
        to = int(to)
        number, payload = self._run.pack(event, self.state if to == self.id else None)
        call.send(self._lp, to, delay, number, payload, priority)
        if not self.now + delay < self.end:
            self._run.events.forget(number, payload)

    def send_self(self, delay, event, priority=0):
        self.send(self.id, delay, event, priority)

    def set(self, timer, delay, event, priority=0):
        number, payload = self._run.pack(event, self.state, timer=timer)
        if not self._run.types[number].cancellable:
            raise Error(f"{type(event).__name__} {records.NOT_CANCELLABLE}")
        call.set_timer(self._lp, timer.address, delay, number, ctypes.create_string_buffer(payload, len(payload)), priority)

    def end_after(self, delay):
        call.end_after(self._lp, delay)

    def vacate(self):
        call.vacate(self._lp)
        self.leaves = True


class Report:
    """Where an LP's statistics go."""

    def __init__(self, pointer):
        self._pointer = pointer

    @property
    def now(self):
        return call.report_now(self._pointer)

    def count(self, name, value):
        call.report_count(self._pointer, name.encode(), int(value))

    def sum(self, name, value):
        call.report_sum(self._pointer, name.encode(), value)

    def tally(self, name, tally):
        self._give(call.report_tally, name, members.Tally, tally)

    def level(self, name, level):
        self._give(call.report_level, name, members.Level, level)

    def interval(self, name, means):
        self._give(call.report_interval, name, members.BatchMeans, means)

    def histogram(self, name, histogram):
        call.report_histogram(self._pointer, name.encode(), histogram.address)

    def _give(self, function, name, kind, observed):
        if not isinstance(observed, kind):
            raise TypeError(f"statistic '{name}' is no {kind.__name__}")
        record = observed.record()  # which lives as long as the call
        function(self._pointer, name.encode(), record.ctypes.data)


class Events:
    """Events of one run on their way through the engine, whose payloads are bytes: of numbers these themselves, of all else
    a ticket for the object, which waits here."""

    def __init__(self, types):
        self.types = types
        self._by_event = {event.event: event for event in types}
        # In one step, which no other thread parts; by chance, so that a run that goes on has others than before.
        self._waiting, self._tickets = {}, itertools.count(1 + secrets.randbits(62))
        self._kept = {}

    def pack(self, event, own=None, kept=False, timer=None):
        """Number and payload.  own: the state of the LP that sends it to itself.  kept: `again` will ask for it.  timer: the
        event that it was set to before is forgotten."""
        known = self._by_event.get(type(event))
        if known is None:
            raise Error(f"{type(event).__name__} is no event of this model: no LP has a handler of it")
        last = records.NO_TIMER if known.cancellable else b""
        if known.dtype is not None:
            numbers = tuple(convert(value) for convert, value in zip(known.convert, event))
            return known.number, np.array(numbers, known.dtype).tobytes() + last
        ticket = timer and timer.ticket or next(self._tickets)
        if timer is not None:
            timer.ticket = ticket
        self._waiting[ticket] = event, own
        if kept:
            self._kept[ticket] = event
        return known.number, ticket.to_bytes(8, "little") + last

    def unpack(self, known, payload):
        if known.dtype is None:
            return self._waiting.pop(_ticket(payload))[0]
        if known.dtype.itemsize == 0:
            return known.event()
        return known.event(*np.frombuffer(ctypes.string_at(payload, known.dtype.itemsize), known.dtype)[0].item())

    def forget(self, number, payload):
        """Of an event that nobody will execute."""
        if self.types[number].dtype is None:
            self._waiting.pop(_ticket(payload), None)

    def waiting(self, is_there):
        """What objects the events on their way carry: number, values and whose own it is, by ticket.  What LPs have sent to
        themselves that are no longer there (is_there of their states) will never be delivered."""
        return {ticket: (self._by_event[type(event)].number, tuple(event), own)
                for ticket, (event, own) in self._waiting.copy().items() if own is None or is_there(own)}

    def wait(self, waiting):
        """The same of another run, whose events come now."""
        self._waiting.update((ticket, (self.types[number].event(*values), own))
                             for ticket, (number, values, own) in waiting.items())

    def again(self, number, payload):
        """Of an event that is kept, whether it has been executed or not."""
        known = self.types[number]
        return self._kept[_ticket(payload)] if known.dtype is None else self.unpack(known, payload)


def _ticket(payload):
    return int.from_bytes(ctypes.string_at(payload, 8), "little")


def plain_class(lp):
    """The class whose objects are the states: their numbers behave as the fields of a record do."""
    dtypes = lp.dtypes
    numbers = {name: dtype for name, dtype in dtypes.items() if dtype is not None and not dtype.shape and not dtype.fields}
    convert = {name: records.converter(dtype) for name, dtype in numbers.items()}

    class Plain(lp.python):
        def __init__(self):
            pass

        def __setattr__(self, name, value):
            if name not in dtypes:
                raise AttributeError(f"{lp.name} has no field '{name}'")
            if name in convert:
                value = convert[name](value)
            elif dtypes[name] is not None and dtypes[name].shape:
                getattr(self, name)[...] = value
                return
            object.__setattr__(self, name, value)

    Plain.__name__ = lp.name
    return Plain


class Entries:
    """The functions of a class of LPs for one run, as the engine calls them, and its LPs' states."""

    def __init__(self, run, group):
        lp = group.lp
        self._run, self._lp, self._group, self.plain_class = run, lp, group, plain_class(lp)
        self._per_lp = {name for name, value in group.values.items() if lp.is_per_lp(name, value)}
        for name in self._per_lp:
            if len(group.values[name]) != group.count:
                raise Error(f"{lp.name}.{name} cannot be {len(group.values[name])} values for {group.count} LPs")
        self.first = group.first
        # By id, of those who are there.
        self.states = {} if self._comes_and_goes() else {number: self._first_state(number) for number in group.ids}
        self._leaving = set()  # ids whose handler has returned, and not yet their report
        self._kept = []
        self.start = self._callback(lambda state, context, event: lp.start(state, context)) if lp.start else None
        self.handlers = [self._handler(event) for event in run.events.types]
        self.report = self._reporter() if lp.report or self._comes_and_goes() else None

    def restored(self, number):
        """The state of an LP that a checkpoint has, to be filled."""
        if number not in self.states:  # it has come since the begin
            self.states[number] = self._first_state(number)
        return self.states[number]

    def _comes_and_goes(self):
        return self._group.undelivered is not None

    def _first_state(self, number):
        """Of the LP with that id."""
        state, values, count = self.plain_class(), self._group.values, self._group.count
        for name, dtype in self._lp.dtypes.items():
            try:
                self._set(state, name, dtype, values, number - self._group.first if name in self._per_lp else None)
            except (ValueError, TypeError) as error:
                raise Error(f"{self._lp.name}.{name} cannot be {values[name]!r:.60} for {count} LPs: {error}") from None
        return state

    def _set(self, state, name, dtype, values, index):
        if dtype is not None and dtype.shape:
            object.__setattr__(state, name, np.zeros(dtype.shape, dtype.base))
            if name not in values:
                return
        kind = self._lp.fields[name]
        if name not in values:
            object.__setattr__(state, name, kind())
            return
        value = values[name] if index is None else values[name][index]
        if name in self._lp.observed:
            value = kind(value)
        setattr(state, name, value() if dtype is None and callable(value) else value)  # such as list: each its own

    def _handler(self, event):
        function = self._lp.handlers.get(event.event)
        if function is None:
            return None
        unpack = self._run.events.unpack
        made = event.makes and self._comes_and_goes()
        return self._callback(lambda state, context, payload: function(state, context, unpack(event, payload)), made)

    def _callback(self, function, made=False):
        run, states = self._run, self.states

        def entry(lp, place, event):
            context = Context(run, lp)
            try:
                if made:  # as it is the first thing that happens to the LP
                    states[context.id] = self._first_state(context.id)
                context.state = state = states[context.id]
                self._place(state, place)
                function(state, context, event)
                if context.leaves:
                    self._leaving.add(context.id)
                return 1
            except BaseException as error:  # it goes to who has called run
                run.failed(error)
                return 0
            finally:
                context.close()

        return self._keep(library.HANDLER(entry))

    def _reporter(self):
        def entry(report, place):
            try:
                number = call.report_id(report)
                state = self.states[number]
                if number in self._leaving:
                    self._leaving.remove(number)
                    del self.states[number]
                if self._lp.report:
                    self._place(state, place)
                    self._lp.report(state, Report(report))
                return 1
            except BaseException as error:
                self._run.failed(error)
                return 0

        return self._keep(library.REPORTER(entry))

    def _place(self, state, place):
        for name in self._lp.in_engine:
            getattr(state, name).address = place + self._lp.engine_dtype.fields[name][1]

    def _keep(self, callback):
        self._kept.append(callback)
        return ctypes.cast(callback, ctypes.c_void_p).value

    def finals(self, ids):
        """The states of those LPs, as columns."""
        return {name: self._column(name, ids) for name in self._lp.shown}

    def _column(self, name, ids):
        values = [getattr(self.states[number], name) for number in ids]
        if name not in self._lp.observed:
            return values
        return np.array([value.record() for value in values], self._lp.fields[name].dtype)
