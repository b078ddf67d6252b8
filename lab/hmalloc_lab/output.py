"""The standard output, which may be full or closed: the tools say so in one line, as they say all else."""

import errno
import io
import os
import sys

_READER_LEFT = 141  # what a shell shows for a program that SIGPIPE ended


class LostOutput(Exception):
    """What was printed did not arrive."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error.strerror)
        self.reader_left = error.errno == errno.EPIPE
        self.code = _READER_LEFT if self.reader_left else 1


class _Guarded(io.FileIO):
    """An exception of its own: that of a file of the user's is none of this, and rich ends the program on a closed pipe."""

    def write(self, data) -> int | None:
        try:
            return super().write(data)
        except OSError as error:
            # What waits to be written is written once more at the end, and must not fail again.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            raise LostOutput(error) from error


def guard_standard_output() -> None:
    if sys.stdout is None:  # closed from the start
        return
    sys.stdout.flush()
    raw = _Guarded(sys.stdout.fileno(), "wb", closefd=False)
    # A terminal that has no such sign is no reason to end: pictures are made of some.
    errors = sys.stdout.errors if sys.stdout.encoding == "utf-8" else "replace"
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(raw), encoding=sys.stdout.encoding, errors=errors,
                                  line_buffering=raw.isatty())


def flush_standard_output() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()
