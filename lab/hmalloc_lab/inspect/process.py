"""The memory of a process.  It is read through /proc/PID/mem, which stays with that process: no other that gets its number
later is ever read.  If it is to stand still, it is stopped as debuggers do it, and goes on when the tool ends, however it
ends."""

import mmap
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from ..errors import Failure
from . import system
from .memory import Mapping, Memory, Unreadable
from .tracing import held

_PRESENT_OR_SWAPPED, _OF_A_FILE = np.uint64(3 << 62), np.uint64(1 << 61)  # in /proc/PID/pagemap
_PAGES_AT_ONCE = 1 << 20
_NO_MEMORY = "the process has ended, or is a thread of the kernel's"
_LINE = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S{4}) ([0-9a-f]+) \S+ \S+ *(.*)")


class ProcessMemory(Memory):
    def __init__(self, number: int) -> None:
        self.number = number
        try:
            # The memory first: what is read later, by the number, may be another process's.
            folder = _thread_with_memory(number)
            self._file = os.open(folder / "mem", os.O_RDONLY | os.O_CLOEXEC)
            self._pages = _pages(folder)
            self.name = system.program(number)
            self.mappings = _mappings(folder)
        except FileNotFoundError as error:
            raise Failure(f"{number}: no such process") from error
        except ProcessLookupError as error:
            raise Failure(f"{number}: {_NO_MEMORY}") from error
        except PermissionError as error:
            raise Failure(f"{number}: {system.missing_right(number)}") from error
        if not self.mappings:
            raise Failure(f"{number}: {_NO_MEMORY}")
        self.title = f"{self.name} (process {number})"
        self.threads = []
        self._is_held = False

    @property
    def stands_still(self) -> bool:
        """The first thread may have ended before the others."""
        try:
            return self._is_held or all(system.state(self.number, each) in "TtZ" for each in system.threads(self.number))
        except Failure:
            return False

    def thread(self, number: int) -> str:
        with suppress(OSError, Failure):
            number = system.thread_by_own_number(self.number, number)
            return f"{system.name(Path(f'/proc/{self.number}/task/{number}'))} ({number})"
        return super().thread(number)

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
        try:
            with held(self.number) as self.threads:
                self._is_held = True
                self.mappings = _mappings(_thread_with_memory(self.number))
                yield
        finally:
            self._is_held = False


def _thread_with_memory(number: int) -> Path:
    """The first thread, unless it has ended before the others: then it has no memory any more.  Others may have lower
    numbers, where those have begun anew, and end at any time."""
    order = sorted(system.threads(number), key=lambda each: each != number)
    folders = [Path(f"/proc/{number}/task/{each}") for each in order]
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


def _mappings(folder: Path) -> list[Mapping]:
    text = (folder / "maps").read_text(errors="replace")
    found = filter(None, map(_LINE.match, text.splitlines()))
    return [Mapping(int(start, 16), int(end, 16), rights, path, int(offset, 16))
            for start, end, rights, offset, path in (each.groups() for each in found)]
