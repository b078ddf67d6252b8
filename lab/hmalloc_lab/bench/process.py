"""One run of one program: what it cost, what it says, how it ended, and whether the right allocator served it."""

import json
import os
import re
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import Failure
from . import allocators, store
from .store import AllocatorRow

_SAMPLE_MS = 5
# The measurer itself gives a program ten seconds to follow SIGTERM before it kills its process group.
_MEASURER_GRACE_S = 30
_NOT_PRELOADED = re.compile(r"from LD_PRELOAD cannot be preloaded \((.*?)\)")
# Nothing of the user's that an allocator might read; and its size moves the stack, which moves the numbers.
_BARE_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}


@dataclass(frozen=True)
class Outcome:
    status: str
    reason: str = ""
    metrics: dict = field(default_factory=dict)
    resident: list = field(default_factory=list)


@dataclass(frozen=True)
class _Cost:
    """What the measurer says."""

    metrics: dict
    resident: list
    wait_status: int
    was_stopped: bool


def run(measurer: Path, command: list[str], who: AllocatorRow, environment: dict[str, str], limit_s: float,
        api: str = "") -> Outcome:
    """api: a program that can do without malloc has to say that it did, by this name."""
    report, output, errors = _measure(measurer, command, allocators.preload(who), environment, limit_s)
    cost = _read(report)
    if isinstance(cost, Outcome):
        return cost
    refused = _NOT_PRELOADED.search(errors)
    if refused:
        return Outcome(store.NOT_LOADED, f"the loader refuses it: {refused[1]}")
    if cost.was_stopped:
        return Outcome(store.HUNG, f"no end within {limit_s:g} s")
    code = os.waitstatus_to_exitcode(cost.wait_status)
    if code < 0:
        return Outcome(store.CRASHED, _with_last_line(f"killed by {_signal_name(-code)}", errors))
    if code > 0:
        return Outcome(store.FAILED, _with_last_line(f"exit code {code}", errors))
    return _verified(output, cost, who, api)


def _measure(measurer: Path, command: list[str], preload: str, environment: dict[str, str],
             limit_s: float) -> tuple[str, str, str]:
    """What the measurer reports, the program's output and its errors."""
    # Files in memory: nobody has to read along, and a full disk does not matter.
    files = [os.memfd_create(name) for name in ("report", "output", "errors")]
    try:
        process = subprocess.Popen(
            [measurer, str(files[0]), str(round(limit_s * 1000)), str(_SAMPLE_MS), preload, *command],
            stdin=subprocess.DEVNULL, stdout=files[1], stderr=files[2], pass_fds=[files[0]],
            env=_BARE_ENVIRONMENT | environment)
        try:
            process.wait(limit_s + _MEASURER_GRACE_S)
        except BaseException:
            # On SIGTERM, and on Ctrl-C, the measurer ends the program first.
            process.terminate()
            process.wait()
            raise
        return tuple(_content(file) for file in files)
    except OSError as error:
        raise Failure(f"{measurer}: {error.strerror}") from error
    finally:
        for file in files:
            os.close(file)


def _content(file: int) -> str:
    os.lseek(file, 0, os.SEEK_SET)
    with open(os.dup(file), encoding="utf-8", errors="replace") as text:
        return text.read()


def _read(report: str) -> _Cost | Outcome:
    rows = [line.split() for line in report.splitlines()]
    said = {row[0]: row[1:] for row in rows}
    if "failed" in said:
        return Outcome(store.FAILED, f"could not be started: {os.strerror(int(said['failed'][0])).lower()}")
    if "ended" not in said:
        return Outcome(store.FAILED, "could not be measured")
    status, stopped, wall_ns, user_us, system_us, peak, minor, major, voluntary, involuntary = map(int, said["ended"])
    metrics = {"wall_s": wall_ns / 1e9, "user_s": user_us / 1e6, "system_s": system_us / 1e6,
               "cpu_s": (user_us + system_us) / 1e6, "peak_kb": peak, "minor_faults": minor, "major_faults": major,
               "voluntary_switches": voluntary, "involuntary_switches": involuntary}
    metrics |= {"instructions": int(count) for count in said.get("instructions", ())}
    resident = [[float(row[1]), int(row[2])] for row in rows if row[0] == "resident"]
    return _Cost(metrics, resident, status, bool(stopped))


def _verified(output: str, cost: _Cost, who: AllocatorRow, api: str) -> Outcome:
    """Takes a result only if the allocator that served it is the one that was meant."""
    try:
        said = json.loads(output.splitlines()[-1])
        served_by = said.get("malloc_library", "")
    except (ValueError, IndexError, AttributeError):
        return Outcome(store.FAILED, "printed no result")
    if api:
        if said.get("api") != api:
            return Outcome(store.NOT_LOADED, f"events came from {said.get('api') or 'nowhere known'}, not {api}")
    elif who.library and os.path.realpath(served_by) != os.path.realpath(who.library):
        return Outcome(store.NOT_LOADED, f"malloc came from {served_by or 'nowhere known'}")
    # What the program says of itself comes first: its page faults are without those of loading it.
    numbers = {key: value for key, value in said.items() if isinstance(value, (int, float, list))}
    return Outcome(store.OK, "", cost.metrics | numbers, cost.resident)


def _signal_name(number: int) -> str:
    return signal.Signals(number).name if number in signal.valid_signals() else f"signal {number}"


def _with_last_line(what: str, errors: str) -> str:
    lines = errors.strip().splitlines()
    return f"{what}: {lines[-1].strip()[:200]}" if lines else what
