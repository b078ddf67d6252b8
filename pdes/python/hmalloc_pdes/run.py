"""One run of a model: builds it, hands it to the engine, takes the result."""

import ctypes
import os
import signal
import sys
import threading
import warnings
from typing import NamedTuple

import numpy as np

from . import checkpoints, library, outside, pickles, records, slow
from .errors import Error, SlowModelWarning, text_of
from .result import HISTORY, Result, delays_of, path_of, statistics_of, threads_of

try:
    from . import compiled, passing  # noqa: F401 (it adds to what compiled knows)
except ImportError as error:  # of numba
    compiled, _no_numba = None, str(error)
REFUSALS = compiled.REFUSALS if compiled else (NotImplementedError,)

call = library.call


def _as_text(options):
    def word(value):
        text = str(int(value) if isinstance(value, (bool, np.bool_)) else value)
        return text.replace("\\", "\\\\").replace(" ", "\\ ")

    given = {name: value for name, value in options.items() if (name, value) != ("trace", None)}
    return os.fsencode(" ".join(f"{name.replace('_', '-')}={word(value)}" for name, value in given.items()))


class Group(NamedTuple):
    """LPs that were added together.  undelivered: of those that come and go, what becomes of others' events for nobody."""

    lp: object
    first: int
    count: int
    values: dict
    undelivered: str | None = None

    @property
    def ids(self):
        return range(self.first, self.first + self.count)


class Simulation:
    """What a model's function fills: `add` adds its LPs."""

    def __init__(self, options):
        self.options = options
        self.lp_count = 0
        self.groups = []
        self.neighbours = None

    @property
    def lookahead(self):
        return self.options.get("lookahead", 0.0)

    @property
    def end(self):
        return self.options.get("end", 0.0)

    def add(self, lp, count, **values):
        """Adds `count` LPs of a class that `lp` has declared; a value is of all, or an array of one for each.  Returns the
        id of the first."""
        return self._add(lp, count, values)

    def add_vacant(self, lp, count, *, undelivered="refused", **values):
        """Adds `count` ids where nobody is at first: LPs of the class come when an event makes them (`makes`), and go by
        `context.vacate`.  undelivered: what others send to nobody is "refused", which ends the run, or "dropped", and
        counted.  Returns the first id."""
        if undelivered not in ("refused", "dropped"):
            raise Error(f"undelivered events are 'refused' or 'dropped', not {undelivered!r:.60}")
        return self._add(lp, count, values, undelivered)

    def _add(self, lp, count, values, undelivered=None):
        declared = lp.__dict__.get("__pdes__") if isinstance(lp, type) else None
        if declared is None:
            raise Error(f"{getattr(lp, '__name__', lp)} is no class of LPs: write @lp above it")
        if not 0 <= count < 2**32:
            raise Error(f"{count} LPs of {declared.name}")
        count, first = int(count), self.lp_count
        self.groups.append(Group(declared, first, count, declared.values(values), undelivered))
        self.lp_count += count
        return first

    def set_neighbours(self, lists):
        """For sync="neighbours" and partition="graph": to which LPs each may send, one list or row of an array for each LP.
        For the graph, an LP that is named twice counts twice."""
        self.neighbours = [np.asarray(ids, np.uint32) for ids in lists]

    def event_types(self):
        """In the order of their first handlers, which is part of the digest."""
        events = dict.fromkeys(event for group in self.groups for event in group.lp.handlers)
        return tuple(records.EventType(event, number) for number, event in enumerate(events))


def _machine_code(lp, events):
    """Compiled entries, or none, with one warning a class."""
    key = tuple(event.event for event in events)
    if key not in lp.compiled:
        try:
            if lp.plain:
                lp.compiled[key] = None
                return None
            if compiled is None:
                raise NotImplementedError(f"there is no Numba: {_no_numba}")
            lp.compiled[key] = compiled.entries(lp, events)
        except REFUSALS as error:
            lp.compiled[key] = None
            warnings.warn(f"{lp.name} runs as plain Python, some hundred times slower: {_reason(error)}", SlowModelWarning,
                          stacklevel=5)
    return lp.compiled[key]


def _on_one_line(error):
    said = " ".join(str(error).splitlines())
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _reason(error):
    """The line of Numba's message that says most: the first of the innermost failure."""
    text = text_of(error)
    innermost = text.rpartition("Failed in")[2] if "Failed in" in text else f"\n{text}"
    _, _, said = innermost.partition("\n")
    return next((line.strip() for line in said.splitlines() if line.strip()), type(error).__name__)


class _Signals:
    """While the engine runs, Ctrl-C stops it, and becomes an exception only afterwards: one that was raised on the way into
    a function that the engine calls would be lost.  A run that has a checkpoint is also stopped by SIGTERM, and then the
    program ends, with the status of the engine's own programs; SIGUSR1 has it saved.  What the program handles itself
    is left to it.  A run that is watched is stopped by SIGTERM, too, and who watches it is told by which signal."""

    def __init__(self, engine, saves, watch):
        self._engine, self._came, self._before, self._watch = engine, None, {}, watch
        self.saved = True  # the last time
        self.asked = False  # to save it
        self._answers = [(signal.SIGINT, signal.default_int_handler, self._stop)]
        if saves or watch is not None:
            self._answers.append((signal.SIGTERM, signal.SIG_DFL, self._stop))
        if saves:
            self._answers.append((signal.SIGUSR1, signal.SIG_DFL, self._save))

    def _stop(self, number, _frame):
        self._came = number
        call.stop(self._engine)
        if number == signal.SIGTERM:
            signal.signal(number, signal.SIG_DFL)  # for whoever does not want to wait

    def _save(self, _number, _frame):
        self.asked = True
        call.save(self._engine)

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            for number, default, answer in self._answers:
                if signal.getsignal(number) == default:
                    self._before[number] = signal.signal(number, answer)
        return self

    def __exit__(self, failure, *_):
        for number, before in self._before.items():
            signal.signal(number, before)
        if self._watch is not None:
            self._watch.stopped_by(self._came, self.saved)
        elif self._came == signal.SIGINT:
            raise KeyboardInterrupt
        elif self._came is not None and failure is None:
            raise SystemExit(128 + self._came if self.saved else 1)


class Run:
    def __init__(self, simulation, plain=False):
        self._simulation, self.types = simulation, simulation.event_types()
        self.events = slow.Events(self.types)
        self.pack = self.events.pack
        self.lp_count = simulation.lp_count
        self._error = None
        self._lock = threading.Lock()
        self.entries = []
        for group in simulation.groups:
            machine_code = None if plain else _machine_code(group.lp, self.types)
            self.entries.append(machine_code or slow.Entries(self, group))

    def failed(self, error):
        """The first exception of a handler."""
        with self._lock:
            if self._error is None:
                self._error = error

    def _unraisable(self, raised):
        """What a compiled handler raises ends here, because nobody has called it from Python."""
        if isinstance(raised.object, str) and "CPUContext" in raised.object:
            self.failed(raised.exc_value)
        else:
            self._hook(raised)

    def fields(self):
        """A number of those of states and events, by which a checkpoint that has others is refused."""
        groups = [(group.lp.name, group.lp.dtype or group.lp.dtypes) for group in self._simulation.groups]
        events = [(event.name, event.dtype or event.event._fields) for event in self.types]
        return checkpoints.number_of(repr(groups + events))

    def plain(self):
        """The names of the classes that run as plain Python."""
        groups = zip(self._simulation.groups, self.entries)
        return [*dict.fromkeys(group.lp.name for group, entries in groups if isinstance(entries, slow.Entries))]

    def __call__(self, options, progress=None, given=None, replayed=(), saving=(), watch=None):
        """given: the Outside, if there is one.  saving: the options of checkpoints.  watch: command_line.Watch."""
        if call.has_ranks() and self.plain():
            raise Error(f"{self.plain()[0]} runs as plain Python, whose states and events are those of one process, not of "
                        "several ranks")
        engine = call.new(_as_text(options | dict(saving)))
        if not engine:
            raise MemoryError
        try:
            self._kept = []
            finals = self._describe(engine)
            saves = "checkpoint" in dict(saving)
            self._signals = _Signals(engine, saves, watch)
            series = self._watch(engine, progress, saves, watch)
            self._hear_of_checkpoints(engine, watch)
            self._hear_of_undelivered(engine)
            plain = [entries for entries in self.entries if isinstance(entries, slow.Entries)]
            if plain:
                self._pickles = pickles.Pickles(engine, plain, self.events)
            if replayed:
                outside.replay(self, engine, replayed)
            if given is not None:
                given.open(self, engine, options)
            self._hook, sys.unraisablehook = sys.unraisablehook, self._unraisable
            try:
                with self._signals:
                    result = call.run(engine)
                    self._raise_error(engine)  # before the program ends as if the run had been saved
            finally:
                sys.unraisablehook = self._hook
            if result.contents.rank > 0:  # the first has it
                return None
            return self._result(result.contents, options, series, finals)
        finally:
            if given is not None:
                given.close()
            call.free(engine)

    def _describe(self, engine):
        """Tells the engine of events and LPs.  Returns where it puts the final states of each group and, if its LPs come and
        go, which of them are there."""
        finals = []
        for event in self.types:
            declare = call.cancellable_type if event.cancellable else call.making_type if event.makes else call.event_type
            declare(engine, event.name.encode(), event.size)
        for group, entries in zip(self._simulation.groups, self.entries):
            lp, count = group.lp, group.count
            handlers = (ctypes.c_void_p * (len(entries.handlers) + 1))(*entries.handlers)
            described = library.Class(name=lp.name.encode(), streams=lp.streams, histograms=len(lp.histograms),
                                      vacancies=len(lp.vacancies), start=entries.start, handlers=handlers,
                                      report=entries.report)
            if isinstance(entries, slow.Entries):  # they have the states themselves
                final = entries.finals
                states = lp.engine_states()
                described.size, described.shared, described.states = states.dtype.itemsize, True, states.ctypes.data
                described.unsaved = lp.unsaved and lp.unsaved.encode()
            else:
                states = lp.states(count, group.values)
                final = np.zeros(count, lp.dtype)
                described.size, described.shared = lp.dtype.itemsize, len(states) != count
                described.states, described.finals = states.ctypes.data, final.ctypes.data
            there = None if group.undelivered is None else np.zeros(count, bool)
            if there is None:
                call.add(engine, described, count)
            else:
                call.add_vacant(engine, described, count, group.undelivered == "dropped", there.ctypes.data)
            finals.append((final, there))
        if self._simulation.neighbours is not None:
            self._kept += self._neighbours(self._simulation.neighbours)
            call.set_neighbours(engine, *(array.ctypes.data for array in self._kept))
        return finals

    def _neighbours(self, lists):
        if len(lists) != self._simulation.lp_count:
            raise Error(f"neighbours of {len(lists)} LPs; there are {self._simulation.lp_count}")
        to = np.concatenate(lists) if lists else np.zeros(0, np.uint32)
        return [np.cumsum([0, *map(len, lists)], dtype=np.uint64), to]

    def _watch(self, engine, progress, saves, watch):
        """From time to time Python has the word: to note how far the run is, and to be told of signals."""
        series = []

        def look(_, at):
            try:
                series.append(tuple(getattr(at.contents, name) for name in HISTORY))
                if watch is not None:
                    watch.see(at.contents)
                if progress is not None:
                    self._do(engine, progress(*series[-1]), saves)
            except BaseException as error:
                self.failed(error)
                call.stop(engine)

        self._look = library.PROGRESS(look)
        call.on_progress(engine, self._look, None)
        return series

    @staticmethod
    def _do(engine, asked, saves):
        """What a progress function asks for by what it returns; what is no word does not count."""
        if not isinstance(asked, str):
            return
        if asked == "stop":
            call.stop(engine)
        elif asked == "save" and saves:
            call.save(engine)
        else:
            raise Error("there is no checkpoint to save the run in" if asked == "save" else
                        f"progress returns 'save' or 'stop', not {asked!r:.60}")

    def _hear_of_checkpoints(self, engine, watch):
        def saved(_, now, error):
            try:
                self._signals.saved = not error
                if error:
                    warnings.warn(f"no checkpoint at time {now:g}: {error.decode()}", RuntimeWarning, stacklevel=1)
                elif watch is not None and self._signals.asked:
                    watch.saved(now)
                self._signals.asked = False
            except BaseException as raised:
                self.failed(raised)
                call.stop(engine)

        self._saved = library.SAVED(saved)
        call.on_save(engine, self._saved, None)

    def _hear_of_undelivered(self, engine):
        if any(event.dtype is None for event in self.types):  # otherwise nothing waits for them
            self._forget = library.UNDELIVERED(lambda _, number, payload: self.events.forget(number, payload))
            call.on_undelivered(engine, self._forget, None)

    def _raise_error(self, engine):
        said = call.error(engine).decode()
        where = f"{said}: " if said else ""  # of what a progress function has raised the engine knows nothing
        if self._error is None:
            if said:
                raise Error(said)
        elif isinstance(self._error, Exception) and not isinstance(self._error, Error):
            raise Error(f"{where}{_on_one_line(self._error)}") from self._error
        elif isinstance(self._error, Error):
            raise Error(f"{where}{self._error}") from None
        else:
            raise self._error  # such as SystemExit

    def _result(self, of, options, series, finals):
        states = {}
        for group, (final, there) in zip(self._simulation.groups, finals):
            ids = group.ids if there is None else group.first + np.flatnonzero(there)
            if callable(final):
                columns = final(ids)
            else:
                columns = {name: final[name] if there is None else final[name][there] for name in group.lp.shown}
            states.setdefault(group.lp.name, []).append((ids, columns))
        numbers = {name: getattr(of, name) for name in ("digest", "reached", "wall_s", *library.COUNTS, *library.LATER)}
        if of.trace_error:
            warnings.warn(of.trace_error.decode(), RuntimeWarning, stacklevel=4)
        return Result(parameters={}, options=options, stopped=bool(of.stopped), series=series, finals=states,
                      ended_by_model=bool(of.ended_by_model), ranks=of.rank_count, threads=threads_of(of),
                      events_by_type={event.name: of.events_by_type[event.number] for event in self.types},
                      statistics=statistics_of(of), trace_lost=of.trace_lost,
                      delays=delays_of(of) if int(options.get("lookahead_report", 0)) else None,
                      path=path_of(of) if int(options.get("critical_path", 0)) else None,
                      injected=outside.taken(self, of), **numbers)
