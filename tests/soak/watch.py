"""Looks at all processes below this one: how much memory they hold together, and which have the library."""

import contextlib
import os
import threading
from pathlib import Path

PERIOD = 0.5  # seconds


def children():
    """Parent's PID: PIDs, of this machine."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                parent = int((folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
                found.setdefault(parent, []).append(int(folder.name))
    return found


def below(pid):
    found, waiting = children(), [pid]
    while waiting:
        for child in found.get(waiting.pop(), []):
            yield child
            waiting.append(child)


def proportional_bytes(pid):
    """Pages that several processes share count in parts."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


class Watch:
    """While it is entered, a thread looks now and then; peak in bytes, programs: by name, those that had the library."""

    def __init__(self, library):
        self.library = str(library.resolve()) if library else None
        self.peak = 0
        self.programs = set()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look_on)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._done.set()
        self._thread.join()

    def _look_on(self):
        while not self._done.wait(PERIOD):
            self._look()

    def _look(self):
        held = 0
        for pid in below(os.getpid()):
            with contextlib.suppress(OSError):  # it has ended
                held += proportional_bytes(pid)
                if self.library and self.library in Path(f"/proc/{pid}/maps").read_text(errors="replace"):
                    self.programs.add(Path(f"/proc/{pid}/comm").read_text(errors="replace").strip())
        self.peak = max(self.peak, held)
