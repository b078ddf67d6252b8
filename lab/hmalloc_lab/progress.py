"""What compare shows while it works: a bar on a terminal, one line otherwise."""

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar


class Progress:
    """Counts the steps that it is called with: two to warm up, then two a round."""

    def __init__(self, rounds: int, quiet: bool) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._steps, self._done = 2 * rounds + 2, -1
        self._bar = None
        if self._console.is_terminal and not quiet:
            self._bar = Bar(TextColumn("{task.description}"), BarColumn(bar_width=24), TimeElapsedColumn(),
                            TextColumn("left"), TimeRemainingColumn(), console=self._console, transient=True)
            self._task = self._bar.add_task("", total=self._steps)
        else:
            self._console.print(f"comparing: {rounds} round{'s' if rounds > 1 else ''}")

    def __enter__(self) -> "Progress":
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *_) -> None:
        if self._bar:
            self._bar.stop()

    def __call__(self, step: str) -> None:
        self._done += 1
        if self._bar:
            self._bar.update(self._task, description=step, completed=self._done)
