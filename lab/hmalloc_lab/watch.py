"""hmalloc pdes --live and --html: runs a model, shows it on the terminal while it runs, and writes a page about it."""

import json
import math
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Column, Table
from rich.text import Text

from .errors import Failure
from .page import simulation
from .report import check_writable

_BLOCKS, _ASCII_BLOCKS = "▁▂▃▄▅▆▇█", "_.-~=+*#"
_KEPT = 48  # points in a curve on a terminal
_PASSED_ON = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1}
_BY_KERNEL = 0x80  # si_code of what a terminal sends; it sends that to the program, too


def run(console: Console, command: list[str], name: str, live: bool, page: Path | None) -> int:
    """The program's own exit code."""
    _refuse_twice(command, live, page)
    if live and not (sys.stderr.isatty() and console.is_interactive):
        raise Failure("pdes: --live is for a terminal; --progress json writes lines for programs")
    if page:
        check_writable(page)
    with _folder() as folder:
        series, summary = Path(folder) / "series.jsonl", Path(folder) / "summary.json"
        words = [*command, "--series", str(series), "--summary", str(summary)] if page else command
        code = _watched(console, [*words, "--progress", "json"], name) if live else _run(words)
        if page and series.exists() and series.stat().st_size > 0:
            try:
                found = simulation.read_summary(summary)
                simulation.write(simulation.read(series), found["model"] if found else name, page, found)
                console.print(Text(f"Page: {page}"), soft_wrap=True)
            except Failure as failure:
                if code == 0:
                    raise
                console.print(Text(f"hmalloc: {failure}"), soft_wrap=True)  # what ended the run matters more
    return code


def _refuse_twice(command: list[str], live: bool, page: Path | None) -> None:
    ours = {"--progress": "--live"} if live else {}
    if page:
        ours |= {"--series": "--html", "--summary": "--html"}
    for option in (word.partition("=")[0] for word in command[1:]):
        if option in ours:
            raise Failure(f"pdes: {option} and {ours[option]} exclude each other")


def _folder() -> tempfile.TemporaryDirectory:
    try:
        return tempfile.TemporaryDirectory(prefix="hmalloc-pdes-", ignore_cleanup_errors=True)
    except OSError as error:
        raise Failure(f"no folder for the run's files: {error.strerror}", 1) from error


def _run(command: list[str]) -> int:
    with _started(command) as program:
        return _code(program.wait())


def _watched(console: Console, command: list[str], name: str) -> int:
    """What the program says at its end comes when the picture has gone."""
    with tempfile.TemporaryFile() as said:
        with _started(command, stdout=said, stderr=subprocess.PIPE, text=True, errors="replace") as program:
            view = View(name, _BLOCKS if console.encoding.startswith("utf") else _ASCII_BLOCKS)
            with Live(view, console=console, transient=True, refresh_per_second=4) as picture:
                assert program.stderr is not None
                for line in program.stderr:
                    if not view.see(line):
                        picture.console.print(Text(line.rstrip("\n")), soft_wrap=True)
            code = _code(program.wait())
        said.seek(0)
        _copy(said)
    return code


def _copy(said: BinaryIO) -> None:
    if sys.stdout is not None:
        sys.stdout.flush()
        shutil.copyfileobj(said, sys.stdout.buffer)
        sys.stdout.flush()


def _code(status: int) -> int:
    return 128 - status if status < 0 else status


@contextmanager
def _started(command: list[str], **how: object) -> Iterator[subprocess.Popen]:
    """A program that gets the signals that are meant for it: SIGUSR1 to save the run, SIGTERM to end it.  What a
    terminal sends reaches it by itself."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
    over = threading.Event()
    try:
        with subprocess.Popen(command, preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, before),
                              **how) as program:  # type: ignore[call-overload]
            hands_on = threading.Thread(target=_hand_on, args=(program, over), daemon=True)
            hands_on.start()
            try:
                yield program
            finally:
                over.set()
                hands_on.join()
    finally:
        while signal.sigtimedwait(_PASSED_ON, 0):
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _hand_on(program: subprocess.Popen, over: threading.Event) -> None:
    while not over.is_set():
        got = signal.sigtimedwait(_PASSED_ON, 0.1)
        if got is not None and got.si_code != _BY_KERNEL:
            with suppress(ProcessLookupError):
                program.send_signal(got.si_signo)


class View:
    """A picture of the last points of a run; rich asks for it as often as it draws."""

    def __init__(self, name: str, blocks: str = _BLOCKS) -> None:
        self._name, self._blocks = name, blocks
        self._points: deque[dict] = deque(maxlen=_KEPT)

    def see(self, line: str) -> bool:
        """Whether the line was a point of the run."""
        try:
            point = json.loads(line) if line.startswith("{") else None
        except ValueError:
            return False
        if not isinstance(point, dict) or "events_per_s" not in point:
            return False
        self._points.append(point)
        return True

    def __rich__(self) -> Group:
        points = list(self._points)  # at once: this is another thread
        return Group(*self._rows(points)) if points else Group(Text(f"{self._name} builds its LPs"))

    def _rows(self, points: list[dict]) -> Iterator[Table]:
        now = points[-1]
        facts = Table.grid(padding=(0, 2))
        facts.add_row(self._name, _bar(now["percent"]), f"{now['percent']:.0f} %",
                      f"virtual time {now['now']:.6g}", _to_go(now))
        yield facts
        curves = Table.grid(Column(), Column(no_wrap=True, overflow="crop"), Column(), padding=(0, 2))
        curves.add_row("events/s", self._curve(points, "events_per_s"), simulation.short(now["events_per_s"]))
        curves.add_row("pending", self._curve(points, "pending"),
                       f"{simulation.short(now['pending'])}, {simulation.short(now['bytes'], 'B')}")
        if now["windows"] > 1:
            curves.add_row("window", self._curve(points, "window"), f"{now['window'] or 0:.3g}")
        yield curves
        threads = Table.grid(padding=(0, 2))
        for number, blocked in enumerate(now["blocked"] if len(now["blocked"]) > 1 else []):
            works = 100 * (1 - (blocked or 0))
            threads.add_row(f"thread {number}", _bar(works), f"works {works:.0f} %",
                            f"waits {100 - works:.0f} %")
        yield threads

    def _curve(self, points: list[dict], name: str) -> str:
        values = [point[name] or 0 for point in points]
        most = max(values)
        steps = [round(value / most * (len(self._blocks) - 1)) if most > 0 else 0 for value in values]
        return "".join(self._blocks[step] for step in steps)


def _bar(percent: float) -> ProgressBar:
    return ProgressBar(total=100, completed=percent, width=30)


def _to_go(now: dict) -> str:
    share = now["percent"] / 100
    left = now["wall_s"] * (1 - share) / share if share > 0 else math.inf
    return f"{now['wall_s']:.0f} s, some {left:.0f} s to go" if math.isfinite(left) else f"{now['wall_s']:.0f} s"
