"""The program heap_truth while it waits, and what it says that it holds."""

import os
import signal
import subprocess

import pytest
from conftest import ROOT

LIBRARY = ROOT / "build/release/libhmalloc.so"


def environment(**more):
    return {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "HMALLOC_"))} | more


class Held:
    def __init__(self, command, truth, *arguments, **more):
        self.process = subprocess.Popen([*command, truth, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        bufsize=1, env=environment(**more))
        assert self.line() == "ready"
        self.number = self.process.pid
        rows = [line.split() for line in truth.read_text().splitlines()]
        self.truth = {int(address, 16): int(size) for address, size, _ in rows}
        self.lost = {int(address, 16) for address, _, kind in rows if kind == "lost"}

    def line(self):
        return self.process.stdout.readline().strip()

    def ask(self, line):
        self.process.stdin.write(f"{line}\n")
        return self.line()

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.stdin.write("end\n")
        assert self.process.wait(60) == 0
        self.process.stdin.close(), self.process.stdout.close()


def tools():
    """The modules, where this Python has what they need."""
    try:
        from hmalloc_lab import errors
        from hmalloc_lab.inspect import process
    except ImportError:
        pytest.skip("this Python lacks what the tool needs")
    return errors, process


# ---- What is shown is what is there. ----------------------------------------------------------------------------------
