import re


class Error(Exception):
    """A model that cannot be, or a run that failed: one line."""


class SlowModelWarning(UserWarning):
    """A class of LPs runs as plain Python."""


def text_of(error):
    """Without the colours that Numba gives its messages where colorama is installed."""
    return re.sub(r"\x1b\[[0-9;]*m", "", str(error))
