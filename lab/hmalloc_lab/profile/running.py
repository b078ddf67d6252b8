"""Runs a program once under a profile, as if it had been started itself: its input, its output, its signals."""

import errno
import os
import signal
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from ..allocators import Allocator
from ..diagnosis import diagnose
from ..errors import NOT_EXECUTABLE, NOT_FOUND, Failure
from ..programs import Program, resolve

_PASSED_ON = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT}
_BY_KERNEL = 0x80  # si_code of what a terminal sends; it sends that to the program, too


@dataclass(frozen=True)
class Run:
    code: int              # as a shell has it: 128 and the signal
    signal: int            # that ended it, or 0
    profile: bytes | None  # of the started process, if it wrote one
    others: int            # how many more processes wrote one


def preload(command: list[str], allocator: Allocator) -> tuple[Program, str]:
    """The program, and LD_PRELOAD for it; a Failure if hmalloc cannot serve it."""
    program = resolve(command[0])
    found = diagnose(program, allocator)
    already = os.environ.get("LD_PRELOAD", "")
    if "hmalloc" in found.facts.own_allocators and found.obstacle:
        return program, Allocator("system", None).preload(already)  # linked into it
    if found.obstacle:
        raise Failure(f"hmalloc cannot serve {command[0]}: {found.obstacle}", 1)
    return program, allocator.preload(already)


def run(command: list[str], allocator: Allocator, rate: str) -> Run:
    program, libraries = preload(command, allocator)
    with _folder() as folder:
        environment = os.environ | {"LD_PRELOAD": libraries, "HMALLOC_PROFILE": f"heap:rate={rate}",
                                    "HMALLOC_PROFILE_FREES": "1", "HMALLOC_PROFILE_FILE": f"{folder}/%p.pb"}
        pid, ended = _attend(program.path, command, environment)
        files = set(Path(folder).glob("*.pb"))
        own = Path(folder, f"{pid}.pb")
        code, number = (128 - ended, -ended) if ended < 0 else (ended, 0)
        return Run(code, number, own.read_bytes() if own in files else None, len(files - {own}))


def _folder() -> tempfile.TemporaryDirectory:
    try:  # children that live on may write into it while it is taken away
        return tempfile.TemporaryDirectory(prefix="hmalloc-profile-", ignore_cleanup_errors=True)
    except OSError as error:
        raise Failure(f"no folder for the profile: {error.strerror}", 1) from error


def _attend(path: Path, command: list[str], environment: dict[str, str]) -> tuple[int, int]:
    """Starts the program and waits for its end; its number, and its code or minus the signal that ended it."""
    heard = _PASSED_ON | {signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, heard)
    usual = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGCHLD)}
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        # By a SIGINT that it does not handle the program would end without its profile.  So that is for us to hear, who
        # send SIGTERM instead.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        pid = _start(path, command, environment, before)
        return pid, _wait(pid, heard)
    finally:
        while signal.sigtimedwait(_PASSED_ON, 0):
            pass
        for number, handler in usual.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start(path: Path, command: list[str], environment: dict[str, str], mask: set) -> int:
    signals = {"setsigmask": mask, "setsigdef": (signal.SIGPIPE, signal.SIGXFSZ)}  # Python ignores these
    try:
        return os.posix_spawn(path, command, environment, **signals)
    except OSError as error:
        if error.errno == errno.ENOEXEC:  # a script without `#!`
            return os.posix_spawn("/bin/sh", ["/bin/sh", str(path), *command[1:]], environment, **signals)
        code = NOT_FOUND if error.errno == errno.ENOENT else NOT_EXECUTABLE
        raise Failure(f"{command[0]}: could not be started: {error.strerror.lower()}", code) from error


def _wait(pid: int, heard: set) -> int:
    interrupted = False
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return -signal.SIGINT if interrupted and code == -signal.SIGTERM else code
        got = signal.sigwaitinfo(heard)
        if got.si_signo == signal.SIGINT:
            interrupted |= _interrupt(pid, by_terminal=got.si_code == _BY_KERNEL)
        elif got.si_signo != signal.SIGCHLD and got.si_code != _BY_KERNEL:
            with suppress(ProcessLookupError):
                os.kill(pid, got.si_signo)


def _interrupt(pid: int, by_terminal: bool) -> bool:
    """Whether the program does not handle SIGINT, and gets SIGTERM; with it, if it came from a terminal, its descendants."""
    descendants = []
    with suppress(psutil.Error):
        descendants = psutil.Process(pid).children(recursive=True) if by_terminal else []
    ended = not _handles_interrupt(pid)
    with suppress(ProcessLookupError, PermissionError):
        if ended:
            os.kill(pid, signal.SIGTERM)
        elif not by_terminal:
            os.kill(pid, signal.SIGINT)
    for process in descendants:
        with suppress(psutil.Error):
            if not _handles_interrupt(process.pid):
                process.terminate()
    return ended


def _handles_interrupt(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/status").read_text(errors="replace")
    except OSError:
        return False
    caught = next((line for line in status.splitlines() if line.startswith("SigCgt:")), "SigCgt: 0")
    return bool(int(caught.split()[1], 16) >> signal.SIGINT - 1 & 1)
