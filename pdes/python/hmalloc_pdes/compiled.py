"""Handlers in machine code, by Numba: nothing in them is a Python object, and the engine calls them by address.

`self` is a record in the LP's state; the context and the report are the engine's pointers; an event is the NamedTuple that
it is in Python, loaded from the payload and stored to it.  What they call of the engine are its C functions.
"""

import inspect

import llvmlite.binding
import numba
import numpy
from llvmlite import ir
from numba import types
from numba.core import cgutils, errors
from numba.core.datamodel import models
from numba.core.errors import NumbaError, TypingError
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import intrinsic, overload_attribute, overload_method, register_model
from numba.np import numpy_support
from numba.np.arrayobj import record_getattr

from . import library, members, records
from .errors import Error, text_of

REFUSALS = (NumbaError, NotImplementedError, getattr(errors, "UnsupportedBytecodeError", NumbaError))
_UNKNOWN = "is no event of this model: no LP has a handler of it"
_INT32, _INT64, _DOUBLE, _VOID = ir.IntType(32), ir.IntType(64), ir.DoubleType(), ir.VoidType()
_BYTES = ir.IntType(8).as_pointer()

for _name in library.FUNCTIONS:
    llvmlite.binding.add_symbol(f"hm_pdes_{_name}", library.address(f"hm_pdes_{_name}"))


def _call(builder, name, result, *arguments):
    """A call of the engine's function of that name."""
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    function = cgutils.get_or_insert_function(builder.module, kind, f"hm_pdes_{name}")
    function.attributes.add("nounwind")
    return builder.call(function, arguments)


# ---- The context.

class ContextType(types.Type):
    """Knows the model's event types, and so what number `send` gives to each."""

    def __init__(self, events):
        self.events = {event.event: event for event in events}
        super().__init__(f"pdes.Context({', '.join(f'{event.name}@{id(event.event):x}' for event in events)})")


register_model(ContextType)(models.OpaqueModel)


def _add_attribute(name, kind, read):
    @intrinsic
    def get(typing, context):
        place = getattr(library.Lp, name).offset

        def code(target, builder, signature, arguments):
            pointer = builder.gep(arguments[0], [ir.Constant(_INT64, place)])
            value = builder.load(builder.bitcast(pointer, read.as_pointer()))
            return builder.zext(value, _INT64) if read is _INT32 else value

        return kind(context), code

    @overload_attribute(ContextType, name)
    def attribute(context):
        return lambda context: get(context)


for _name in ("now", "end", "lookahead"):
    _add_attribute(_name, types.float64, _DOUBLE)
for _name in ("id", "lp_count"):
    _add_attribute(_name, types.int64, _INT32)


def _draw(name, kind, *parameters):
    """The intrinsic that calls hm_pdes_NAME(context, stream, parameters...)."""

    def code(target, builder, signature, arguments):
        pointer, stream, *rest = arguments
        return _call(builder, name, target.get_value_type(kind), pointer, builder.trunc(stream, _INT32), *rest)

    if not parameters:
        return intrinsic(lambda typing, context, stream: (kind(context, types.int64), code))
    return intrinsic(lambda typing, context, stream, parameter: (kind(context, types.int64, *parameters), code))


_bits, _uniform = _draw("bits", types.uint64), _draw("uniform", types.float64)
_integer = _draw("integer", types.int64, types.int64)
_exponential_of = _draw("exponential_of", types.float64, types.uint64)
_EDGES = numpy.ctypeslib.as_array(library.call.exponential_edges(), (257,)).copy()
_LAST_LAYER, _NEXT = numpy.uint64(255), numpy.uint64(1)


@intrinsic
def _own_stream(typing, context):
    """The address of the LP's own stream; 0 if it is none of splitmix."""

    def code(target, builder, signature, arguments):
        place = builder.gep(arguments[0], [ir.Constant(_INT64, library.Lp.splitmix.offset)])
        return builder.load(builder.bitcast(place, _INT64.as_pointer()))

    return types.int64(context), code


@intrinsic
def _splitmix(typing, stream):
    """The next bits of a stream, as pdes::Random has them."""

    def code(target, builder, signature, arguments):
        state = builder.inttoptr(arguments[0], _INT64.as_pointer())
        step = builder.load(builder.gep(state, [ir.Constant(_INT64, 1)]))
        x = builder.add(builder.load(state), step)
        builder.store(x, state)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            x = builder.mul(builder.xor(x, builder.lshr(x, ir.Constant(_INT64, shift))), ir.Constant(_INT64, factor))
        return builder.xor(x, builder.lshr(x, ir.Constant(_INT64, 31)))

    return types.uint64(stream), code


@intrinsic
def _in_unit(typing, number):
    """In [0, 1), of the upper 53 bits."""

    def code(target, builder, signature, arguments):
        upper = builder.lshr(arguments[0], ir.Constant(_INT64, 11))
        return builder.fmul(builder.sitofp(upper, _DOUBLE), ir.Constant(_DOUBLE, 2.0**-53))

    return types.float64(types.uint64), code


@intrinsic
def _below(typing, number, n):
    """In [0, n)."""

    def code(target, builder, signature, arguments):
        wide = ir.IntType(128)
        product = builder.mul(*(builder.zext(argument, wide) for argument in arguments))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), _INT64)

    return types.int64(types.uint64, types.int64), code


@overload_method(ContextType, "bits")
def bits(context, stream=0):
    return lambda context, stream=0: _bits(context, stream)


@overload_method(ContextType, "uniform")
def uniform(context, stream=0):
    def code(context, stream=0):
        own = _own_stream(context)
        return _in_unit(_splitmix(own)) if stream == 0 and own != 0 else _uniform(context, stream)

    return code


@overload_method(ContextType, "chance")
def chance(context, p, stream=0):
    return lambda context, p, stream=0: context.uniform(stream) < p


@overload_method(ContextType, "exponential")
def exponential(context, mean, stream=0):
    def code(context, mean, stream=0):
        own = _own_stream(context)
        bits = _splitmix(own) if stream == 0 and own != 0 else _bits(context, stream)
        layer = bits & _LAST_LAYER
        x = _in_unit(bits) * _EDGES[layer]
        return mean * (x if x < _EDGES[layer + _NEXT] else _exponential_of(context, stream, bits))

    return code


@overload_method(ContextType, "integer")
def integer(context, n, stream=0):
    def code(context, n, stream=0):
        own = _own_stream(context)
        return _below(_splitmix(own), n) if stream == 0 and own != 0 and n > 0 else _integer(context, stream, n)

    return code


def _event_type(context, event):
    """Of the event that is sent; what is none is the model's mistake, which plain Python would not do either."""
    known = context.events.get(getattr(event, "instance_class", None))
    if known is None:
        name = event.instance_class.__name__ if hasattr(event, "instance_class") else str(event)
        raise TypingError(f"{name} {_UNKNOWN}")
    if known.dtype is None:
        raise TypingError(f"{known.name} has a field that is no number")
    return known


def _payload(target, builder, known, event, value):
    """The address of an event's payload."""
    payload = cgutils.alloca_once(builder, ir.ArrayType(_INT64, max(1, (known.size + 7) // 8)))
    start = builder.bitcast(payload, _BYTES)
    for field, value_of_field, given in zip(known.event._fields, cgutils.unpack_tuple(builder, value), event.types):
        kind = numpy_support.from_dtype(known.dtype[field])
        place = builder.gep(start, [ir.Constant(_INT64, known.dtype.fields[field][1])])
        place = builder.bitcast(place, target.get_data_type(kind).as_pointer())
        target.pack_value(builder, kind, target.cast(builder, value_of_field, given, kind), place)
    if known.cancellable:
        place = builder.gep(start, [ir.Constant(_INT64, known.dtype.itemsize)])
        none = ir.Constant(_INT64, int.from_bytes(records.NO_TIMER, "little"))
        builder.store(none, builder.bitcast(place, _INT64.as_pointer()), align=1)
    return start


@intrinsic
def _send(typing, context, to, delay, event, priority):
    known = _event_type(context, event)

    def code(target, builder, signature, arguments):
        pointer, destination, after, value, urgency = arguments
        start = _payload(target, builder, known, event, value)
        _call(builder, "send", _VOID, pointer, destination, after, ir.Constant(_INT32, known.number), start,
              builder.trunc(urgency, _INT32))
        return target.get_dummy_value()

    return types.none(context, types.int64, types.float64, event, types.int64), code


@overload_method(ContextType, "send")
def send(context, to, delay, event, priority=0):
    _event_type(context, event)
    return lambda context, to, delay, event, priority=0: _send(context, to, delay, event, priority)


@overload_method(ContextType, "send_self")
def send_self(context, delay, event, priority=0):
    _event_type(context, event)
    return lambda context, delay, event, priority=0: _send(context, context.id, delay, event, priority)


@intrinsic
def _set_timer(typing, context, timer, delay, event, priority):
    known = _event_type(context, event)

    def code(target, builder, signature, arguments):
        pointer, place, after, value, urgency = arguments
        start = _payload(target, builder, known, event, value)
        _call(builder, "set_timer", _VOID, pointer, builder.bitcast(place, _BYTES), after, ir.Constant(_INT32, known.number),
              start, builder.trunc(urgency, _INT32))
        return target.get_dummy_value()

    return types.none(context, timer, types.float64, event, types.int64), code


@overload_method(ContextType, "set")
def set_timer(context, timer, delay, event, priority=0):
    known = _event_type(context, event)
    if not known.cancellable:
        raise TypingError(f"{known.name} {records.NOT_CANCELLABLE}")
    if timer != _MEMBERS[members.Timer]:
        raise TypingError("context.set needs a Timer")
    return lambda context, timer, delay, event, priority=0: _set_timer(context, timer, delay, event, priority)


@intrinsic
def _end_after(typing, context, delay):
    def code(target, builder, signature, arguments):
        _call(builder, "end_after", _VOID, *arguments)
        return target.get_dummy_value()

    return types.none(context, types.float64), code


@overload_method(ContextType, "end_after")
def end_after(context, delay):
    return lambda context, delay: _end_after(context, delay)


# ---- The report.

class ReportType(types.Type):
    pass


register_model(ReportType)(models.OpaqueModel)
_REPORT = ReportType("pdes.Report")


def _add_report(method, takes=None, kind=None):
    """Of a number that is taken as one of that type, or of a field of that kind."""

    def emitter(name):
        @intrinsic
        def emit(typing, report, value):
            def code(target, builder, signature, arguments):
                report, value = arguments
                if kind is not None:  # by its address
                    value = builder.bitcast(value, _BYTES)
                _call(builder, f"report_{method}", _VOID, report, target.insert_const_string(builder.module, name), value)
                return target.get_dummy_value()

            return types.none(report, takes or value), code

        return emit

    @overload_method(ReportType, method, prefer_literal=True)
    def reporting(report, name, value):
        if not isinstance(name, types.StringLiteral):
            raise TypingError(f"report.{method} needs a name that is written there")
        if kind is not None and value != _MEMBERS[kind]:
            raise TypingError(f"report.{method} needs a {kind.__name__}")
        emit = emitter(name.literal_value)
        return lambda report, name, value: emit(report, value)


_add_report("count", types.int64)
_add_report("sum", types.float64)
_add_report("tally", kind=members.Tally)
_add_report("level", kind=members.Level)
_add_report("histogram", kind=members.Histogram)
_add_report("interval", kind=members.BatchMeans)


# ---- States.

def _fields_of(dtype, kinds=()):
    """kinds: types of fields that are more than numbers."""
    def field(name):
        return {"type": dict(kinds).get(name) or numpy_support.from_dtype(dtype[name]), "offset": dtype.fields[name][1]}

    return [(name, field(name)) for name in dtype.names or ()]


def _add_method(kind, name, method):
    def choose(*arguments, **more):
        return method

    choose.__signature__ = inspect.signature(method)
    overload_method(kind, name, jit_options={"boundscheck": True})(choose)


def _member_type(python):
    """Of such a field: its methods are those that it has in plain Python."""
    kind = type(f"{python.__name__}Type", (types.Record,), {})
    register_model(kind)(models.RecordModel)
    for name in getattr(python, "in_machine_code", ()):
        _add_method(kind, name, getattr(python, name))
    return kind(_fields_of(python.dtype), python.dtype.itemsize, True)


_MEMBERS = {kind: _member_type(kind) for kind in members.MEMBERS}


def _of_member(name, result, *parameters):
    """The intrinsic that calls hm_pdes_NAME(address of the field, parameters...)."""

    def code(target, builder, signature, arguments):
        member, *rest = arguments
        return _call(builder, name, target.get_value_type(result), builder.bitcast(member, _BYTES), *rest)

    if not parameters:
        return intrinsic(lambda typing, member: (result(member), code))
    return intrinsic(lambda typing, member, parameter: (result(member, *parameters), code))


_half_width = _of_member("half_width", types.float64)
_histogram_add = _of_member("histogram_add", types.int32, types.float64)


@overload_method(type(_MEMBERS[members.BatchMeans]), "half_width")
def half_width(means):
    return lambda means: _half_width(means)


@overload_method(type(_MEMBERS[members.Histogram]), "add")
def add(histogram, value):
    def code(histogram, value):
        if _histogram_add(histogram, value) == 0:
            raise MemoryError

    return code


def _read_as(kind):
    """Narrow numbers are narrow only in memory, as in plain Python: no sum of them wraps or is rounded."""
    if isinstance(kind, types.Integer) and kind.bitwidth < 64:
        return types.int64
    return types.float64 if kind == types.float32 else kind


class StateType(types.Record):
    """`self`.  Each class of LPs derives one of its own, which has its methods."""


@infer_getattr
class StateAttributes(AttributeTemplate):
    key = StateType

    def generic_resolve(self, state, attribute):
        return _read_as(state.typeof(attribute)) if attribute in state.fields else None


@lower_getattr_generic(StateType)
def _get_field(target, builder, state, value, attribute):
    kind = state.typeof(attribute)
    return target.cast(builder, record_getattr(target, builder, state, value, attribute), kind, _read_as(kind))


def _state_type(lp):
    name = f"{lp.name}State"
    kind = type(name, (StateType,), {})
    register_model(kind)(models.RecordModel)
    for name, helper in lp.helpers.items():
        _add_method(kind, name, helper)
    kinds = {name: _MEMBERS[lp.fields[name]] for name in lp.observed + lp.in_engine}
    return kind(_fields_of(lp.dtype, kinds), lp.dtype.itemsize, True)


def _as(kind):
    """The intrinsic that takes the engine's pointer for a state, a context or a report."""

    def code(target, builder, signature, arguments):
        return builder.bitcast(arguments[0], target.get_value_type(kind))

    return intrinsic(lambda typing, pointer: (kind(types.voidptr), code))


def _load_event(event):
    """The intrinsic that makes an event of a payload."""
    kinds = [numpy_support.from_dtype(event.dtype[field]) for field in event.event._fields]
    kind = types.BaseTuple.from_types([_read_as(number) for number in kinds], event.event)

    def code(target, builder, signature, arguments):
        values = []
        for field, number in zip(event.event._fields, kinds):
            place = builder.gep(arguments[0], [ir.Constant(_INT64, event.dtype.fields[field][1])])
            place = builder.bitcast(place, target.get_data_type(number).as_pointer())
            values.append(target.cast(builder, target.unpack_value(builder, number, place), number, _read_as(number)))
        return target.make_tuple(builder, kind, values)

    return intrinsic(lambda typing, pointer: (kind(types.voidptr), code))


# ---- What the engine calls: each returns 1, and if the function has raised something, 0, and sys.unraisablehook has it.

class Entries:
    """The addresses of a class's functions."""

    def __init__(self, lp, events):
        self._state, self._context = _as(_state_type(lp)), _as(ContextType(events))
        self._kept = []
        self.start = self._start(lp.start) if lp.start else None
        handlers = [(lp.handlers.get(event.event), event) for event in events]
        self.handlers = [function and self._handler(function, event) for function, event in handlers]
        self.report = self._report(lp.report) if lp.report else None

    def _start(self, function):
        state, context, start = self._state, self._context, self._compiled(function)

        def entry(lp, place, event):
            start(state(place), context(lp))
            return 1

        return self._address(entry, types.voidptr, types.voidptr, types.voidptr)

    def _handler(self, function, event):
        state, context, handle, load = self._state, self._context, self._compiled(function), _load_event(event)

        def entry(lp, place, payload):
            handle(state(place), context(lp), load(payload))
            return 1

        return self._address(entry, types.voidptr, types.voidptr, types.voidptr)

    def _report(self, function):
        state, as_report, report = self._state, _as(_REPORT), self._compiled(function)

        def entry(into, place):
            report(state(place), as_report(into))
            return 1

        return self._address(entry, types.voidptr, types.voidptr)

    @staticmethod
    def _compiled(function):
        return numba.njit(boundscheck=True)(function)

    def _address(self, entry, *arguments):
        callback = numba.cfunc(types.int32(*arguments))(entry)
        self._kept.append(callback)
        return callback.address


def entries(lp, events):
    """Compiles a class of LPs for a model with these event types.  Raises one of REFUSALS if Numba does not take it."""
    for event in events:
        if event.dtype is None and event.event in lp.handlers:
            raise NotImplementedError(f"{event.name} has a field that is no number")
    if lp.dtype is None:
        raise NotImplementedError("it has a field that is no number")
    try:
        return Entries(lp, events)
    except NumbaError as error:
        for line in text_of(error).splitlines():
            if _UNKNOWN in line or records.NOT_CANCELLABLE in line:
                raise Error(f"{lp.name}: {line.strip().removeprefix('TypingError: ')}") from None
        raise
