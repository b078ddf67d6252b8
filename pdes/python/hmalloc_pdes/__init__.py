"""Simulation models in Python on the parallel engine of hmalloc; handlers are compiled by Numba.  docs/pdes-python.md."""

from .errors import Error, SlowModelWarning
from .lp import lp
from .model import model
from .outside import Injected, Outside
from .plot import plot
from .records import Array, Tally
from .result import Result, Statistic
from .sweep import sweep

__all__ = ["Array", "Error", "Injected", "Outside", "Result", "SlowModelWarning", "Statistic", "Tally", "lp", "model",
           "plot", "sweep"]
