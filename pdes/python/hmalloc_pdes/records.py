"""States and events as records: what an annotation means in memory."""

import typing

import numpy as np

from .errors import Error
from .members import is_member

NO_TIMER = b"\xff\xff\xff\xff\0\0\0\0"  # where the engine has the setting of a timer
NOT_CANCELLABLE = "can be cancelled by no timer: write @cancellable above it"


class Array:
    """The type of a field that is an array: `Array(float, 8)`, `Array(int, 3, 3)`."""

    needs_value = False

    def __init__(self, element, *shape):
        self.dtype = np.dtype((_scalar(element), shape))


def _scalar(annotation):
    """The dtype of a number; None for all else."""
    if annotation in (int, float, bool):
        return np.dtype({int: "i8", float: "f8", bool: "?"}[annotation])
    number = isinstance(annotation, np.dtype) or (isinstance(annotation, type) and issubclass(annotation, np.generic))
    dtype = np.dtype(annotation) if number else None
    return dtype if dtype is not None and dtype.kind in "iufb" and dtype.itemsize <= 8 else None


def dtype_of(annotation):
    """Of a field; None if only plain Python can hold it."""
    if is_member(annotation):
        return annotation.dtype
    return annotation.dtype if isinstance(annotation, Array) else _scalar(annotation)


def layout(dtypes):
    """The dtype of a record of these fields; None if one of them needs plain Python."""
    if any(dtype is None for dtype in dtypes.values()):  # not `None in`: numpy holds float64 equal to None
        return None
    return np.dtype(list(dtypes.items()), align=True)


def converter(dtype):
    """What makes of a number of Python's what a field of a record would: wrapped, cut off, rounded."""
    if dtype in (np.dtype("i8"), np.dtype("f8")):
        return int if dtype.kind == "i" else float
    return lambda value: np.array(value).astype(dtype).item()


def annotations(of):
    """A class's or a function's, whether they are written as text or not."""
    try:
        return typing.get_type_hints(of)
    except NameError:
        # A class that was defined in a function knows its neighbours only if its module does without `from __future__`.
        return {name: meaning for name, meaning in of.__annotations__.items() if not isinstance(meaning, str)}


def is_event(annotation):
    return isinstance(annotation, type) and issubclass(annotation, tuple) and hasattr(annotation, "_fields")


def cancellable(event):
    """Declares that timers may be set to an event: a decorator above its NamedTuple."""
    event.__pdes_cancellable__ = True
    return event


def makes(event):
    """Declares that an event makes an LP at an id where nobody is (Simulation.add_vacant): likewise."""
    event.__pdes_makes__ = True
    return event


class EventType:
    """A NamedTuple as the engine sees it; `dtype` is None if its fields are objects, which only plain Python knows."""

    def __init__(self, event, number):
        self.event, self.number, self.name = event, number, event.__name__
        fields = annotations(event)
        missing = [name for name in event._fields if name not in fields]
        if missing:
            raise Error(f"event {self.name}: field {missing[0]} has no type; derive it from typing.NamedTuple")
        self.dtype = layout({name: _scalar(fields[name]) for name in event._fields})
        self.cancellable = getattr(event, "__pdes_cancellable__", False)
        self.makes = getattr(event, "__pdes_makes__", False)
        if self.makes and self.cancellable:
            raise Error(f"event {self.name} makes LPs, and so no timer can cancel it")
        # Last comes which setting of a timer it is, which the engine fills in.
        self.size = (8 if self.dtype is None else self.dtype.itemsize) + (len(NO_TIMER) if self.cancellable else 0)
        self.convert = [converter(self.dtype[name]) for name in event._fields] if self.dtype is not None else []
