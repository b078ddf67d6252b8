"""What a checkpoint has of plain Python: the states of its LPs, and the objects that events on their way carry.

All are one pickle, so that what refers to one object does so afterwards.  A state is pickled as its fields and an event as
its number and its values: their classes need no name by which another process finds them.
"""

import bisect
import ctypes
import io
import pickle

from . import library


class _Pickler(pickle.Pickler):
    def __init__(self, file, known):
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._known = known  # by address

    def persistent_id(self, it):
        return self._known.get(id(it))


class _Unpickler(pickle.Unpickler):
    def __init__(self, file, meant):
        super().__init__(file)
        self._meant = meant

    def persistent_load(self, name):
        return self._meant(*name)


class Pickles:
    """Of one run, of whose classes these entries are plain Python."""

    def __init__(self, engine, entries, events):
        self._entries, self._events = entries, events
        self._firsts = [of.first for of in entries]
        self._given = None  # to the engine, until the next call
        self._functions = library.SAVER(self._save), library.LOADER(self._load)
        library.call.on_checkpoint(engine, *self._functions, None)

    def _states(self):
        return {lp: state for entries in self._entries for lp, state in entries.states.items()}

    def _known(self, states):
        """What is not pickled where something refers to it, by address: the state of an LP; and the class of a state, for
        that of an LP that has ended is an object as any other."""
        classes = {id(entries.plain_class): ("class", number) for number, entries in enumerate(self._entries)}
        return classes | {id(state): ("state", lp) for lp, state in states.items()}

    def _meant(self, kind, number):
        return self._entries[number].plain_class if kind == "class" else self._restored(number)

    def _restored(self, lp):
        return self._entries[bisect.bisect(self._firsts, lp) - 1].restored(lp)

    def _save(self, _, size, why_not):
        states = self._states()
        known = self._known(states)
        waiting = self._events.waiting(lambda state: id(state) in known)
        try:
            self._given = _pickled(({lp: vars(state) for lp, state in states.items()}, waiting), known)
            size[0] = len(self._given)
            return _address_of(self._given)
        except BaseException as error:
            self._given = (self._culprit(states, waiting, known) or _text_of(error)).encode()
            why_not[0] = self._given
            return None

    def _load(self, _, place, size):
        try:
            fields, waiting = _Unpickler(io.BytesIO(ctypes.string_at(place, size)), self._meant).load()
            for lp, values in fields.items():
                vars(self._restored(lp)).update(values)
            self._events.wait(waiting)
            return None
        except BaseException as error:
            self._given = _text_of(error).encode()
            return _address_of(self._given)

    def _culprit(self, states, waiting, known):
        """The first that cannot be pickled, and why."""
        fields = ((f"{type(state).__name__}.{name} of LP {lp}", value)
                  for lp, state in states.items() for name, value in vars(state).items())
        carried = ((f"event {self._events.types[number].name}", values) for number, values, _ in waiting.values())
        for name, value in (*fields, *carried):
            try:
                _pickled(value, known)
            except Exception as error:
                return f"{name}: {_text_of(error)}"
        return None


def _pickled(it, known):
    file = io.BytesIO()
    _Pickler(file, known).dump(it)
    return file.getvalue()


def _text_of(error):
    return f"{type(error).__name__}: {error}".partition("\n")[0]


def _address_of(text):
    return ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p).value
