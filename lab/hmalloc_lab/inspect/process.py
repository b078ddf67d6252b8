"""The memory of a process.  It is read through /proc/PID/mem, which stays with that process: no other that gets its number
later is ever read.  If it is to stand still, it is stopped as debuggers do it, and goes on when the tool ends, however it
ends."""

import ctypes
import mmap
import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil

from ..errors import USAGE, Failure
from .memory import Mapping, Memory, Thread, Unreadable, printable
from .registers import EXTENDED, FLOATING, GENERAL, THREAD_POINTER, of_machine

_SEIZE, _INTERRUPT, _CONT, _DETACH, _GETREGSET = 0x4206, 0x4207, 7, 17, 0x4204
_ALL_THREADS = 0x40000000  # __WALL
_PRESENT_OR_SWAPPED, _OF_A_FILE = np.uint64(3 << 62), np.uint64(1 << 61)  # in /proc/PID/pagemap
_PAGES_AT_ONCE = 1 << 20
_PATIENCE = 5  # seconds without another thread that has stopped
_NO_MEMORY = "the process has ended, or is a thread of the kernel's"
_LINE = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S{4}) ([0-9a-f]+) \S+ \S+ *(.*)")
_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def find(what: str) -> int:
    """A number, or the name of a program of which one process runs."""
    if what.isdecimal():
        return int(what)
    found = [process.pid for process in psutil.process_iter(["name"]) if process.info["name"] == what]
    if len(found) != 1:
        raise Failure(f"{what}: {'no process has' if not found else f'{len(found)} processes have'} this name"
                      f"{': say which by its number, ' + ', '.join(map(str, found[:8])) if found else ''}")
    return found[0]


class ProcessMemory(Memory):
    def __init__(self, number: int) -> None:
        self.number = number
        try:
            # The memory first: what is read later, by the number, may be another process's.
            self._folder = _thread_with_memory(number)
            self._file = os.open(self._folder / "mem", os.O_RDONLY | os.O_CLOEXEC)
            self._pages = _pages(self._folder)
            self.name = _program(number)
            self.mappings = _mappings(self._folder)
        except FileNotFoundError as error:
            raise Failure(f"{number}: no such process") from error
        except ProcessLookupError as error:
            raise Failure(f"{number}: {_NO_MEMORY}") from error
        except PermissionError as error:
            raise Failure(f"{number}: {_missing_right(number)}") from error
        if not self.mappings:
            raise Failure(f"{number}: {_NO_MEMORY}")
        self.title = f"{self.name} (process {number})"
        self.threads = []
        self._is_held = False

    @property
    def stands_still(self) -> bool:
        """The first thread may have ended before the others."""
        try:
            return self._is_held or all(_state(self.number, each) in "TtZ" for each in _threads(self.number))
        except Failure:
            return False

    def has_ended(self) -> bool:
        """Its memory has gone, as after execve; the number may be another's by now."""
        try:
            return not os.pread(self._file, 1, self.mappings[0].start)
        except OSError:
            return False

    def close(self) -> None:
        os.close(self._file)
        if self._pages is not None:
            os.close(self._pages)

    def touched(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Reading the others would fill the process's page tables, bring in whole files, and take long."""
        if self._pages is None:
            yield start, end
            return
        for first in range(start // mmap.PAGESIZE, -(-end // mmap.PAGESIZE), _PAGES_AT_ONCE):
            count = min(-(-end // mmap.PAGESIZE) - first, _PAGES_AT_ONCE)
            what = np.frombuffer(os.pread(self._pages, 8 * count, 8 * first), "<u8")
            is_touched = (what & _PRESENT_OR_SWAPPED != 0) & (what & _OF_A_FILE == 0)
            edges = np.flatnonzero(np.diff(is_touched, prepend=False, append=False)) + first
            for begin, stop in edges.reshape(-1, 2).tolist():
                yield max(begin * mmap.PAGESIZE, start), min(stop * mmap.PAGESIZE, end)

    def read(self, address: int, size: int) -> bytes:
        parts = []
        while size > 0:
            try:
                part = os.pread(self._file, size, address)
            except (OSError, OverflowError) as error:
                raise Unreadable(address) from error
            if not part:  # the process has ended
                raise Unreadable(address)
            parts.append(part)
            address, size = address + len(part), size - len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Meanwhile none of its threads runs."""
        held: set[int] = set()
        try:
            with _giving_up(self.number, held):
                _hold_all(self.number, held)
            self._is_held = True
            self.mappings = _mappings(self._folder)
            self.threads = [_thread(self.number, each) for each in sorted(held)]
            yield
        finally:
            self._is_held = False
            for each in held:
                _libc.ptrace(_DETACH, each, None, None)


def _program(number: int) -> str:
    """The system keeps 15 characters of it; what the process was called with it may have changed."""
    short = _name(Path(f"/proc/{number}"))
    called = os.path.basename(Path(f"/proc/{number}/cmdline").read_bytes().split(b"\0")[0].decode(errors="replace"))
    return printable(called) if len(short) == 15 and called.startswith(short) else short


def _thread_with_memory(number: int) -> Path:
    """The first thread may have ended before the others; then it has no memory any more."""
    folders = [Path(f"/proc/{number}/task/{each}") for each in sorted(_threads(number))]
    return next((each for each in folders if _has_memory(each)), folders[0])


def _has_memory(folder: Path) -> bool:
    try:
        return bool((folder / "maps").read_bytes())
    except (FileNotFoundError, ProcessLookupError):
        return False


def _pages(folder: Path) -> int | None:
    """Not every kernel says of each page whether it is there."""
    try:
        return os.open(folder / "pagemap", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


def _name(folder: Path) -> str:
    return printable((folder / "comm").read_bytes().decode(errors="replace").removesuffix("\n"))


def _mappings(folder: Path) -> list[Mapping]:
    text = (folder / "maps").read_text(errors="replace")
    found = filter(None, map(_LINE.match, text.splitlines()))
    return [Mapping(int(start, 16), int(end, 16), rights, path, int(offset, 16))
            for start, end, rights, offset, path in (each.groups() for each in found)]


def _state(number: int, thread: int) -> str:
    try:
        return Path(f"/proc/{number}/task/{thread}/stat").read_bytes().rpartition(b")")[2].split()[0].decode()
    except (OSError, IndexError):
        return "X"


def _threads(number: int) -> list[int]:
    try:
        return [int(each) for each in os.listdir(f"/proc/{number}/task")]
    except (FileNotFoundError, ProcessLookupError) as error:
        raise Failure(f"{number}: no such process") from error


def _missing_right(number: int) -> str:
    try:
        owner = os.stat(f"/proc/{number}").st_uid
    except OSError:
        owner = os.geteuid()
    try:
        scope = Path("/proc/sys/kernel/yama/ptrace_scope").read_text().strip()
    except OSError:
        scope = "0"
    if owner != os.geteuid():
        return f"it belongs to another user ({owner}): try as that user, or with sudo"
    if scope != "0":
        return (f"the kernel lets nobody look who has not started it (kernel.yama.ptrace_scope is {scope}): try with sudo; "
                "a container needs the capability SYS_PTRACE")
    return "the kernel does not let you look into it: try with sudo; a container needs the capability SYS_PTRACE"


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
    while new := [each for each in _threads(number) if each not in held and _state(number, each) not in "XZ"]:
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
        tracer = _tracer(number)
        raise Failure(f"{number}: process {tracer} traces it already, perhaps a debugger" if tracer
                      else f"{number}: {_missing_right(number)}") from error


def _tracer(number: int) -> int:
    found = re.search(r"TracerPid:\s*(\d+)", Path(f"/proc/{number}/status").read_text())
    return int(found[1]) if found else 0


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
        name = _name(Path(f"/proc/{number}/task/{thread}"))
    except OSError:
        name = ""
    vectors = _register_set(thread, EXTENDED) or _register_set(thread, FLOATING)
    return Thread(thread, name, stack, pointer, general + vectors)
