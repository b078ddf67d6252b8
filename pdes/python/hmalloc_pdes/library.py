"""The engine: libhmalloc-pdes.so, whose functions include/pdes/foreign.h describes."""

import ctypes
import os
from ctypes import POINTER, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path

NAME = "libhmalloc-pdes.so"


class Lp(ctypes.Structure):
    _fields_ = [("now", c_double), ("end", c_double), ("lookahead", c_double), ("id", c_uint32), ("lp_count", c_uint32),
                ("splitmix", c_void_p)]


HANDLER = ctypes.CFUNCTYPE(c_int, POINTER(Lp), c_void_p, c_void_p)
REPORTER = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p)


class Class(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("size", c_size_t), ("streams", c_uint32), ("histograms", c_uint32),
                ("vacancies", c_uint32), ("start", c_void_p), ("handlers", POINTER(c_void_p)), ("report", c_void_p),
                ("states", c_void_p), ("shared", c_int), ("finals", c_void_p), ("unsaved", c_char_p)]


class Progress(ctypes.Structure):
    _fields_ = [("wall_s", c_double), ("now", c_double), ("events", c_uint64), ("pending", c_uint64), ("bytes", c_uint64),
                ("window", c_double), ("windows", c_uint64), ("thread_count", c_uint64), ("blocked_s", POINTER(c_double)),
                ("thread_events", POINTER(c_uint64))]


class Injected(ctypes.Structure):
    _fields_ = [("time", c_double), ("to", c_uint32), ("type", c_uint32), ("priority", c_uint32), ("payload", c_void_p)]


PROGRESS = ctypes.CFUNCTYPE(None, c_void_p, POINTER(Progress))
UNDELIVERED = ctypes.CFUNCTYPE(None, c_void_p, c_uint32, c_void_p)
SAVED = ctypes.CFUNCTYPE(None, c_void_p, c_double, c_char_p)
SAVER = ctypes.CFUNCTYPE(c_void_p, c_void_p, POINTER(c_size_t), POINTER(c_char_p))
LOADER = ctypes.CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_size_t)


class Statistic(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("kind", c_int64), ("count", c_int64), ("sum", c_double), ("least", c_double),
                ("most", c_double), ("time", c_double), ("half_width", c_double), ("batch_size", c_uint64),
                ("step_count", c_uint64), ("steps", POINTER(c_int32)), ("step_counts", POINTER(c_uint64))]


class Link(ctypes.Structure):
    _fields_ = [("from_", c_char_p), ("to", c_char_p), ("event", c_char_p), ("count", c_uint64), ("smallest", c_double),
                ("suggested_lookahead", c_double)]


class Delays(ctypes.Structure):
    _fields_ = [("count", c_uint64), *((name, c_double) for name in ("smallest", "mean", "largest", "p1", "p50", "p99")),
                ("suggested_lookahead", c_double), ("link_count", c_uint64), ("links", POINTER(Link))]


class Thread(ctypes.Structure):
    _fields_ = [("events", c_uint64), ("working_s", c_double), ("blocked_s", c_double), ("waited_on_count", c_uint64),
                ("waited_on", POINTER(c_double))]


COUNTS = ("events", "sent", "crossed", "dropped", "windows", "peak_pending", "peak_bytes", "events_before",
          "checkpoints", "cancelled")
LATER = ("made", "ended", "undelivered", "gathered")


class Result(ctypes.Structure):
    _fields_ = [("digest", c_uint64), ("reached", c_double), ("wall_s", c_double), ("stopped", c_uint64),
                *((name, c_uint64) for name in COUNTS),
                ("events_by_type", POINTER(c_uint64)), ("statistic_count", c_uint64), ("statistics", POINTER(Statistic)),
                ("injected_count", c_uint64), ("injected", POINTER(Injected)),
                *((name, c_uint64) for name in LATER), ("rank", c_uint64),
                ("delays", Delays), ("path_events", c_uint64), ("path_last", c_char_p), ("trace_lost", c_uint64),
                ("trace_error", c_char_p), ("ended_by_model", c_uint64), ("rank_count", c_uint64),
                ("thread_count", c_uint64), ("threads", POINTER(Thread))]


# Result, arguments.
FUNCTIONS = {
    "new": (c_void_p, c_char_p),
    "free": (None, c_void_p),
    "event_type": (None, c_void_p, c_char_p, c_size_t),
    "cancellable_type": (None, c_void_p, c_char_p, c_size_t),
    "making_type": (None, c_void_p, c_char_p, c_size_t),
    "add": (None, c_void_p, POINTER(Class), c_uint32),
    "add_vacant": (None, c_void_p, POINTER(Class), c_uint32, c_int, c_void_p),
    "on_undelivered": (None, c_void_p, UNDELIVERED, c_void_p),
    "set_neighbours": (None, c_void_p, c_void_p, c_void_p),
    "on_progress": (None, c_void_p, PROGRESS, c_void_p),
    "on_save": (None, c_void_p, SAVED, c_void_p),
    "on_checkpoint": (None, c_void_p, SAVER, LOADER, c_void_p),
    "stop": (None, c_void_p),
    "save": (None, c_void_p),
    "inject": (c_int, c_void_p, c_int64, c_uint32, c_void_p, c_uint32),
    "inject_error": (c_char_p,),
    "replay": (None, c_void_p, POINTER(Injected), c_size_t),
    "has_ranks": (c_int,),
    "run": (POINTER(Result), c_void_p),
    "error": (c_char_p, c_void_p),
    "send": (None, POINTER(Lp), c_int64, c_double, c_uint32, c_void_p, c_uint32),
    "set_timer": (None, POINTER(Lp), c_void_p, c_double, c_uint32, c_void_p, c_uint32),
    "end_after": (None, POINTER(Lp), c_double),
    "vacate": (None, POINTER(Lp)),
    "bits": (c_uint64, POINTER(Lp), c_uint32),
    "uniform": (c_double, POINTER(Lp), c_uint32),
    "exponential": (c_double, POINTER(Lp), c_uint32, c_double),
    "integer": (c_int64, POINTER(Lp), c_uint32, c_int64),
    "exponential_of": (c_double, POINTER(Lp), c_uint32, c_uint64),
    "exponential_edges": (POINTER(c_double),),
    "half_width": (c_double, c_void_p),
    "histogram_add": (c_int, c_void_p, c_double),
    "vacancies_set": (c_int, c_void_p, c_int64, c_int64),
    "vacancies_take": (c_int64, c_void_p),
    "vacancies_give_back": (c_int, c_void_p, c_int64),
    "report_id": (c_uint32, c_void_p),
    "report_now": (c_double, c_void_p),
    "report_count": (None, c_void_p, c_char_p, c_int64),
    "report_sum": (None, c_void_p, c_char_p, c_double),
    "report_tally": (None, c_void_p, c_char_p, c_void_p),
    "report_level": (None, c_void_p, c_char_p, c_void_p),
    "report_histogram": (None, c_void_p, c_char_p, c_void_p),
    "report_interval": (None, c_void_p, c_char_p, c_void_p),
    "quantile": (c_double, POINTER(Statistic), c_double),
}


def _load():
    """The library beside this file, as a wheel has it; or the one that HM_PDES_LIBRARY names; or an installed one."""
    beside = Path(__file__).with_name(NAME)
    path = os.environ.get("HM_PDES_LIBRARY") or (str(beside) if beside.exists() else NAME)
    try:
        return ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"hmalloc_pdes needs {NAME}, of a wheel or of an installed hmalloc: {error}") from None


_library = _load()


class _Functions:
    """By their names without hm_pdes_."""


call = _Functions()
for _name, (_result, *_arguments) in FUNCTIONS.items():
    _function = getattr(_library, f"hm_pdes_{_name}")
    _function.restype, _function.argtypes = _result, _arguments
    setattr(call, _name, _function)


def address(name):
    return ctypes.cast(getattr(_library, name), c_void_p).value
