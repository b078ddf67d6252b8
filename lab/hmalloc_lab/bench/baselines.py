"""The profile `baselines`: the comparisons that the papers make, as one campaign.  The cells of their figures, of the
profile `paper` but shorter, as some of these allocators are slow and all of them have to take part."""

from dataclasses import replace

from . import catalogue
from .catalogue import Cell

PROFILE = "baselines"
# Who else takes part: the papers' ptmalloc and TCMalloc, and hmalloc.
USUAL = ("glibc", "gperftools", "hmalloc", "hmalloc-explicit", "hmalloc-all-shared")

_LIMIT_S = 10.0

# Workload -> values of its parameters, of which each has one; no parameters: all cells.
_FIGURES: dict[str, dict[str, tuple]] = {
    **dict.fromkeys(("threadtest", "linux-scalability", "shbench", "largetest", "larson", "producer-consumer",
                     "active-false", "passive-false", "barnes-hut", "vvmalloc", "unequal", "ar-random", "replay"), {}),
    "phold": {"threads": (2,), "remote": (0, 50, 100)},
    "pcs": {"threads": (2,), "events": (20, 200)},
    "airport": {"threads": (2,), "planes": (50, 500)},
    "linux-workers": {"mode": ("threads",), "size": (512,)},
    "linux-successors": {"threads": (7,), "rounds": (1, 2, 4, 8)},
    "linux-false-sharing": {"threads": (2,)},
    # What HMalloc's repairs bought.
    "exchange": {"threads": (2,), "size": (64,)},
    "pairs": {"pattern": ("once", "random"), "size": (64, 256)},
    "footprint": {}, "drain": {}, "idle": {},
}

# Workload -> what says how much of it, and how many times less of that there is.
_SHORTER = {
    "threadtest": ("rounds", 2), "linux-scalability": ("objects", 2), "shbench": ("iterations", 2),
    "largetest": ("iterations", 4), "larson": ("seconds", 2), "producer-consumer": ("rounds", 4),
    "active-false": ("pairs", 4), "passive-false": ("rounds", 2), "barnes-hut": ("steps", 2), "ar-random": ("steps", 2),
    "vvmalloc": ("repeats", 5), "phold": ("end", 4), "pcs": ("end", 4), "airport": ("end", 4),
    "linux-workers": ("pairs", 4), "linux-false-sharing": ("writes", 4),
}
# At most so many rounds of what cannot be made shorter.
_ROUNDS = dict.fromkeys(("replay", "footprint", "drain", "idle"), 5)


def cells() -> list[Cell]:
    return [_shortened(cell) for cell in catalogue.cells("paper") if _is_compared(cell)]


def _is_compared(cell: Cell) -> bool:
    values = _FIGURES.get(cell.workload)
    return values is not None and "latency" not in cell.point and all(
        cell.point[name] in among for name, among in values.items())


def _shortened(cell: Cell) -> Cell:
    repeat = dict(cell.repeat)
    if cell.workload in _SHORTER:
        name, times = _SHORTER[cell.workload]
        repeat[name] = repeat[name] / times if isinstance(repeat[name], float) else repeat[name] // times
    return replace(cell, repeat=repeat, limit_s=_LIMIT_S,
                   most_rounds=min(cell.most_rounds, _ROUNDS.get(cell.workload, cell.most_rounds)))
