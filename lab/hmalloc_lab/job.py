"""What `hmalloc compare` runs again and again, on one allocator after the other."""

import hashlib
import os
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from .allocators import Allocator
from .load import put_load
from .run import Outcome, Sight, run

_TAIL_BYTES = 4096
# A preloaded library is mapped within the program's first millisecond, which may come late on a busy machine.
_LOOK_FOR_S = 5.0
_LOOK_EVERY_S = 0.002


@dataclass(frozen=True)
class Output:
    """What a program printed: its standard output's digest, the end of its standard error."""

    digest: str
    errors: str


@dataclass(frozen=True)
class Job:
    """What to run, however often; a server for a time, or until a load has been put on it."""

    command: list[str]
    measurer: Path
    stop_after_s: float = 0.0
    load: str = ""
    input: Path | None = None
    show_output: bool = False

    @property
    def is_server(self) -> bool:
        return self.stop_after_s > 0 or self.load != ""

    def ended_early(self, outcome: Outcome) -> bool:
        return self.is_server and not outcome.stopped

    def run(self, allocator: Allocator) -> Outcome:
        """A measured run: nobody reads along."""
        stream = None if self.show_output else subprocess.DEVNULL
        return self._run(allocator, {}, stream, [])

    def rehearse(self, allocator: Allocator) -> tuple[Outcome, Output]:
        """A run to warm up, in which the output is read and hmalloc is asked to report itself."""
        stdout, stderr = _Reader(), _Reader()
        verbose = {"HMALLOC_VERBOSE": "1"} if allocator.is_hmalloc else {}
        outcome = self._run(allocator, verbose, subprocess.PIPE, [stdout, stderr])
        return outcome, Output(stdout.digest(), stderr.kept())

    def _run(self, allocator: Allocator, more: dict[str, str], stream: int | None, readers: list["_Reader"]) -> Outcome:
        def attend(pid: int, measurer: subprocess.Popen) -> dict:
            for reader, pipe in zip(readers, (measurer.stdout, measurer.stderr)):
                reader.start(pipe)
            # The system's run is looked at in the same way, so that both are disturbed alike.
            found = {"sight": look_for(str(allocator.library) if allocator.library else "libc.so", pid)}
            if self.load:
                found["load_s"] = put_load(self.load, pid, measurer, self.show_output)
                measurer.terminate()
            return found

        environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"} | more
        preload = allocator.preload(os.environ.get("LD_PRELOAD", ""))
        return run(self.measurer, self.command, preload, environment, stream, stream, self.input, self.stop_after_s,
                   attend=attend)


def look_for(wanted: str, pid: int) -> Sight:
    """Whether a library of that path is seen in the process's address space while it starts."""
    end = time.monotonic() + _LOOK_FOR_S
    while time.monotonic() < end:
        try:
            maps = Path(f"/proc/{pid}/maps").read_text(errors="replace")
        except PermissionError:
            return Sight.ABSENT  # setuid: the loader preloads nothing
        except (FileNotFoundError, ProcessLookupError):
            return Sight.ENDED
        if wanted in maps:
            return Sight.SEEN
        if not maps:
            return Sight.ENDED  # only its parent has not yet asked how
        time.sleep(_LOOK_EVERY_S)
    return Sight.ABSENT


class _Reader:
    """Reads a pipe to its end in the background; keeps a digest of all and the last few lines."""

    def __init__(self) -> None:
        self._digest, self._head, self._tail, self._thread = hashlib.sha256(), b"", b"", None

    def start(self, pipe) -> None:
        self._thread = threading.Thread(target=self._read, args=(pipe,), daemon=True)
        self._thread.start()

    def _read(self, pipe) -> None:
        with pipe:
            while chunk := pipe.read1(65536):
                self._digest.update(chunk)
                self._head = (self._head + chunk)[:_TAIL_BYTES]
                self._tail = (self._tail + chunk)[-_TAIL_BYTES:]

    def _finish(self) -> None:
        # A child that the program left behind may hold the pipe open: not worth waiting for.
        self._thread.join(timeout=2)

    def digest(self) -> str:
        self._finish()
        return self._digest.hexdigest()

    def kept(self) -> str:
        self._finish()
        head, tail = self._head, self._tail
        kept = tail if len(head) < _TAIL_BYTES else head + b"\n" + tail
        return kept.decode(errors="replace")
