"""What the engine is meant to reach: one row for each comparison, and what became of it.

A ratio is how many times as fast the one is as the other.  Rates against the bare loop and against fewer threads are
judged by the best rounds of both, as a descheduled round says nothing about an engine; differences of a few percent,
between allocators, by the median over the rounds of the ratio within a round.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ..catalogue import Cell
from ..results import Results
from ..simulations import BARE
from ..statistics import paired_ratio, round_ratios
from ..store import AllocatorRow
from .cells import (
    ALLOCATED,
    BARE_CONFIGURATIONS,
    COMPARED,
    EXPLICIT_HMALLOC,
    STANDARD,
    SYSTEM,
    USUAL,
    bare,
    engine,
    engines,
    model,
)

BEST_PEER = "best peer"
REACHED, MISSED, FELL, UNMEASURED, SHOWN = "reached", "missed", "BELOW THE FLOOR", "not measured", ""


@dataclass(frozen=True)
class Row:
    part: str
    what: str
    cell: Cell
    base: Cell
    target: float | None = None       # of the ratio
    floor: float | None = None        # below it CI complains
    allocator: str = EXPLICIT_HMALLOC
    base_allocator: str = EXPLICIT_HMALLOC
    by_median: bool = False
    against: str = BARE               # what the base is called


@dataclass(frozen=True)
class Judged:
    row: Row
    base_allocator: str   # the peer, where the best was asked for
    rate: float           # of the best round, million events per second
    median_rate: float
    best: float           # ratio of the best rounds
    median: float         # of the rounds' ratios, with its 95 % interval
    low: float
    high: float
    least: float          # of the rounds' ratios
    most: float
    rounds: int

    @property
    def against(self) -> str:
        return f"{self.base_allocator} ({BEST_PEER})" if self.row.base_allocator == BEST_PEER else self.row.against

    @property
    def verdict(self) -> str:
        return verdict(self.median if self.row.by_median else self.best, self.row)


def verdict(value: float, row: Row) -> str:
    if row.floor is not None and value < row.floor:
        return FELL
    return SHOWN if row.target is None else REACHED if value >= row.target else MISSED


def rows() -> list[Row]:
    return [*_against_bare(), *_threads(), *_allocators(), *_options(), *_engines()]


def judged(results: Results) -> list[tuple[Row, Judged | None]]:
    """All rows of the campaign's parts; None: not measured."""
    parts = results.campaign.environment.get("parts", USUAL)
    return [(row, _judge(results, row)) for row in rows() if row.part in parts
            and {row.cell.name, row.base.name} <= results.cells.keys() and _takes_part(results, row.base_allocator)]


def _takes_part(results: Results, allocator: str) -> bool:
    return bool(_peers(results)) if allocator == BEST_PEER else allocator in results.allocators


def _peers(results: Results) -> list[AllocatorRow]:
    return results.of_kind("peer", "user")


def _judge(results: Results, row: Row) -> Judged | None:
    base_allocator = row.base_allocator
    if base_allocator == BEST_PEER:
        best = results.best(row.base, _peers(results))
        base_allocator = best[0] if best else ""
    mine, theirs = results.values(row.cell, row.allocator), results.values(row.base, base_allocator)
    found = paired_ratio(theirs, mine)
    if found is None:
        return None
    ratios = round_ratios(theirs, mine)
    rates = [1e3 / ns for ns in mine.values()]
    return Judged(row, base_allocator, max(rates), 1e3 / results.median(row.cell, row.allocator),
                  min(theirs.values()) / min(mine.values()), found.median, found.low, found.high, min(ratios),
                  max(ratios), found.rounds)


# ---- Targets and floors. --------------------------------------------------------------------------------------------

# Configuration -> target and floor, one thread against the bare loop.
_ONE_THREAD = {"A": (2.0, 1.3), "B": (2.5, 1.5), "C": (2.2, 1.1), "1M": (5.5, 2.0), "ties": (2.0, 1.0),
               "pareto": (1.0, 0.8), "E": (None, None)}
# Two threads against the bare loop, and against one thread of their own.
_TWO_THREADS = {"A": (3.5, 1.7), "B": (3.8, 1.6), "C": (1.8, 1.1)}
_PHILOX = (1.9, 1.1)
_TWO_RANKS = 2.0
_OVERSUBSCRIBED = 1 / 1.2
_OF_BOUND, _OF_BEST_PEER, _OF_GLIBC = 1 / 1.03, 1 / 1.02, 1.15
_AHEAD_OF_PEERS = {"B": 1.08, "mixed": 1.08}
_PICKS_WELL = 1 / 1.02  # `--blocks automatic` against either choice


def _against_bare() -> Iterator[Row]:
    for config in BARE_CONFIGURATIONS:
        yield Row("bare", f"{config}, 1 thread", model(config), bare(config), *_ONE_THREAD[config], base_allocator=SYSTEM)
    yield Row("bare", "B, Philox", model("B", generator="philox"), bare("B"), *_PHILOX, base_allocator=SYSTEM)


def _threads() -> Iterator[Row]:
    for config in STANDARD:
        over_bare, over_one = _TWO_THREADS[config]
        yield Row("threads", f"{config}, 2 threads", model(config, 2), bare(config), over_bare, base_allocator=SYSTEM)
        yield Row("threads", f"{config}, 2 threads", model(config, 2), model(config), over_one, against="1 thread")
    yield Row("threads", "B, 2 MPI ranks", model("B", ranks=2), bare("B"), _TWO_RANKS, base_allocator=SYSTEM)
    for config in STANDARD:
        yield Row("threads", f"{config}, 8 threads asked for", model(config, 8, capped=1), model(config),
                  _OVERSUBSCRIBED, against="1 thread")
        yield Row("threads", f"{config}, 8 threads started", model(config, 8), model(config), against="1 thread")


def _allocators() -> Iterator[Row]:
    for config in ALLOCATED:
        for threads in (1, 2):
            cell = model(config, threads)
            what = f"{config}, {_threads_of(threads)}"
            for base, target in (("no-allocator", _OF_BOUND), (BEST_PEER, _AHEAD_OF_PEERS.get(config, _OF_BEST_PEER)),
                                 (SYSTEM, _OF_GLIBC), ("hmalloc", None)):
                yield Row("allocators", what, cell, cell, target, base_allocator=base, by_median=True, against=base)


def _options() -> Iterator[Row]:
    for config in STANDARD:
        yield Row("options", f"{config}, heap as queue", model(config, queue="heap"), bare(config), base_allocator=SYSTEM)
        for blocks in ("dense", "lines"):
            yield Row("options", f"{config}, automatic blocks", model(config), model(config, blocks=blocks),
                      _PICKS_WELL, by_median=True, against=f"{blocks} blocks")
    yield Row("options", "airport, 2 threads, neighbours", model("airport", 2, sync="neighbours"), model("airport", 2),
              by_median=True, against="windows")


def _engines() -> Iterator[Row]:
    for config in COMPARED:
        for threads in (1, 2):
            yield Row("engines", f"{config}, ours, {_threads_of(threads)}", model(config, threads), bare(config),
                      base_allocator=SYSTEM)
        for name, threads in engines():
            yield Row("engines", f"{config}, {name}, {_threads_of(threads)}", engine(name, config, threads), bare(config),
                      allocator=SYSTEM, base_allocator=SYSTEM)


def _threads_of(threads: int) -> str:
    return f"{threads} thread{'s' if threads > 1 else ''}"


# ---- Memory. --------------------------------------------------------------------------------------------------------

MOST_BYTES = 100  # per pending event, queue and block together


@dataclass(frozen=True)
class Held:
    config: str
    bytes_per_pending: float
    peak_kb: float

    @property
    def verdict(self) -> str:
        return REACHED if self.bytes_per_pending <= MOST_BYTES else MISSED


def memory(results: Results) -> list[Held]:
    found = []
    for config in BARE_CONFIGURATIONS:
        cell = model(config)
        held = [results.median(cell, EXPLICIT_HMALLOC, metric) if cell.name in results.cells else None
                for metric in ("bytes_per_pending", "vm_hwm_kb")]
        if held[0] is not None and math.isfinite(held[0]):
            found.append(Held(config, held[0], held[1] or 0))
    return found


def failures(found: list[tuple[Row, Judged | None]]) -> list[str]:
    """What CI complains about: rows below their floor, and rows with a floor that have no number."""
    failed = []
    for row, judgement in found:
        if row.floor is not None and judgement is None:
            failed.append(f"{row.what}: not measured")
        elif judgement is not None and judgement.verdict == FELL:
            failed.append(f"{row.what}: {judgement.best:.2f} of {judgement.against}, the floor is {row.floor}")
    return failed
