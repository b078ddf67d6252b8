"""Runs a program once, under hmalloc-measure, and says how it ended and what it cost."""

import os
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import IO

from .errors import NOT_EXECUTABLE, NOT_FOUND, Failure

# The measurer itself gives a program ten seconds to follow SIGTERM before it kills its process group.
_MEASURER_GRACE_S = 30
# What hmalloc-measure says behind "ended", and the divisor that makes seconds of it.
_ENDED = {"status": 1, "stopped": 1, "wall_s": 1e9, "user_s": 1e6, "system_s": 1e6, "peak_kb": 1, "minor_faults": 1,
          "major_faults": 1, "voluntary_switches": 1, "involuntary_switches": 1}

Stream = IO | int | None
Attend = Callable[[int, subprocess.Popen], dict]


class NotMeasured(Failure):
    """The program did not run at all, or nothing is known of its run; `reason` says it without the program's name."""

    def __init__(self, program: str, reason: str, code: int) -> None:
        super().__init__(f"{program}: {reason}", code)
        self.reason = reason


class Sight(Enum):
    """What was found when the program's address space was looked at for the allocator's library."""

    SEEN = "seen"
    ABSENT = "absent"
    ENDED = "ended"  # before it could be looked at: nothing is known


@dataclass(frozen=True)
class Outcome:
    """One run.  Everything but the wall time includes the descendants that the program waited for."""

    code: int                   # the exit code, or minus the signal that ended the program
    stopped: bool               # the measurer told it to end: its time was up, or somebody told the measurer
    cost: dict[str, float]      # wall_s, user_s, system_s, cpu_s, peak_kb, minor_faults, ..., instructions if counted
    resident: list = field(default_factory=list)  # [[milliseconds since the start, KB], ...], if watched
    load_s: float = 0.0         # how long the load on a server took
    sight: Sight = Sight.ABSENT  # of the allocator's library in the process

    @property
    def seen_in_maps(self) -> bool:
        return self.sight is Sight.SEEN

    @property
    def exit(self) -> str:
        """In words; a server that follows SIGTERM has ended as it should."""
        if self.code >= 0 or (self.stopped and -self.code == signal.SIGTERM):
            return f"exit code {max(self.code, 0)}"
        known = -self.code in signal.valid_signals()
        return f"killed by {signal.Signals(-self.code).name if known else f'signal {-self.code}'}"


def run(measurer: Path, command: list[str], preload: str, environment: dict[str, str], stdout: Stream, stderr: Stream,
        input_file: Path | None = None, stop_after_s: float = 0.0, watch_ms: int = 0,
        attend: Attend | None = None, folder: Path | None = None) -> Outcome:
    """stop_after_s: 0 waits for the program's own end.  watch_ms: how often its memory is looked at; 0: never.
    folder: where it runs; None: where we do.
    attend: called with the program's process id and the measurer, while the program runs; it returns what it has
    found out, as fields of the outcome."""
    report, report_in = os.pipe()
    words = [str(report_in), str(round(stop_after_s * 1000)), str(watch_ms), preload, *command]
    with open(input_file or os.devnull, "rb") as stdin, open(report, encoding="ascii") as lines:
        try:
            process = subprocess.Popen([measurer, *words], stdin=stdin, stdout=stdout, stderr=stderr, env=environment,
                                       pass_fds=[report_in], cwd=folder)
        except OSError as error:
            raise Failure(f"{measurer}: {error.strerror}") from error
        finally:
            os.close(report_in)
        try:
            first = lines.readline()
            found = attend(int(first.split()[1]), process) if attend and first.startswith("started") else {}
            # The pipe holds more than any report.
            process.wait(stop_after_s + _MEASURER_GRACE_S if stop_after_s else None)
            return _outcome(first + lines.read(), command[0], found)
        except BaseException:
            # On SIGTERM, and on Ctrl-C, the measurer ends the program first.
            process.terminate()
            raise
        finally:
            process.wait()


def _outcome(report: str, program: str, found: dict) -> Outcome:
    rows = [line.split() for line in report.splitlines()]
    said = {row[0]: row[1:] for row in rows}
    if "failed" in said:
        number = int(said["failed"][0])
        raise NotMeasured(program, f"could not be started: {os.strerror(number).lower()}",
                          NOT_FOUND if number == 2 else NOT_EXECUTABLE)
    if "ended" not in said:
        raise NotMeasured(program, "could not be measured", 2)
    cost = {name: int(text) / unit if unit > 1 else int(text)
            for (name, unit), text in zip(_ENDED.items(), said["ended"], strict=True)}
    status, stopped = cost.pop("status"), cost.pop("stopped")
    cost["cpu_s"] = cost["user_s"] + cost["system_s"]
    if counted := said.get("instructions"):
        cost["instructions"] = int(counted[0])
    resident = [[float(row[1]), int(row[2])] for row in rows if row[0] == "resident"]
    return Outcome(os.waitstatus_to_exitcode(status), bool(stopped), cost, resident, **found)
