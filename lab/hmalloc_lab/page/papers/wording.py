"""Rows of claims.md, and the figures that are made of them."""

import re
from collections.abc import Callable
from pathlib import Path

from ..figure import PaperFigure
from .measures import Cells
from .pictures import Draw
from .predicates import Clause, judge


def rows(section: str) -> list[list[str]]:
    """The cells of the table in this section."""
    text = Path(__file__).with_name("claims.md").read_text(encoding="utf-8")
    lines = text.split(f"\n## {section}\n")[1].split("\n## ")[0].splitlines()
    return [[cell.strip() for cell in re.split(r" \|(?: |$)", line[2:])[:4]] for line in lines if line[:2] == "| "][1:]


def of_paper(paper: str, usual: str = "") -> Callable[..., PaperFigure]:
    """What makes the paper's figures of their label, cells, picture and clauses; `usual`: what is said with every
    verdict, unless it has a note of its own."""
    wording = {row[0]: row[1:] for row in rows(paper)}

    def figure(label: str, of: Cells, draw: Draw, *clauses: Clause, note: str = usual) -> PaperFigure:
        title, claim, reading = wording[label]
        return PaperFigure(paper, label, title, claim, lambda results: draw(results, of(results)),
                           lambda results: judge(results, of, clauses, note), reading)
    return figure
