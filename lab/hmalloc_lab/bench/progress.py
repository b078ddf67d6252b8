"""What a campaign shows while it measures: a bar with the time to go on a terminal, a line for each round otherwise."""

import time

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar


class Progress:
    def __init__(self, console: Console) -> None:
        self._console, self._begin, self._what, self._bar = console, time.monotonic(), "warming up", None
        if console.is_terminal:
            self._bar = Bar(TextColumn("{task.fields[what]}"), BarColumn(bar_width=20), TimeElapsedColumn(),
                            TextColumn("{task.fields[left]}"), TextColumn("[dim]{task.description}"),
                            console=console, transient=True)
            self._task = self._bar.add_task("", total=1.0, what=self._what, left="")

    def __enter__(self) -> "Progress":
        if self._bar:
            self._bar.start()
        else:
            self._console.print(self._what)
        return self

    def __exit__(self, *_) -> None:
        if self._bar:
            self._bar.stop()

    def note(self, text: str) -> None:
        """A line that stays."""
        self._console.print(text, markup=False, soft_wrap=True)

    def round(self, number: int, rounds: int, left_s: float) -> None:
        self._what = f"round {number} of {rounds}"
        if not self._bar:
            self._console.print(f"{self._what}, {_clock(self._elapsed())} so far, about {_clock(left_s)} to go")

    def run(self, cell: str, allocator: str, left_s: float | None) -> None:
        if not self._bar:
            return
        share = 0.0 if left_s is None else self._elapsed() / max(self._elapsed() + left_s, 0.001)
        self._bar.update(self._task, completed=share, what=self._what, description=f"{cell}  {allocator}",
                         left="" if left_s is None else f"left {_clock(left_s)}")

    def _elapsed(self) -> float:
        return time.monotonic() - self._begin


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(max(seconds, 0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
