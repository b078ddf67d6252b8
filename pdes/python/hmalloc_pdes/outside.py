"""What comes from outside of a run that keeps a pace, and comes again when it is replayed."""

import contextlib
import ctypes
import threading
from typing import NamedTuple

from . import library
from .errors import Error

call = library.call


class Injected(NamedTuple):
    """An event from outside, as a run took it."""

    time: float
    to: int
    event: tuple
    priority: int = 0


class Outside:
    """Where any threads leave events for the run that is given it: `model.run(pace=1, outside=outside)`."""

    def __init__(self):
        self._lock = threading.Lock()  # while it is held, the engine is not freed
        self._early = []  # given before there is an engine
        self._run = self._engine = None
        self._has_run = self._over = False

    def inject(self, to, event, priority=0):
        """For any thread, while the run goes on or before: LP `to` executes the event at the time that real time has come
        to.  False: the run is over."""
        with self._lock:
            if not self._over and self._engine is None:
                self._early.append((to, event, priority))
            return not self._over and (self._engine is None or self._give(to, event, priority))

    def _give(self, to, event, priority):
        number, payload = self._run.events.pack(event, kept=True)
        taken = call.inject(self._engine, int(to), number, payload, int(priority))
        if taken < 0:
            raise Error(call.inject_error().decode())
        return taken == 1

    @contextlib.contextmanager
    def of_one_run(self):
        """However that ends, even before it begins, nobody is told any more that it takes events."""
        with self._lock:
            if self._has_run:
                raise Error("an Outside is of one run")
            self._has_run = True
        try:
            yield
        finally:
            self.close()

    def open(self, run, engine, options):
        if options.get("pace", 0) == 0:
            raise Error("a run takes events from outside only if it keeps a pace")
        with self._lock:
            self._run, self._engine = run, engine
            for event in self._early:
                self._give(*event)

    def close(self):
        """Before the engine is freed."""
        with self._lock:
            self._over, self._run, self._engine = True, None, None


def replay(run, engine, events):
    """Hands the engine what another run took."""
    packed = [(event, *run.events.pack(event.event, kept=True)) for event in events]
    for event in events:
        if not 0 <= event.to < run.lp_count:
            raise Error(f"what is replayed is for LP {event.to}, which does not exist")
    array = (library.Injected * len(packed))(*(
        (event.time, event.to, number, event.priority, ctypes.cast(ctypes.c_char_p(payload), ctypes.c_void_p))
        for event, number, payload in packed))
    call.replay(engine, array, len(array))


def taken(run, result):
    """The events that came from outside."""
    found = (result.injected[i] for i in range(result.injected_count))
    return [Injected(event.time, event.to, run.events.again(event.type, event.payload), event.priority) for event in found]
