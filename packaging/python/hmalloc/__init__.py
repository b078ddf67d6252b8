"""hmalloc, the malloc of this process, if it was started by `python -m hmalloc script.py`.

    hmalloc.active()                       does hmalloc serve this process?
    hmalloc.stats()                        its gauges and counters, by name
    hmalloc.collect()                      gives what is free back to the system
    with hmalloc.report("parsing"):        tells how a part of the program changed the memory in use
    with hmalloc.trim_after("parsing"):    gives back what is free behind it, and tells how much that was
    with hmalloc.profile("heap.pb"):       a profile of what it allocates, as pprof reads it

Each of the last three is also a decorator.  All but active() raise NotActive where hmalloc does not serve the process.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

__all__ = ["NotActive", "Report", "Trim", "active", "collect", "profile", "report", "stats", "trim_after"]

_process = ctypes.CDLL(None)


class NotActive(RuntimeError):
    """hmalloc does not serve this process."""


_BYTES_AND_COUNTERS = ("allocated", "cached", "active", "resident", "retained", "mapped", "metadata", "peak_active", "bound",
                       "cross_thread_frees", "refills", "flushes", "purged", "os_calls")
_HEAPS = ("heaps", "live_heaps")


class _Stats(ctypes.Structure):
    """struct hm_stats, and room for what a later version of the library may have behind it."""

    _fields_ = [*((name, ctypes.c_uint64) for name in _BYTES_AND_COUNTERS), *((name, ctypes.c_uint32) for name in _HEAPS),
                ("_later", ctypes.c_uint64 * 64)]


def _read() -> _Stats:
    stats = _Stats()
    _process.hm_stats_get(ctypes.byref(stats))
    return stats


_known_to_serve = False  # a "no" may be another thread's doing, and is asked for anew


def _why_not() -> str:
    """Why hmalloc does not serve this process; empty if it does."""
    global _known_to_serve
    if _known_to_serve:
        return ""
    if not hasattr(_process, "hm_stats_get"):
        return "it is not loaded"
    # Meanwhile another thread may free as much.
    _known_to_serve = any(_malloc_is_counted() for _ in range(3))
    return "" if _known_to_serve else "another malloc comes before it"


def _malloc_is_counted() -> bool:
    """The address of malloc would not say whose it is: another library's may forward its calls to ours."""
    size = 64 << 10
    _process.malloc.restype = ctypes.c_void_p
    before = _read().allocated
    block = _process.malloc(ctypes.c_size_t(size))
    grown = _read().allocated - before
    _process.free(ctypes.c_void_p(block))
    return bool(grown >= size // 2)


def active() -> bool:
    """Whether hmalloc serves this process."""
    return not _why_not()


def _require_active() -> None:
    if _why_not():
        raise NotActive(f"hmalloc does not serve this process, {_why_not()}: start it with `python -m hmalloc SCRIPT`")


def stats() -> dict[str, int]:
    """What the process holds, in bytes, and counters: `struct hm_stats` of <hmalloc/hmalloc.h>, by the names there."""
    _require_active()
    read = _read()
    return {name: getattr(read, name) for name in (*_BYTES_AND_COUNTERS, *_HEAPS)}


def collect() -> int:
    """Gives every page that holds no block back to the system now.  Returns how many bytes went back meanwhile."""
    before = stats()["purged"]
    _process.hm_collect()
    return stats()["purged"] - before


def _size(bytes_: int) -> str:
    return f"{bytes_ / (1 << 20):.1f} MB" if abs(bytes_) >= 1 << 20 else f"{bytes_ / (1 << 10):.1f} KB"


def _say(what: object) -> None:
    print(f"hmalloc: {what}", file=sys.stderr)


@dataclass
class Report:
    """How a part of the program changed the memory in use, of all threads."""

    label: str
    seconds: float = 0.0
    before: int = 0           #: bytes in blocks that the program held at the beginning
    after: int = 0            #: and at the end
    peak: int | None = None   #: most bytes of memory with blocks in it, if they were more than ever before; None if not

    @property
    def grown(self) -> int:
        """Bytes held more at the end; below zero if it freed more than it allocated."""
        return self.after - self.before

    def __str__(self) -> str:
        peak = "no new peak" if self.peak is None else f"a new peak of {_size(self.peak)}"
        change = f"{_size(abs(self.grown))} {'more' if self.grown >= 0 else 'less'}"
        return f"{self.label}: {change}, {_size(self.before)} -> {_size(self.after)}, {peak}, {self.seconds:.3f} s"


@contextmanager
def report(label: str, tell: Callable[[Report], object] = _say) -> Iterator[Report]:
    """Tells how the block, or each call of the decorated function, changed the memory in use.

    `tell` is called with the Report, also where an exception ends it; without one, a line goes to standard error.
    A decorated coroutine function or generator would be measured only while it is made: use `with` inside.
    """
    begin, start = stats(), time.perf_counter()
    measured = Report(label, before=begin["allocated"])
    try:
        yield measured
    finally:
        measured.seconds = time.perf_counter() - start
        end = stats()
        measured.after = end["allocated"]
        measured.peak = end["peak_active"] if end["peak_active"] > begin["peak_active"] else None
        tell(measured)


def _resident() -> int:
    """Bytes of the whole process.  The library's own gauge counts pages between live blocks that have gone back."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@dataclass
class Trim:
    """What went back to the system behind a part of the program."""

    label: str
    seconds: float = 0.0  #: that it took
    returned: int = 0     #: bytes that collect() gave back
    before: int = 0       #: resident bytes of the process before
    after: int = 0        #: and behind it

    def __str__(self) -> str:
        sizes = f"{_size(self.before)} -> {_size(self.after)} resident"
        return f"{self.label}: {_size(self.returned)} went back, {sizes}, {self.seconds:.3f} s"


@contextmanager
def trim_after(label: str, tell: Callable[[Trim], object] = _say, *, cycles: bool = True) -> Iterator[Trim]:
    """Gives back what is free behind the block, or behind each call of the decorated function.

    First Python collects its own garbage, unless `cycles` is False.  `tell` is as in report().
    """
    _require_active()
    trim = Trim(label)
    try:
        yield trim
    finally:
        trim.before, start = _resident(), time.perf_counter()
        if cycles:
            gc.collect()
        trim.returned = collect()
        trim.after, trim.seconds = _resident(), time.perf_counter() - start
        tell(trim)


@contextmanager
def profile(path: str | os.PathLike[str], rate: int = 0) -> Iterator[None]:
    """Writes a profile of what was allocated meanwhile, and what of it is still held, as pprof reads it.

    One of `rate` bytes is sampled on average; 0 is 512 KB.  Its stacks are those of the native code: functions of the
    interpreter and of extension modules, not of Python.  There is one profile for the process.
    """
    _require_active()
    with open(path, "wb", buffering=0) as file:
        _check(_process.hm_profile_start(ctypes.c_size_t(rate)), path)
        try:
            yield
        finally:
            _process.hm_profile_stop()
            _check(_process.hm_profile_dump(file.fileno()), path)


def _check(error: int, path: str | os.PathLike[str]) -> None:
    if error:
        raise OSError(error, f"no profile: {os.strerror(error)}", os.fspath(path))
