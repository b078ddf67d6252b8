"""The figures and tables of the papers, one module for each paper."""

from ..figure import PaperFigure
from . import ar_malloc, hmalloc, hoard, linux_malloc, vvmalloc


def all_figures() -> list[PaperFigure]:
    return [figure for paper in (hmalloc, hoard, linux_malloc, vvmalloc, ar_malloc) for figure in paper.FIGURES]
