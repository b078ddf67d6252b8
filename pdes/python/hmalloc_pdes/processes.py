"""Processes as generators, in the manner of SimPy: `yield env.timeout(3)`.

Each LP is an environment of its own.  Its processes share its resources and stores; to those of other LPs they send
messages, which arrive in the store `env.inbox`.  All of it is plain Python, and slow.  docs/pdes-python.md has a table of
what is as in SimPy.
"""

import math
from collections import deque
from typing import NamedTuple

URGENT, NORMAL = 0, 1  # SimPy's priorities of what happens at the same time


class Wake(NamedTuple):
    """The time of an event has come."""

    event: object


class Message(NamedTuple):
    """From a process of any LP."""

    value: object


class Interrupt(Exception):
    """What an interrupted process gets thrown."""

    @property
    def cause(self):
        return self.args[0]


class Event:
    """What a process can wait for: it is triggered once, and then wakes who waits."""

    def __init__(self, env):
        self.env, self.callbacks = env, []
        self.value, self.ok, self.triggered = None, None, False

    @property
    def processed(self):
        return self.callbacks is None

    def succeed(self, value=None):
        return self._trigger(True, value)

    def fail(self, exception):
        return self._trigger(False, exception)

    def _trigger(self, ok, value, delay=0, priority=NORMAL):
        if self.triggered:
            raise RuntimeError("an event was triggered twice")
        self.triggered, self.ok, self.value = True, ok, value
        self.env.context.send_self(delay, Wake(self), priority)
        return self

    def happen(self):
        """At its time: calls who waits.  A failure that nobody waits for ends the run."""
        callbacks, self.callbacks = self.callbacks, None
        for callback in callbacks:
            callback(self)
        if not self.ok and not callbacks:
            raise self.value

    def then(self, callback):
        """Calls back when it happens; if it has happened, as soon as possible."""
        if self.processed:
            late = Event(self.env)
            late.callbacks.append(lambda _: callback(self))
            late._trigger(True, None, priority=URGENT)
        else:
            self.callbacks.append(callback)

    def __and__(self, other):
        return Condition(self.env, [self, other], all)

    def __or__(self, other):
        return Condition(self.env, [self, other], any)


class Timeout(Event):
    def __init__(self, env, delay, value=None):
        super().__init__(env)
        self._trigger(True, value, delay)


class Condition(Event):
    """All of some events, or any of them.  Its value is a dictionary of those that have happened, and of their values."""

    def __init__(self, env, events, enough):
        super().__init__(env)
        self._events, self._enough = list(events), enough
        for event in self._events:
            event.then(self._look)
        if not self._events:
            self.succeed({})

    def _look(self, event):
        if self.triggered:
            return
        if not event.ok:
            self.fail(event.value)
        elif self._enough(event.processed for event in self._events):
            self.succeed({event: event.value for event in self._events if event.processed})


class Process(Event):
    """A generator at work; as an event it happens at its end, and has the value that the generator returns."""

    def __init__(self, env, generator):
        super().__init__(env)
        if not hasattr(generator, "throw"):
            raise TypeError(f"a process is a generator, and {generator!r:.60} is none: does it yield?")
        self._generator, self._waits_for = generator, None
        self._awake(True, None)

    @property
    def is_alive(self):
        return not self.triggered

    def interrupt(self, cause=None):
        if self.triggered:
            raise RuntimeError("a process was interrupted that has ended")
        self._awake(False, Interrupt(cause))

    def _awake(self, ok, value):
        start = Event(self.env)
        start.callbacks.append(self._interrupted if not ok else self._resume)
        start._trigger(ok, value, priority=URGENT)

    def _interrupted(self, event):
        if self.triggered:
            return
        waits = self._waits_for
        if waits is not None and waits.callbacks is not None and self._resume in waits.callbacks:
            waits.callbacks.remove(self._resume)
        self._resume(event)

    def _resume(self, event):
        before, self.env.active_process = self.env.active_process, self
        try:
            step = self._generator.send if event.ok else self._generator.throw
            waits = step(event.value)
        except StopIteration as end:
            self.succeed(end.value)
        except Exception as error:
            self.fail(error)
        else:
            if not isinstance(waits, Event):
                raise TypeError(f"a process yields events, not {waits!r:.60}")
            self._waits_for = waits
            waits.then(self._resume)
        finally:
            self.env.active_process = before


class Environment:
    """Of one LP: its time, its processes, its inbox."""

    def __init__(self):
        self.context, self.active_process = None, None
        self.inbox = Store(self)

    def __getattr__(self, name):
        """now, end, id, lp_count, lookahead; exponential, uniform, chance, integer."""
        return getattr(self.__dict__["context"], name)

    def event(self):
        return Event(self)

    def timeout(self, delay, value=None):
        return Timeout(self, delay, value)

    def process(self, generator):
        return Process(self, generator)

    def all_of(self, events):
        return Condition(self, events, all)

    def any_of(self, events):
        return Condition(self, events, any)

    def send(self, to, delay, value):
        """Puts the value into the inbox of another LP; the delay is at least the lookahead."""
        self.context.send(to, delay, Message(value))


class Processes:
    """What a class of LPs derives from whose behaviour is processes: it has `setup(self, env)`, which makes the first."""

    plain_python = True
    unsaved_because = "their processes are generators, which cannot be pickled"
    env: object = Environment

    def start(self, context):
        self.env.context = context
        self.setup(self.env)

    def wake(self, context, event: Wake):
        self.env.context = context
        event.event.happen()

    def receive(self, context, event: Message):
        self.env.context = context
        self.env.inbox.put(event.value)


class _Queue:
    """Who waits for something gets it in the order in which it was asked for."""

    def __init__(self, env):
        self.env, self._waiting = env, deque()

    def _wait(self, request):
        self._waiting.append(request)
        self._serve()
        return request

    def _withdraw(self, request):
        if request in self._waiting:
            self._waiting.remove(request)


class Request(Event):
    """A turn with a resource; `with resource.request() as turn: yield turn` gives it back."""

    def __init__(self, resource):
        super().__init__(resource.env)
        self.resource = resource

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.resource.release(self)


class Resource(_Queue):
    """Something that `capacity` processes can use at a time."""

    def __init__(self, env, capacity=1):
        super().__init__(env)
        self.capacity, self.users = capacity, []

    @property
    def count(self):
        return len(self.users)

    @property
    def queue(self):
        return list(self._waiting)

    def request(self):
        return self._wait(Request(self))

    def release(self, request):
        self._withdraw(request)
        if request in self.users:
            self.users.remove(request)
            self._serve()

    def _serve(self):
        while self._waiting and len(self.users) < self.capacity:
            request = self._waiting.popleft()
            self.users.append(request)
            request.succeed()


class Store(_Queue):
    """Things that processes put and get, first in, first out."""

    def __init__(self, env, capacity=math.inf):
        super().__init__(env)
        self.capacity, self.items, self._putting = capacity, deque(), deque()

    def put(self, item):
        done = Event(self.env)
        self._putting.append((done, item))
        self._serve()
        return done

    def get(self):
        return self._wait(Event(self.env))

    def _serve(self):
        while True:
            if self._putting and len(self.items) < self.capacity:
                done, item = self._putting.popleft()
                self.items.append(item)
                done.succeed()
            elif self._waiting and self.items:
                self._waiting.popleft().succeed(self.items.popleft())
            else:
                return
