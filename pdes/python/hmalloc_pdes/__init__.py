"""Simulation models in Python on the parallel engine of hmalloc; handlers are compiled by Numba.  docs/pdes-python.md."""

from .errors import Error, SlowModelWarning
from .lp import lp
from .model import model
from .outside import Injected, Outside
from .plot import plot
from .records import Array
from .result import Result, Statistic
from .statistics import BatchMeans, Histogram, Level, Tally
from .sweep import sweep

__all__ = ["Array", "BatchMeans", "Error", "Histogram", "Injected", "Level", "Outside", "Result", "SlowModelWarning",
           "Statistic", "Tally", "lp", "model", "plot", "sweep"]
