"""Classes of logical processes."""

import inspect

import numpy as np

from . import members, records
from .errors import Error


class LpClass:
    """What the decorator `lp` has found in a class: its fields with their first values, and its functions by their roles."""

    def __init__(self, python, streams):
        self.python, self.name, self.streams = python, python.__name__, streams
        self.plain = getattr(python, "plain_python", False)  # by its own will, and so without a warning
        self.unsaved = getattr(python, "unsaved_because", None)
        self.fields = records.annotations(python)
        self.first_values = {name: getattr(python, name) for name in self.fields if hasattr(python, name)}
        self.dtypes = {name: records.dtype_of(annotation) for name, annotation in self.fields.items()}
        self.dtype = records.layout(self.dtypes)
        self.observed = self._fields_of(members.Observed)
        self.in_engine = self._fields_of(members.InEngine)
        self.shown = [name for name in self.fields if name not in self.in_engine]
        self.histograms = self._fields_of(members.Histogram)
        self.vacancies = self._fields_of(members.Vacancies)
        # What the engine keeps of an LP whose state is an object of Python's.
        self.engine_dtype = records.layout({name: self.fields[name].dtype for name in self.in_engine})
        functions = dict(inspect.getmembers(python, inspect.isfunction))
        self.start, self.report = functions.pop("start", None), functions.pop("report", None)
        self.handlers = {}  # event: function, in the order in which they are written
        for function in sorted(functions.values(), key=lambda function: function.__code__.co_firstlineno):
            event = self._event_of(function)
            if event is None:
                continue
            if event in self.handlers:
                names = f"{self.handlers[event].__name__}, {function.__name__}"
                raise Error(f"{self.name} has two handlers of {event.__name__}: {names}")
            self.handlers[event] = function
        handled = set(self.handlers.values())
        self.helpers = {name: function for name, function in functions.items() if function not in handled}
        if self.start is None and not self.handlers:
            raise Error(f"{self.name} does nothing: it has no start, and no method with an event as its third parameter")
        self.compiled = {}  # by event types of a model: compiled.Entries, or the reason why there are none

    def _fields_of(self, kind):
        return [name for name, meaning in self.fields.items() if inspect.isclass(meaning) and issubclass(meaning, kind)]

    @staticmethod
    def _event_of(function):
        parameters = list(inspect.signature(function).parameters)
        annotation = records.annotations(function).get(parameters[-1]) if len(parameters) == 3 else None
        return annotation if records.is_event(annotation) else None

    def values(self, given):
        """The first values, for each field that has one: `given` ones and those of the class."""
        for name in given:
            if name not in self.fields:
                raise Error(f"{self.name} has no field '{name}'")
        values = self.first_values | given
        for name in values:
            if name in self.in_engine:
                raise Error(f"{self.name}.{name} takes no value")
        for name, annotation in self.fields.items():
            if name not in values and getattr(annotation, "needs_value", True):
                raise Error(f"{self.name} needs a value of '{name}'")
        return values

    def states(self, count, values):
        """As the engine wants them: an array of one state, or of one for each LP."""
        each = any(self.is_per_lp(name, value) for name, value in values.items())
        states = np.zeros(count if each else 1, self.dtype)
        for name, annotation in self.fields.items():
            given = [values[name]] if name in values else []
            try:
                if name in self.observed:
                    for part, first in annotation.first(*given).items():
                        states[name][part] = first
                elif given:
                    [states[name]] = given
            except (ValueError, TypeError, OverflowError) as error:
                raise Error(f"{self.name}.{name} cannot be {values[name]!r:.60} for {count} LPs: {error}") from None
        return self._placed(states)

    def engine_states(self):
        """The same of LPs whose states are objects of Python's."""
        return self._placed(np.zeros(1, self.engine_dtype))

    def _placed(self, states):
        for number, name in [*enumerate(self.histograms), *enumerate(self.vacancies)]:
            states[name]["number"], states[name]["place"] = number, states.dtype.fields[name][1]
        return states

    def is_per_lp(self, name, value):
        """Of a field that is a number or an array of them: whether there is one value for each LP."""
        dtype = self.dtypes[name]
        return dtype is not None and np.ndim(value) > len(dtype.shape)


def lp(python=None, *, streams=0):
    """Declares a class of logical processes, with `streams` random streams besides each LP's own.

    Annotated fields are the state of an LP.  `start(self, context)` sends first events; a method whose third parameter is
    annotated by an event, `def arrive(self, context, event: Arrival)`, is called for these; `report(self, report)` is called
    at the end.  What else there is helps them.
    """

    def declared(python):
        python.__pdes__ = LpClass(python, streams)
        return python

    return declared if python is None else declared(python)
