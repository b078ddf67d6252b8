"""What is shown while programs are measured: a bar with the time to go on a terminal, a few lines otherwise."""

import time
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar


class Progress:
    def __init__(self, console: Console, opening: str, with_bar: bool = True) -> None:
        self._console, self._begin, self._stage, self._bar = console, time.monotonic(), opening, None
        if console.is_terminal and with_bar:
            self._bar = Bar(TextColumn("{task.fields[stage]}"), BarColumn(bar_width=20), TimeElapsedColumn(),
                            TextColumn("{task.fields[left]}"), TextColumn("[dim]{task.description}"),
                            console=console, transient=True)
            self._task = self._bar.add_task("", total=1.0, stage=opening, left="")

    def __enter__(self) -> "Progress":
        if self._bar:
            self._bar.start()
        else:
            self._console.print(self._stage)
        return self

    def __exit__(self, *_) -> None:
        if self._bar:
            self._bar.stop()

    def note(self, text: str) -> None:
        """A line that stays."""
        self._console.print(text, markup=False, soft_wrap=True)

    def stage(self, what: str, left_s: float) -> None:
        self._stage = what
        if not self._bar:
            self._console.print(f"{what}, {_clock(self._elapsed())} so far, about {_clock(left_s)} to go")

    def step(self, what: str, left_s: float | None) -> None:
        """Seen on a bar only."""
        if not self._bar:
            return
        share = 0.0 if left_s is None else self._elapsed() / max(self._elapsed() + left_s, 0.001)
        self._bar.update(self._task, completed=share, stage=self._stage, description=what,
                         left="" if left_s is None else f"left {_clock(left_s)}")

    def counted(self, steps: int) -> Callable[[str], None]:
        """To be called before each of so many steps, which are taken to last equally long."""
        done = -1

        def next_step(what: str) -> None:
            nonlocal done
            done += 1
            self.step(what, self._elapsed() / done * max(steps - done, 0) if done else None)
        return next_step

    def _elapsed(self) -> float:
        return time.monotonic() - self._begin


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(max(seconds, 0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
