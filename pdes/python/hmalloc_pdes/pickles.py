"""What a checkpoint has of plain Python: the states of its LPs, and the objects that events on their way carry.

All are one pickle, so that what refers to one object does so afterwards.  A state is pickled as its fields and an event as
its number and its values: their classes need no name by which another process finds them.
"""

import ctypes
import io
import pickle

from . import library


class _Pickler(pickle.Pickler):
    def __init__(self, file, lps):
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._lps = lps  # by the address of their states

    def persistent_id(self, it):
        """Of a state that something refers to: its LP."""
        return self._lps.get(id(it))


class _Unpickler(pickle.Unpickler):
    def __init__(self, file, state):
        super().__init__(file)
        self._state = state

    def persistent_load(self, lp):
        return self._state(lp)


class Pickles:
    """Of one run, of whose classes these entries are plain Python."""

    def __init__(self, engine, entries, events):
        self._entries, self._events = entries, events
        self._given = None  # to the engine, until the next call
        self._functions = library.SAVER(self._save), library.LOADER(self._load)
        library.call.on_checkpoint(engine, *self._functions, None)

    def _states(self):
        return {lp: state for entries in self._entries for lp, state in entries.states.items()}

    def _state(self, lp):
        return next(entries for entries in self._entries if lp in entries.ids).restored(lp)

    def _save(self, _, size, why_not):
        states, waiting = self._states(), self._events.waiting()
        try:
            self._given = _pickled(({lp: vars(state) for lp, state in states.items()}, waiting), _lps_of(states))
            size[0] = len(self._given)
            return _address_of(self._given)
        except BaseException as error:
            self._given = (self._culprit(states, waiting) or _text_of(error)).encode()
            why_not[0] = self._given
            return None

    def _load(self, _, place, size):
        try:
            fields, waiting = _Unpickler(io.BytesIO(ctypes.string_at(place, size)), self._state).load()
            for lp, values in fields.items():
                vars(self._state(lp)).update(values)
            self._events.wait(waiting)
            return None
        except BaseException as error:
            self._given = _text_of(error).encode()
            return _address_of(self._given)

    def _culprit(self, states, waiting):
        """The first that cannot be pickled, and why."""
        fields = ((f"{type(state).__name__}.{name} of LP {lp}", value)
                  for lp, state in states.items() for name, value in vars(state).items())
        lps = _lps_of(states)
        carried = ((f"event {self._events.types[number].name}", values) for number, values in waiting.values())
        for name, value in (*fields, *carried):
            try:
                _pickled(value, lps)
            except Exception as error:
                return f"{name}: {_text_of(error)}"
        return None


def _lps_of(states):
    return {id(state): lp for lp, state in states.items()}


def _pickled(it, lps):
    file = io.BytesIO()
    _Pickler(file, lps).dump(it)
    return file.getvalue()


def _text_of(error):
    return f"{type(error).__name__}: {error}".partition("\n")[0]


def _address_of(text):
    return ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p).value
