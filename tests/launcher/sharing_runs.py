"""A program whose threads pass blocks on, and ways to profile it; a run that several tests look at is made once."""

import fcntl
import json
import os
import pty
import select
import struct
import termios
import time
from types import SimpleNamespace

import pytest
from conftest import SOURCES, environment

RATE = ["--rate", "8K"]


def line_of(text):
    return next(at for at, line in enumerate((SOURCES / "sharing.c").read_text().splitlines(), 1) if text in line)


FEED, CONSUME = f"feed (sharing.c:{line_of('xmalloc(kBlock)')})", f"consume (sharing.c:{line_of('free(passed[i])')})"


def on_a_terminal(words, keys, columns=80, when=b"ready", **variables):
    """What is shown on a terminal, and the exit code; keys are pressed when the program is ready."""
    child, terminal = pty.fork()
    if child == 0:
        os.execve(words[0], list(map(str, words)), environment() | {"TERM": "dumb"} | variables)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    shown, end = b"", time.monotonic() + 60
    while time.monotonic() < end and select.select([terminal], [], [], 60)[0]:
        try:
            shown += os.read(terminal, 65536)
        except OSError:
            break
        if keys and when in shown:
            os.write(terminal, keys)
            keys = b""
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(terminal)
    return shown.decode().replace("\r\n", "\n"), code


@pytest.fixture(scope="session")
def sharing(hmalloc, build):
    return build("sharing.c", "sharing", "-g", "-pthread", "-fno-builtin")


def _run(tool, program, folder, *words):
    files = SimpleNamespace(**{name: folder / name for name in ("json", "html", "pprof")})
    written = [word for name, file in vars(files).items() for word in (f"--{name}", file)]
    result = tool("profile", *RATE, *written, "--", program, *words)
    assert result.returncode == 0, result.stderr
    return SimpleNamespace(shown=result.stdout, found=json.loads(files.json.read_text()), page=files.html.read_text(),
                           profile=files.pprof)


@pytest.fixture(scope="session")
def mapped(tool, sharing, tmp_path_factory):
    """The program was run: what was shown, the document, the page, and the file of the profile."""
    return _run(tool, sharing, tmp_path_factory.mktemp("mapped"))


@pytest.fixture(scope="session")
def pooled(tool, sharing, tmp_path_factory):
    """The same with many threads."""
    return _run(tool, sharing, tmp_path_factory.mktemp("pooled"), "pool")


@pytest.fixture
def profiled(tool, tmp_path):
    """The tables and the document of a run, or of a profile that is there."""

    def call(*arguments, **environment):
        file = tmp_path / "map.json"
        shown = tool("profile", "--json", file, *arguments, **environment)
        assert shown.returncode == 0, shown.stderr
        return shown.stdout, json.loads(file.read_text())

    return call
