"""hmalloc top: it shows what changes, and leaves the terminal as it was."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import pytest
from conftest import LAUNCHER
from heap_truth import environment


@pytest.mark.parametrize("end", [b"q", b"\x1b", signal.SIGTERM], ids=repr)
def test_top_shows_what_changes_and_leaves_the_terminal_as_it_was(held, end):
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 80, 0, 0))
    before = termios.tcgetattr(slave)
    top = subprocess.Popen([LAUNCHER, "top", "--every", "200ms", str(held.number)], stdin=slave, stdout=slave,
                           stderr=subprocess.PIPE, env=environment(TERM="xterm"))
    try:
        seen = read_until(master, "handed over/s")
        held.ask("grow")
        seen += read_until(master, "+500K")
        os.write(master, b"\x1b[A")  # an arrow, which ends nothing
        held.ask("grow")
        seen += read_until(master, "+0.977M")
        if isinstance(end, bytes):
            os.write(master, end)
        else:
            top.send_signal(end)
        seen += read_until_end(master, top)
        assert top.returncode == (0 if isinstance(end, bytes) else 128 + end) and top.stderr.read() == b""
        assert seen.count("\x1b[?1049h") == seen.count("\x1b[?1049l") == 1
        dumb = subprocess.run([LAUNCHER, "top", str(held.number)], stdin=slave, stdout=slave, stderr=subprocess.PIPE,
                              env=environment(TERM="dumb"), timeout=300, check=False)
        assert dumb.returncode == 2 and b"needs a terminal" in dumb.stderr
    finally:
        top.kill(), top.wait(), top.stderr.close()
    lines = [re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", line) for line in seen.replace("\x1b[H", "\n").splitlines()]
    assert max(map(len, lines)) <= 80 and any("allocated" in line for line in lines)
    assert any(line.rstrip().endswith(f"heap_truth ({held.number})") for line in lines), "whose heap it is"
    assert termios.tcgetattr(slave) == before
    os.close(master), os.close(slave)


def read_until(descriptor, text):
    seen, end = "", time.monotonic() + 120
    while text not in seen:
        assert time.monotonic() < end and select.select([descriptor], [], [], 60)[0], seen[-4000:]
        seen += os.read(descriptor, 65536).decode(errors="replace")
    return seen


def read_until_end(descriptor, process):
    """It may write more than the terminal holds before it ends."""
    seen = ""
    while process.poll() is None:
        if select.select([descriptor], [], [], 0.1)[0]:
            seen += os.read(descriptor, 65536).decode(errors="replace")
    while select.select([descriptor], [], [], 0)[0]:
        try:
            seen += os.read(descriptor, 65536).decode(errors="replace")
        except OSError:  # nobody holds the other end any more
            break
    return seen


def test_top_needs_a_terminal_and_one_process(held, hmalloc):
    shown = hmalloc("top", held.number)
    assert (shown.returncode, shown.stderr) == (
        2, "hmalloc: top: needs a terminal; without one: hmalloc inspect --every 1s PID\n")
    shown = hmalloc("top")
    assert (shown.returncode, shown.stderr) == (2, "hmalloc: top: which process? (hmalloc top --help)\n")


# ---- The program is none the worse for it. ----------------------------------------------------------------------------
