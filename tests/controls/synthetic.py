"""A campaign of two builds of one allocator, made up with the noise that campaigns have: a mood of the machine that both
meet, a scatter of 1.5 % of their own (0.4 % of memory), and one run in thirty that somebody disturbed."""

import numpy as np
from hmalloc_lab.bench.catalogue import Cell
from hmalloc_lab.bench.results import Results
from hmalloc_lab.bench.store import AllocatorRow, Campaign, Run

OLD, NEW = "old", "new"
TIME_SCATTER = 0.015


def ratios(draw, rounds: int, change: float = 1.0, scatter: float = TIME_SCATTER):
    """Of new to old, round by round: the mood falls out."""
    def times():
        return draw.lognormal(0, scatter, rounds) * np.where(draw.random(rounds) < 0.03, 1.5, 1)

    return change * times() / times()


def campaign(seed: int, cells: int, rounds: int, slower: dict[int, float] | None = None,
             fatter: dict[int, float] | None = None) -> Results:
    """slower, fatter: number of a cell -> factor on the time, the memory of the new build in it."""
    draw = np.random.default_rng(seed)
    plan = [Cell(f"made-up-{number}", "local", {}) for number in range(cells)]
    runs = []
    for number, cell in enumerate(plan):
        for each in range(1, rounds + 1):
            mood = draw.lognormal(0, 0.05)
            for name in (OLD, NEW):
                planted = name == NEW
                ns = 20 * mood * draw.lognormal(0, TIME_SCATTER) * (1.5 if draw.random() < 0.03 else 1)
                kb = 30_000 * draw.lognormal(0, 0.004)
                runs.append(Run(each, cell.name, name, "", metrics={
                    "ns_per_op": ns * ((slower or {}).get(number, 1) if planted else 1),
                    "vm_hwm_kb": int(kb * ((fatter or {}).get(number, 1) if planted else 1))}))
    allocators = [AllocatorRow(name, "user", "1") for name in (OLD, NEW)]
    return Results(Campaign(1, "", "", "quick", "made up", seed, rounds, {}, plan, allocators, [], runs))
