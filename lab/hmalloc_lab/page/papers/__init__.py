"""The claims of the papers: table.py has a row for each, of cells (measures.py), what is shown (pictures.py) and what is
asked (predicates.py); claims.md has the words.  What a single paper needs besides stands in a module of its name."""

from ..figure import PaperFigure
from . import repairs
from .predicates import judge
from .table import PAPERS
from .wording import section


def all_figures() -> list[PaperFigure]:
    hmalloc, *others = (_figures(paper, rows) for paper, rows in PAPERS.items())
    return [*hmalloc, repairs.FIGURE, *(figure for figures in others for figure in figures)]


def _figures(paper: str, rows: list[tuple]) -> list[PaperFigure]:
    note, wording = section(paper)
    words = {label: rest for label, *rest in wording}
    return [_figure(paper, note, label, *words[label], *row) for label, *row in rows]


def _figure(paper: str, note: str, label: str, title: str, claim: str, reading: str, of, draw, *predicates) -> PaperFigure:
    return PaperFigure(paper, label, title, claim, lambda results: draw(results, of(results)),
                       lambda results: judge(results, of, predicates), reading, note)
