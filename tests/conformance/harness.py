"""Running a program under an allocator and judging how it ended.  Shared by all rooms that run programs."""

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from baselines import ABORT
from baselines import PREFIXES as BASELINE_PREFIXES

REPOSITORY = Path(__file__).resolve().parents[2]
# What runs the programs of another architecture, as words; empty: this machine does.
EMULATOR = []
# Variables that change an allocator begin like this.
PREFIXES = ("HMALLOC_", *BASELINE_PREFIXES)


OURS = {"default": "libhmalloc.so", "checked": "libhmalloc-checked.so", "hardened": "libhmalloc-hardened.so",
        "faults": "libhmalloc-faults.so"}

MORE = r"(  \S.*\n)?"

OK = "ok"
# Misuse that this build need not see: whatever happens, it is not a crash inside the allocator.
OK_OR_ABORT = "ok or abort"


def library_of(build, allocator):
    return build / OURS.get(allocator, f"baselines/lib{allocator}.so")


def message_of(allocator):
    """What a program ends with which misuses it: a line; ours say more of the block on others."""
    if allocator in OURS:
        return re.compile(r"hmalloc: \w+\(0x[0-9a-f]+\): \S.*\n" + MORE)
    return re.compile(rf"{re.escape(allocator)}: \w+\(0x[0-9a-f]+\): \S.*\n")


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


def execute(argv, env, timeout=300, cpu=None, cwd=None, text_input=None):
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
        timeout *= 2
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


def meets(expected, ending, message):
    ok = ending.status == 0 and not ending.stderr and not ending.timed_out
    aborted = ending.status == -signal.SIGABRT and message.fullmatch(ending.stderr) is not None
    return {OK: ok, ABORT: aborted}.get(expected, ok or aborted)


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


def parse(parser, room):
    """The arguments of a runner of programs, with those that all such runners have."""
    parser.add_argument("--build", type=Path, default=REPOSITORY / "build/release")
    parser.add_argument("--programs", type=Path, help="folder of the built programs")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--emulator", default="", help="the command that runs programs of another architecture")
    options = parser.parse_args()
    EMULATOR[:] = shlex.split(options.emulator)
    options.build = options.build.resolve()
    options.programs = (options.programs or options.build / "tests" / room).resolve()
    return options


def run_all(jobs, perform, tests, tally):
    """perform: a test -> what it is called, the verdict, a note.  Said in order, each as soon as it and all before it are done."""

    def timed(test):
        begin = time.monotonic()
        return *perform(test), time.monotonic() - begin

    with ThreadPoolExecutor(max_workers=jobs) as pool:
        for label, verdict, note, seconds in pool.map(timed, tests):
            tally.count(verdict)
            print(f"{verdict:8}{label:56}{seconds:7.1f} s  {note}".rstrip(), flush=True)
