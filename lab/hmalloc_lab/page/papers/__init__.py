"""The figures and tables of the papers, one module for each paper, and what became of the holes of one of them."""

from ..figure import PaperFigure
from . import ar_malloc, hmalloc, hoard, linux_malloc, repairs, vvmalloc


def all_figures() -> list[PaperFigure]:
    parts = (hmalloc, repairs, hoard, linux_malloc, vvmalloc, ar_malloc)
    return [figure for part in parts for figure in part.FIGURES]
