"""Simulation models in Python on the parallel engine of hmalloc; handlers are compiled by Numba.  docs/pdes-python.md."""

from .errors import Error, SlowModelWarning
from .lp import lp
from .members import BatchMeans, Histogram, Level, Tally, Timer, Vacancies
from .model import model
from .outside import Injected, Outside
from .plot import plot
from .records import Array, cancellable, makes
from .result import Delays, Path, Result, Statistic
from .sweep import sweep

__all__ = ["Array", "BatchMeans", "Delays", "Error", "Histogram", "Injected", "Level", "Outside", "Path", "Result",
           "SlowModelWarning", "Statistic", "Tally", "Timer", "Vacancies", "cancellable", "lp", "makes", "model", "plot",
           "sweep"]
