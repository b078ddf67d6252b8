"""What several tools show in the same way: lines and tables for 80 columns, and numbers."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

_UNITS = ["B", "K", "M", "G", "T", "P", "E"]
_TIMES = ["ns", "us", "ms", "s"]


def say(console: Console, line: str, style: str = "") -> None:
    # Broken at words for a person; in a file, one line stays one line.
    console.print(Text(line, style=style), soft_wrap=not console.is_terminal)


def head(console: Console, title: str) -> None:
    console.print()
    say(console, title, "bold")


def new_table(*numbers: str, last: str = "") -> Table:
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_header=any(numbers))
    for title in numbers:
        made.add_column(title, justify="right", no_wrap=True)
    made.add_column(last, overflow="fold")
    return made


def in_bytes(count: float) -> str:
    at = 0
    while count >= 999.5 and at + 1 < len(_UNITS):
        count /= 1024
        at += 1
    return f"{count:.3g}{_UNITS[at]}" if count < 999.5 else f"{count:.0f}{_UNITS[at]}"


def in_number(count: float) -> str:
    return f"{count:,.0f}" if count < 1e7 else f"{count:.3g}".replace("e+0", "e").replace("e+", "e")


def in_percent(part: float, whole: float) -> str:
    """A per cent that is all or nothing only where it is."""
    if not whole:
        return "-"
    rounded = f"{part / whole:.0%}"
    return {"0%": "<1%", "100%": ">99%"}.get(rounded, rounded) if 0 < part < whole else rounded


def in_time(nanoseconds: int) -> str:
    at = 0
    while nanoseconds >= 1000 and at + 1 < len(_TIMES):
        nanoseconds //= 1000
        at += 1
    return f"{nanoseconds} {_TIMES[at]}"
