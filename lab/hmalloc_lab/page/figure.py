"""What a figure of the report is made of.  The modules of papers/ make them; page.py shows them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ..bench.results import Results


@dataclass(frozen=True)
class Point:
    x: float | str
    y: float
    low: float | None = None   # the spread over the rounds, where the figure shows it
    high: float | None = None


@dataclass(frozen=True)
class Series:
    name: str                  # the allocator's name, where it is one: it decides the colour
    points: Sequence[Point]
    dashed: bool = False       # a prediction, an ideal line


@dataclass(frozen=True)
class Chart:
    kind: Literal["lines", "bars"]
    x_title: str
    y_title: str
    series: Sequence[Series]
    log_x: bool = False
    log_y: bool = False
    title: str = ""            # where a figure has several charts


@dataclass(frozen=True)
class Table:
    columns: Sequence[str]
    rows: Sequence[Sequence[str | float | None]]
    title: str = ""


CONFIRMED, NOT_CONFIRMED, UNTOLD = "confirmed", "not confirmed", "cannot be told here"


@dataclass(frozen=True)
class Verdict:
    outcome: Literal["confirmed", "not confirmed", "cannot be told here"]
    reason: str                # one or two sentences with the numbers that it rests on
    takes: str = ""            # what this machine or campaign lacks to tell


@dataclass(frozen=True)
class PaperFigure:
    paper: str                 # short name of the paper, "HMalloc (2020)"
    label: str                 # "Fig. 11 (a)", "Table 2"
    title: str
    claim: str                 # what the paper says, in our words, with its numbers and section
    draw: Callable[[Results], Sequence[Chart | Table]]  # empty where nothing was measured
    judge: Callable[[Results], Verdict]
    reading: str = ""          # how to read our picture, where it differs from the paper's
    note: str = ""             # what stands for what the paper measured, the same for all its figures
    id: str = field(default="")

    def __post_init__(self) -> None:
        if not self.id:
            words = f"{self.paper.split(' (')[0]} {self.label}".lower()
            object.__setattr__(self, "id", "-".join("".join(c if c.isalnum() else " " for c in words).split()))
