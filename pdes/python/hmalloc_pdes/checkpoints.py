"""What the engine is told of a run's checkpoints: files, and a name by which it knows the model again."""

import os
import zlib

import numpy as np

from . import library


def options(run, model, parameters, checkpoint=None, checkpoint_every=0, resume=None):
    asked = {"checkpoint": checkpoint and os.fspath(checkpoint), "checkpoint_every": checkpoint_every,
             "resume": resume and os.fspath(resume)}
    asked = {name: value for name, value in asked.items() if value}
    if asked or library.call.has_ranks():  # which have the same parameters, or are not of one simulation
        lines = [f"{name}: {_said(value)}" for name, value in parameters.items()]
        lines += [f"layout: {run.fields()}", f"plain Python: {', '.join(run.plain()) or 'none'}"]
        asked["model"] = "\n".join([model, *lines])
    return asked


def number_of(text):
    """The same in another process."""
    return f"{zlib.crc32(text.encode()):08x}"


def _said(value):
    """A parameter in a few words."""
    text = repr(value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value)
    if isinstance(value, (set, frozenset)):  # whose order is of this process, too
        text = f"{{{', '.join(sorted(map(repr, value)))}}}"
    if " at 0x" in text:  # an object or a function, whose address is of this process
        return type(value).__name__
    return text if len(text) <= 60 and "\n" not in text else number_of(text)
