"""One program under one allocator for some time: its environment, its folder, and how what it started ended."""

import contextlib
import os
import pwd
import shutil
import subprocess
import time
from pathlib import Path

from harness import environment, execute


class TroubleError(Exception):
    """What went wrong, in one line."""


class Session:
    def __init__(self, library, folder, seconds):
        self.library = library
        self.folder = Path(folder)
        self.seconds = seconds
        self.rounds = 0
        self.end = time.monotonic() + seconds

    def environment(self, **extra):
        return environment(self.library, **extra)

    def run(self, *argv, timeout=900, text=None, under=True, status=0, **extra):
        """Its standard output; under: on the allocator, as what the program starts is too."""
        env = self.environment(**extra) if under else environment(**extra)
        ending = execute(argv, env, timeout, cwd=self.folder, text_input=text)
        if ending.status != status or ending.timed_out:
            raise TroubleError(f"{Path(argv[0]).name}: {ending.describe()}: {ending.stdout[-200:].strip()}")
        if "hmalloc: " in ending.stderr:
            raise TroubleError(f"{Path(argv[0]).name} says: {ending.stderr[:300]}")
        return ending.stdout

    def repeat(self, work):
        """Rounds until the time is over, one at least; all must say the same."""
        said = None
        while said is None or time.monotonic() < self.end:
            now = work()
            if said not in (None, now):
                raise TroubleError(f"round {self.rounds + 1} says {now[:200]!r}, the first one {said[:200]!r}")
            said = now
            self.rounds += 1
        return said

    @contextlib.contextmanager
    def server(self, *argv, user=None, status=0, **extra):
        """(process, its log); it is to end with this status in between, and is killed otherwise."""
        log = self.folder / "server.log"
        with open(log, "w") as output:
            process = subprocess.Popen([str(a) for a in argv], env=self.environment(**extra), cwd=self.folder,
                                       stdin=subprocess.DEVNULL, stdout=output, stderr=output, user=user)
        try:
            yield process, log
            ended = process.wait(60)
            if ended != status:
                raise TroubleError(f"{argv[0]} ends with {ended}: {log.read_text()[-300:]}")
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def until(condition, what, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TroubleError(f"{what}: not within {seconds} s")
        time.sleep(0.1)


def unprivileged():
    """A user for programs that refuse root; None: this one will do."""
    if os.getuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in names), None)


def hand_to(user, folder):
    if user:
        shutil.chown(folder, user)
