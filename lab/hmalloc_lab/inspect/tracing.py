"""Stops the threads of a process as debuggers do it, and reads their registers.  They go on when the tool ends, in whatever
way it ends."""

import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import USAGE, Failure
from . import system
from .memory import Thread
from .registers import EXTENDED, FLOATING, GENERAL, THREAD_POINTER, of_machine

_SEIZE, _INTERRUPT, _CONT, _DETACH, _GETREGSET = 0x4206, 0x4207, 7, 17, 0x4204
_ALL_THREADS = 0x40000000  # __WALL
_PATIENCE = 5  # seconds without another thread that has stopped
_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


@contextmanager
def held(number: int) -> Iterator[list[Thread]]:
    """Meanwhile none of its threads runs."""
    threads: set[int] = set()
    try:
        with _giving_up(number, threads):
            _hold_all(number, threads)
        yield [_thread(number, each) for each in sorted(threads)]
    finally:
        for each in threads:
            _libc.ptrace(_DETACH, each, None, None)


def _ptrace(request: int, thread: int, address: int = 0, data: object = None) -> None:
    if _libc.ptrace(request, thread, address, data) < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


@contextmanager
def _giving_up(number: int, held: set[int]) -> Iterator[None]:
    """A thread that waits in the kernel, as in vfork, stops when that is over.  In an execve that waits for threads that are
    held, even the call that is to stop it waits.  The others would stand still meanwhile; they go on as the tool ends."""
    done = threading.Event()

    def wait() -> None:
        before = -1
        while not done.wait(_PATIENCE):
            if len(held) == before:
                print(f"hmalloc: {number}: one of its threads waits in the kernel (for a program that it starts, or for a "
                      "disk), and cannot be stopped", file=sys.stderr, flush=True)
                os._exit(USAGE)
            before = len(held)

    watcher = threading.Thread(target=wait, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _hold_all(number: int, held: set[int]) -> None:
    """Threads may start others until the last of them has stopped."""
    while new := [each for each in system.threads(number) if each not in held and system.state(number, each) not in "XZ"]:
        for each in new:
            _hold(number, each, held)
    if not held:
        raise Failure(f"{number}: the process has ended")


def _hold(number: int, thread: int, held: set[int]) -> None:
    try:
        _ptrace(_SEIZE, thread)
        held.add(thread)
        _ptrace(_INTERRUPT, thread)
        while os.WIFSTOPPED(status := os.waitpid(thread, _ALL_THREADS)[1]):
            if status >> 16:
                return
            # A signal came first.  It gets that at once, as it would be lost if the tool were killed, and stops thereafter.
            _ptrace(_INTERRUPT, thread)
            _ptrace(_CONT, thread, 0, os.WSTOPSIG(status))
        held.discard(thread)  # it has ended instead
    except ProcessLookupError:
        held.discard(thread)
    except PermissionError as error:
        tracer = system.tracer(number)
        raise Failure(f"{number}: process {tracer} traces it already, perhaps a debugger" if tracer
                      else f"{number}: {system.missing_right(number)}") from error


class _Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def _register_set(thread: int, which: int) -> bytes:
    space = ctypes.create_string_buffer(1 << 14)
    vector = _Vector(ctypes.addressof(space), len(space))
    try:
        _ptrace(_GETREGSET, thread, which, ctypes.addressof(vector))
    except OSError:
        return b""
    return space.raw[:vector.length]


def _thread(number: int, thread: int) -> Thread:
    general = _register_set(thread, GENERAL)
    stack, pointer = of_machine(os.uname().machine, general, _register_set(thread, THREAD_POINTER))
    try:
        name = system.name(Path(f"/proc/{number}/task/{thread}"))
    except OSError:
        name = ""
    vectors = _register_set(thread, EXTENDED) or _register_set(thread, FLOATING)
    return Thread(thread, name, stack, pointer, general + vectors)
