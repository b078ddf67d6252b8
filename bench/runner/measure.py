"""Runs the cells: rounds, in each of which every allocator runs every cell once, the allocators of one cell one right
after the other in random order, so that whatever disturbs the machine disturbs them alike."""
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path


CPUS = len(os.sched_getaffinity(0))


class Runs:
    """Every result of every cell and allocator, and every failure."""

    def __init__(self):
        self.values = {}    # (cell name, allocator name) -> list of results, one a round
        self.repeated = 0
        self.failures = []  # {"cell", "allocator", "round", "reason"}

    def add(self, cell, allocator, result):
        self.values.setdefault((cell.name, allocator.name), []).append(result)

    def metric(self, cell, allocator_name, metric):
        results = self.values.get((cell.name, allocator_name), [])
        return [result[metric] for result in results if metric in result]

    def as_rows(self):
        """Compact: one row per cell and allocator, one list per number."""
        rows = []
        for (cell, allocator), results in self.values.items():
            names = [name for name, value in results[0].items() if isinstance(value, (int, float))]
            rows.append({"cell": cell, "allocator": allocator,
                         **{name: [result.get(name) for result in results] for name in names}})
        return rows


# Below this share of a CPU per worker something else had the machine: the run is repeated, whoever is measured.
ENOUGH_CPU = 0.95
MOST_TRIES = 4


def run_undisturbed(executable, cell, allocator, runs):
    """The first run that had the machine to itself, else the least disturbed one."""
    best, reason = run_once(executable, cell, allocator)
    for _ in range(MOST_TRIES - 1):
        if reason or best["threads"] > CPUS or best.get("cpu_share", 1) >= ENOUGH_CPU:
            break
        runs.repeated += 1
        again, failed = run_once(executable, cell, allocator)
        if failed:
            return None, failed
        best = max(best, again, key=lambda result: result["cpu_share"])
    return best, reason


def run_once(executable, cell, allocator):
    """The program's own result, or why there is none."""
    environment = {**os.environ, **allocator.environment}
    environment.pop("LD_PRELOAD", None)
    if allocator.preload:
        environment["LD_PRELOAD"] = str(allocator.preload)
    try:
        done = subprocess.run([executable, *cell.arguments], env=environment, capture_output=True, text=True,
                              timeout=cell.limit, check=False)
    except subprocess.TimeoutExpired:
        return None, f"no end within {cell.limit:.0f} s"
    except OSError as error:
        return None, str(error)
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or [""])[-1]
        how = f"killed by signal {-done.returncode}" if done.returncode < 0 else f"exit status {done.returncode}"
        return None, f"{how}: {said}" if said else how
    try:
        result = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        return None, "printed no result"
    return verified(result, allocator)


def verified(result, allocator):
    """Takes a result only if the allocator that served it is the one that was meant."""
    used = Path(result.pop("malloc_library", "")).resolve()
    expected = allocator.library.resolve() if allocator.library else None
    if expected is None and not used.name.startswith("libc."):
        return None, f"malloc came from {used}, not from libc"
    if expected is not None and used != expected:
        return None, f"malloc came from {used}, not from {expected}"
    return result, None


def measure(cells, allocators, executables, rounds, seed):
    """One warm-up round, whose results are thrown away, and then the rounds.  An interrupt keeps what is there."""
    runs = Runs()
    chance = random.Random(seed)
    broken = set()  # failed in the warm-up: reported once, not run again
    start = time.monotonic()
    try:
        for number in range(rounds + 1):
            order = [cell for cell in cells if number <= cell.most_rounds]
            chance.shuffle(order)
            for index, cell in enumerate(order):
                progress(number, rounds, index, len(order), cell, start)
                turn = [allocator for allocator in allocators
                        if allocator.serves(cell) and (cell.name, allocator.name) not in broken]
                chance.shuffle(turn)
                for allocator in turn:
                    suffix = f"-{allocator.api}" if allocator.api else ""
                    result, reason = run_undisturbed(executables / (cell.workload + suffix), cell, allocator, runs)
                    if reason:
                        runs.failures.append({"cell": cell.name, "allocator": allocator.name, "round": number,
                                              "reason": reason})
                        print(f"\n{cell.name}, {allocator.name}: {reason}", file=sys.stderr)
                        if number == 0:
                            broken.add((cell.name, allocator.name))
                    elif number > 0:
                        runs.add(cell, allocator, result)
    except KeyboardInterrupt:
        print("\ninterrupted: reporting what has been measured", file=sys.stderr)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return runs


def progress(number, rounds, index, count, cell, start):
    minutes = (time.monotonic() - start) / 60
    name = "warm-up" if number == 0 else f"round {number}/{rounds}"
    if sys.stderr.isatty():
        print(f"\r{name}, cell {index + 1}/{count}, {minutes:.1f} min: {cell.name:30}", end="", file=sys.stderr,
              flush=True)
    elif index == 0:
        print(f"{name}, {minutes:.1f} min", file=sys.stderr, flush=True)
