class Error(Exception):
    """A model that cannot be, or a run that failed: one line."""


class SlowModelWarning(UserWarning):
    """A class of LPs runs as plain Python."""
