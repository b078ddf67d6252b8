"""Runs a program once, through hmalloc-measure, and says what it cost and on whose malloc it ran."""

import hashlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import servers
from .allocators import Allocator
from .errors import NOT_EXECUTABLE, NOT_FOUND, Failure

_TAIL_BYTES = 4096
# A preloaded library is mapped within the first millisecond; a program may end before anybody looks.
_LOOK_FOR_S = 0.5
_LOOK_EVERY_S = 0.002


@dataclass(frozen=True)
class Sample:
    """One run.  Everything but the wall time includes the descendants that the program waited for."""

    wall_s: float
    load_s: float
    cpu_s: float
    peak_kib: int
    faults: int
    switches: int
    exit: str
    ended_early: bool
    seen_in_maps: bool


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

    def run(self, allocator: Allocator) -> Sample:
        """A measured run: nobody reads along."""
        stream = None if self.show_output else subprocess.DEVNULL
        return self._run(allocator, os.environ, stream, stream, lambda process: None)

    def rehearse(self, allocator: Allocator) -> tuple[Sample, Output]:
        """A run to warm up, in which the output is read and hmalloc is asked to report itself."""
        stdout, stderr = _Reader(), _Reader()

        def read(process: subprocess.Popen) -> None:
            stdout.start(process.stdout)
            stderr.start(process.stderr)

        environment = os.environ | ({"HMALLOC_VERBOSE": "1"} if allocator.is_hmalloc else {})
        sample = self._run(allocator, environment, subprocess.PIPE, subprocess.PIPE, read)
        return sample, Output(stdout.digest(), stderr.kept())

    def _run(self, allocator: Allocator, environment: dict, stdout: int | None, stderr: int | None,
             started: Callable[[subprocess.Popen], None]) -> Sample:
        results, results_in = os.pipe()
        environment = {name: value for name, value in environment.items() if name != "LD_PRELOAD"}
        preload = allocator.preload(os.environ.get("LD_PRELOAD", ""))
        with open(self.input or os.devnull, "rb") as stdin, open(results, encoding="ascii") as lines:
            process = subprocess.Popen(
                [self.measurer, str(results_in), str(round(self.stop_after_s * 1000)), "0", preload, *self.command],
                stdin=stdin, stdout=stdout, stderr=stderr, env=environment, pass_fds=[results_in])
            os.close(results_in)
            try:
                started(process)
                pid = int(lines.readline().split()[1])
                seen = _look_for(allocator, pid)
                load_s = 0.0
                if self.load:
                    load_s = servers.put_load(self.load, pid, process, self.show_output)
                    process.terminate()
                report = lines.readline().split()
            except BaseException:
                process.terminate()
                raise
            finally:
                # On SIGTERM, and on Ctrl-C, the measurer ends the program first.
                process.wait()
        return _sample(report, load_s, seen, self)


def _look_for(allocator: Allocator, pid: int) -> bool:
    """Whether the allocator's library is seen in the process's address space while it starts."""
    # The system's run is looked at in the same way, so that both are disturbed alike.
    wanted = str(allocator.library) if allocator.library else "libc.so"
    end = time.monotonic() + _LOOK_FOR_S
    while time.monotonic() < end:
        try:
            maps = Path(f"/proc/{pid}/maps").read_text(errors="replace")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            return False
        if wanted in maps:
            return True
        time.sleep(_LOOK_EVERY_S)
    return False


def _sample(report: list[str], load_s: float, seen: bool, job: Job) -> Sample:
    program = job.command[0]
    if report[:1] == ["failed"]:
        number = int(report[1])
        code = NOT_FOUND if number == 2 else NOT_EXECUTABLE
        raise Failure(f"{program}: {os.strerror(number).lower()}", code)
    if report[:1] != ["ended"]:
        raise Failure(f"{program}: could not be measured")
    status, told, wall_ns, user_us, system_us, peak, minor, major, voluntary, involuntary = map(int, report[1:])
    return Sample(
        wall_s=wall_ns / 1e9, load_s=load_s, cpu_s=(user_us + system_us) / 1e6, peak_kib=peak, faults=minor + major,
        switches=voluntary + involuntary, exit=_exit_name(status, bool(told)),
        ended_early=job.is_server and not told, seen_in_maps=seen)


def _exit_name(wait_status: int, told: bool) -> str:
    code = os.waitstatus_to_exitcode(wait_status)
    if code >= 0:
        return f"exit code {code}"
    if told and -code == signal.SIGTERM:
        return "exit code 0"
    return f"killed by {signal.Signals(-code).name}" if -code in signal.valid_signals() else f"killed by signal {-code}"


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
