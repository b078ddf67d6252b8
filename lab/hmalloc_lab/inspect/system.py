"""What the system says of a process and its threads."""

import os
import re
from pathlib import Path

import psutil

from ..errors import Failure
from .memory import printable


def find(what: str) -> int:
    """A number, or the name of a program of which one process runs."""
    if what.isdecimal():
        return int(what)
    found = [process.pid for process in psutil.process_iter(["name"]) if process.info["name"] == what]
    if len(found) != 1:
        raise Failure(f"{what}: {'no process has' if not found else f'{len(found)} processes have'} this name"
                      f"{': say which by its number, ' + ', '.join(map(str, found[:8])) if found else ''}")
    return found[0]


def threads(number: int) -> list[int]:
    try:
        return [int(each) for each in os.listdir(f"/proc/{number}/task")]
    except (FileNotFoundError, ProcessLookupError) as error:
        raise Failure(f"{number}: no such process") from error


def thread_by_own_number(process: int, own: int) -> int:
    """In a container a thread has a number of its own, beside the one that is seen from here."""
    if len(_numbers(process, process)) == 1:
        return own
    return next((each for each in threads(process) if _numbers(process, each)[-1] == str(own)), own)


def _numbers(process: int, thread: int) -> list[str]:
    """From here, and from each namespace further in; kernels without namespaces say nothing."""
    lines = Path(f"/proc/{process}/task/{thread}/status").read_text(errors="replace").splitlines()
    return next((line.split()[1:] for line in lines if line.startswith("NSpid:")), [str(thread)])


def state(number: int, thread: int) -> str:
    try:
        return Path(f"/proc/{number}/task/{thread}/stat").read_bytes().rpartition(b")")[2].split()[0].decode()
    except (OSError, IndexError):
        return "X"


def name(folder: Path) -> str:
    return printable((folder / "comm").read_bytes().decode(errors="replace").removesuffix("\n"))


def program(number: int) -> str:
    """The system keeps 15 characters of it; what the process was called with it may have changed."""
    short = name(Path(f"/proc/{number}"))
    called = os.path.basename(Path(f"/proc/{number}/cmdline").read_bytes().split(b"\0")[0].decode(errors="replace"))
    return printable(called) if len(short) == 15 and called.startswith(short) else short


def missing_right(number: int) -> str:
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



def tracer(number: int) -> int:
    found = re.search(r"TracerPid:\s*(\d+)", Path(f"/proc/{number}/status").read_text())
    return int(found[1]) if found else 0
