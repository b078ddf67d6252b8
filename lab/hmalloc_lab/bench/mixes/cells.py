"""What is run: mixes by their numbers, each on one thread and on several, which hand some of their blocks over.  All of it
is drawn from the campaign's seed; what a number means to the program is drawn there (bench/workloads/mixes.h)."""

import random
from collections.abc import Iterator, Sequence

from ..catalogue import Cell

WORKLOAD = "mix"
HANDOVERS = (0, 10, 50)                           # percent
SEVERAL = (2, 2, 2, 2, 4, 4, 8, 16, 32, 64)       # threads
_LARGEST_NUMBER = 999_999
_LIMIT_S = 120.0


def drawn(seed: int, mixes: int, threads: Sequence[int] = (), steps: int | None = None) -> list[Cell]:
    """threads: each mix on so many; by default on one, and on a number that is drawn."""
    chance = random.Random(f"mixes {seed}")
    numbers = chance.sample(range(1, _LARGEST_NUMBER + 1), mixes)
    handovers, several = _dealt(chance, HANDOVERS), _dealt(chance, SEVERAL)
    repeat = {} if steps is None else {"steps": steps}
    found = []
    for number in numbers:
        for count in threads or (1, next(several)):
            point = {"mix": number, "threads": count} | ({"handover": next(handovers)} if count > 1 else {})
            found.append(Cell(WORKLOAD, "mixes", point, repeat, limit_s=_LIMIT_S))
    return found


def _dealt(chance: random.Random, values: Sequence[int]) -> Iterator[int]:
    """In random order, all of them before one comes again."""
    while True:
        yield from chance.sample(values, len(values))
