"""The claims of the papers, a row each: claims.md has the wording, a module for each paper says what is asked of which
cells (predicates.py, measures.py) and what is shown (pictures.py)."""

from ..figure import PaperFigure
from . import ar_malloc, hmalloc, hoard, linux_malloc, repairs, vvmalloc


def all_figures() -> list[PaperFigure]:
    return [figure for part in (hmalloc, repairs, hoard, linux_malloc, vvmalloc, ar_malloc) for figure in part.FIGURES]
