"""Running a program under an allocator and judging how it ended.  Shared by conformance, misuse and programs."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from baselines import PREFIXES as BASELINE_PREFIXES

REPOSITORY = Path(__file__).resolve().parents[2]
# What runs the programs of another architecture, as words; empty: this machine does.
EMULATOR = []
# Variables that change an allocator begin like this.
PREFIXES = ("HMALLOC_", *BASELINE_PREFIXES)


def message_of(library):
    """How the line begins that a program which misuses this library ends with."""
    return re.compile(rf"{re.escape(library)}: \w+\(0x[0-9a-f]+\): \S.*\n")


MESSAGE = message_of("hmalloc")

OK = "ok"
ABORT = "abort"
# Misuse that this build need not see: whatever happens, it is not a crash inside the allocator.
OK_OR_ABORT = "ok or abort"


@dataclass
class Ending:
    status: int  # as subprocess has it: a signal is negative
    stdout: str
    stderr: str
    seconds: float
    timed_out: bool = False

    def describe(self):
        if self.timed_out:
            how = "still running"
        elif self.status < 0:
            how = signal.Signals(-self.status).name
        else:
            how = f"exit {self.status}"
        said = " | ".join(self.stderr.strip().splitlines()[:3])
        return f"{how} after {self.seconds:.1f} s" + (f": {said[:300]}" if said else "")


def environment(preload=None, **extra):
    """The caller's, without what would change the allocator under test."""
    env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD" and not k.startswith(PREFIXES)}
    if preload:
        env["LD_PRELOAD"] = str(preload)
    env.update({k: str(v) for k, v in extra.items()})
    return env


def emulated(argv, env):
    """The preload is for the program: the emulator, a program of this machine, could not load it."""
    env = dict(env)
    preload = env.pop("LD_PRELOAD", None)
    return [*EMULATOR, *(["-E", f"LD_PRELOAD={preload}"] if preload else []), *argv], env


def execute(argv, env, timeout=60, cpu=None, cwd=None, text_input=None):
    """One program in its own process group, so that a timeout ends its children too.  Not in its own session: the kernel
    shares a processor among sessions first, and Linux 6.18 then lets a child that can run wait for seconds."""

    def prepare():
        import resource

        os.setpgrp()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if cpu is not None:
            os.sched_setaffinity(0, {cpu})

    if EMULATOR:
        argv, env = emulated(argv, env)
    begin = time.monotonic()
    process = subprocess.Popen(
        [str(a) for a in argv], env=env, cwd=cwd, preexec_fn=prepare,
        stdin=subprocess.PIPE if text_input is not None else subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
    timed_out = False
    try:
        out, err = process.communicate(text_input, timeout=timeout)
    except subprocess.TimeoutExpired:
        timed_out = True
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
    if EMULATOR:  # its own word on a program that a signal ended
        err = re.sub(r"^qemu: uncaught target signal .*\n", "", err, flags=re.MULTILINE)
    return Ending(process.returncode, out, err, time.monotonic() - begin, timed_out)


def ended_ok(ending):
    return ending.status == 0 and not ending.stderr and not ending.timed_out


def ended_in_abort(ending, message=MESSAGE):
    return ending.status == -signal.SIGABRT and message.fullmatch(ending.stderr) is not None


def meets(expected, ending, message=MESSAGE):
    if expected == OK:
        return ended_ok(ending)
    if expected == ABORT:
        return ended_in_abort(ending, message)
    return ended_ok(ending) or ended_in_abort(ending, message)


@contextlib.contextmanager
def loaded_machine():
    """As many busy processes as there are CPUs."""
    spinners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


def in_parallel(jobs, work, items):
    """Results in the order of the items, each as soon as it and all before it are done."""
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        yield from pool.map(work, items)


def find_peer(name):
    """A peer allocator of this system by name, or None."""
    stems = {"mimalloc": "libmimalloc.so.", "jemalloc": "libjemalloc.so.", "tcmalloc": "libtcmalloc_minimal.so."}
    listing = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=False).stdout
    for line in listing.splitlines():
        if line.strip().startswith(stems[name]):
            return Path(line.split("=>")[1].strip())
    return None


@dataclass
class Tally:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    excepted: int = 0  # failed as the list of exceptions says

    def count(self, verdict):
        setattr(self, verdict, getattr(self, verdict) + 1)

    def closing_line(self):
        excepted = f"{self.excepted} failed as listed, " if self.excepted else ""
        return f"{self.passed} passed, {self.failed} failed, {excepted}{self.skipped} skipped"
