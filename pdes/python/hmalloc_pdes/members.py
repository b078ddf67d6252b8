"""Fields that are more than numbers: what an LP observes, as pdes/statistics.h has it, and its timers (pdes/timer.h).

The methods that a class names as `in_machine_code` are compiled, too, with the record of the field for `self`.
"""

import ctypes
import math

import numpy as np

from . import library

call = library.call
NO_IDS = "there are no such ids to be vacant"


class Observed:
    """Numbers, which are all that there is of it; `first` says what is not zero among them at the start."""

    needs_value = False

    def __init__(self, *value):
        for name in self.dtype.names:
            setattr(self, name, self.dtype[name].type().item())
        for name, first in self.first(*value).items():
            setattr(self, name, self.dtype[name].type(first).item())

    def record(self):
        """As the engine wants it."""
        return np.array(tuple(getattr(self, name) for name in self.dtype.names), self.dtype)


class Tally(Observed):
    """Count, mean and extremes of observations: the type of a field, `waiting: Tally`."""

    dtype = np.dtype([("count", "i8"), ("sum", "f8"), ("least", "f8"), ("most", "f8")], align=True)
    in_machine_code = ("add",)

    @staticmethod
    def first(value=None):
        return {"least": math.inf, "most": -math.inf}

    def add(self, value):
        value = float(value)
        self.count += 1
        self.sum += value
        if value < self.least:
            self.least = value
        if value > self.most:
            self.most = value


class Level(Observed):
    """A number that stays what it is until it is changed, such as the length of a queue: mean over virtual time, and
    extremes.  The field's value is its first one."""

    dtype = np.dtype([(name, "f8") for name in ("value", "began", "since", "least", "most", "before")], align=True)
    in_machine_code = ("set", "add", "restart", "time", "area")

    @staticmethod
    def first(value=0.0):
        return {"value": value, "least": value, "most": value}

    def set(self, now, value):
        value = float(value)
        self.before += self.value * (now - self.since)
        self.since = now
        self.value = value
        if value < self.least:
            self.least = value
        if value > self.most:
            self.most = value

    def add(self, now, change):
        self.set(now, self.value + change)

    def restart(self, now):
        """Forgets what has been, but for the present value: at the end of a warm-up."""
        self.began = now
        self.since = now
        self.before = 0.0
        self.least = self.value
        self.most = self.value

    def time(self, now):
        """Until `now`, and not before the last change."""
        return (now if now > self.since else self.since) - self.began

    def area(self, now):
        return self.before + self.value * (now - self.since) if now > self.since else self.before


class BatchMeans(Observed):
    """The mean of observations that depend on those before them, and how far it may be off.  The field's value is the number
    of observations in a batch."""

    dtype = np.dtype([*((name, "i8") for name in ("size", "batches", "in_open")),
                      *((name, "f8") for name in ("open", "sum", "squares", "least", "most"))], align=True)
    in_machine_code = ("add", "mean")
    needs_value = True

    @staticmethod
    def first(size):
        if np.any(np.less(size, 1)):
            raise ValueError("a batch needs at least one observation")
        return {"size": size, "least": math.inf, "most": -math.inf}

    def add(self, value):
        self.open += value
        self.in_open += 1
        if self.in_open < self.size:
            return
        mean = self.open / self.size
        self.batches += 1
        self.sum += mean
        self.squares += mean * mean
        if mean < self.least:
            self.least = mean
        if mean > self.most:
            self.most = mean
        self.open = 0.0
        self.in_open = 0

    def mean(self):
        return self.sum / self.batches if self.batches > 0 else 0.0

    def half_width(self):
        """The mean is within it, either way, with a confidence of 95 %; infinite below two batches."""
        record = self.record()  # which lives as long as the call
        return call.half_width(record.ctypes.data)


class InEngine:
    """What the engine looks after; in plain Python it is known by the address of its record, while a handler runs."""

    needs_value = False
    address = None


class Histogram(InEngine):
    """How observations are spread: count, mean, extremes, and quantiles to 2 %."""

    dtype = np.dtype([("number", "i4"), ("place", "i4")], align=True)

    def add(self, value):
        if not call.histogram_add(self.address, value):
            raise MemoryError


class Vacancies(InEngine):
    """Ids that an LP may fill (pdes/vacancies.h); at first none."""

    dtype = Histogram.dtype

    def set(self, first, count):
        """These are they, from now on."""
        if not call.vacancies_set(self.address, int(first), int(count)):
            raise ValueError(NO_IDS)

    def take(self):
        """One that is vacant: what was given back last comes first.  -1: there is none."""
        return call.vacancies_take(self.address)

    def give_back(self, vacant):
        if not call.vacancies_give_back(self.address, int(vacant)):
            raise MemoryError


class Timer(InEngine):
    """Set by `context.set(self.timer, delay, event)` to an event that is handled unless the timer is cancelled, or set anew,
    before."""

    dtype = np.dtype([("life", "u4"), ("set", "u4")], align=True)
    in_machine_code = ("is_set", "cancel")
    ticket = None  # in plain Python: of the object that its event carries

    @property
    def set(self):
        return ctypes.c_uint32.from_address(self.address + 4).value

    @set.setter
    def set(self, value):
        ctypes.c_uint32.from_address(self.address + 4).value = value

    def is_set(self):
        """Whether an event is on its way, or would be if its time were not beyond the end."""
        return self.set != 0

    def cancel(self):
        """Returns whether there was an event."""
        was_set = self.set != 0
        self.set = 0
        return was_set


# A class that is derived from one is an object of plain Python.
MEMBERS = (Tally, Level, BatchMeans, Histogram, Vacancies, Timer)


def is_member(annotation):
    return any(annotation is kind for kind in MEMBERS)
