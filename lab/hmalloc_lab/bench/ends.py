"""What a run is given of an environment, and whether it came to a good end."""

import re

from ..run import Outcome
from . import store

SAMPLE_MS = 5
_NOT_PRELOADED = re.compile(r"from LD_PRELOAD cannot be preloaded \((.*?)\)")
# Nothing of the user's that an allocator might read; and its size moves the stack, which moves the numbers.
BARE_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}


class Discounted(Exception):
    """Why a run does not count: a status of the store, and the reason."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def require_good_end(outcome: Outcome, errors: str, limit_s: float) -> None:
    if refused := _NOT_PRELOADED.search(errors):
        raise Discounted(store.NOT_LOADED, f"the loader refuses it: {refused[1]}")
    if outcome.stopped:
        raise Discounted(store.HUNG, f"no end within {limit_s:g} s")
    if outcome.code != 0:
        lines = errors.strip().splitlines()
        last = f": {lines[-1].strip()[:200]}" if lines else ""
        raise Discounted(store.CRASHED if outcome.code < 0 else store.FAILED, outcome.exit + last)
