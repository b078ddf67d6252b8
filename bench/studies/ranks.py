"""What a window costs between ranks, if each writes to all others and if it writes only where it has something: measured on
this machine's CPUs, and modelled up to a thousand ranks.  Needs Open MPI.

  python3 bench/studies/ranks.py >docs/results/ranks.md
"""

import itertools
import math
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

import numpy

ROOT = Path(__file__).resolve().parents[2]
RELEASE = ROOT / "build" / "release"
PROGRAM = RELEASE / "tests" / "pdes" / "pdes_mpi_ranks"
RANKS = (2, 4, 8, 16, 32)
BEYOND = (128, 1000)
PARTNERS = {"none": 0, "2": 2, "4": 4, "all": 10**6}
BYTES = 240  # ten events of PHOLD
WAYS = ("all", "needed")
ROUNDS = 3


def measure(ranks, partners, way):
    """Nanoseconds of a window: all ranks share the CPUs, so CPUs times this is what all of them spend."""
    windows = str(max(50, 8000 // ranks))
    env = os.environ | {"PDES_RANK_MESSAGES": way, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(["mpirun", "-q", "--oversubscribe", "--bind-to", "none", "--mca", "pml", "ob1", "--mca", "btl",
                           "self,vader", "-n", str(ranks), PROGRAM, "bench", windows, str(BYTES), str(partners)],
                          env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=True)
    return float(re.search(r"median (\d+)", done.stdout)[1])


def terms(way, ranks, partners):
    """What a rank does in a window grows with: a message to each other one, or one to each partner and a tree's levels."""
    if way == "all":
        return [1, ranks - 1]
    return [1, min(partners, ranks - 1), math.log2(ranks)]


def main():
    subprocess.run(["ninja", "-C", RELEASE, "pdes_mpi_ranks"], check=True, stdout=sys.stderr)
    cpus = len(os.sched_getaffinity(0))
    seen = {}
    for _ in range(ROUNDS):
        for ranks, (name, partners), way in itertools.product(RANKS, PARTNERS.items(), WAYS):
            seen.setdefault((way, ranks, name), []).append(measure(ranks, partners, way) * min(cpus, ranks) / ranks)
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always"], capture_output=True, text=True, check=False).stdout
    print(f"# Windows among many ranks\n\nMade by `python3 bench/studies/ranks.py` at {commit.strip()}: {cpus} CPUs, all ranks on them.\n")
    print(f"CPU time of one rank for one window, in microseconds: it sends {BYTES} bytes to as many others as the column says. "
          f"Medians of {ROUNDS} rounds (least–most).\n")
    columns = list(itertools.product(PARTNERS, WAYS))
    print("| ranks | " + " | ".join(f"{name}: {way}" for name, way in columns) + " |\n|--:|" + "--:|" * len(columns))
    for ranks in RANKS:
        cells = [sorted(each / 1000 for each in seen[way, ranks, name]) for name, way in columns]
        print(f"| {ranks} | " + " | ".join(f"{statistics.median(c):.2f} ({c[0]:.2f}–{c[-1]:.2f})" for c in cells) + " |")
    print("\nThe model: `all` costs something for each other rank, `needed` something for each partner and for each level of the "
          "tree. Least squares of the ratios, over the rows above; then what it says of more ranks.\n")
    print("| way | microseconds | off by, at most | " + " | ".join(f"{ranks}, {name}" for ranks in BEYOND for name in ("2", "4")) +
          " |\n|---|---|--:|" + "--:|" * (2 * len(BEYOND)))
    for way in WAYS:
        points = [(ranks, partners, statistics.median(seen[way, ranks, name]) / 1000)
                  for ranks in RANKS for name, partners in PARTNERS.items() if ranks > 2]
        matrix = numpy.array([terms(way, ranks, partners) for ranks, partners, _ in points])
        costs = numpy.array([cost for *_, cost in points])
        found = numpy.linalg.lstsq(matrix / costs[:, None], numpy.ones(len(points)), rcond=None)[0]
        off = max(abs(matrix @ found / costs - 1))
        names = ["", " for each other rank"] if way == "all" else ["", " for each partner", " for each level"]
        text = " + ".join(f"{value:.2f}{name}" for value, name in zip(found, names))
        far = [found @ terms(way, ranks, partners) for ranks in BEYOND for partners in (2, 4)]
        print(f"| {way} | {text} | {100 * off:.0f} % | " + " | ".join(f"{value:.0f}" for value in far) + " |")


if __name__ == "__main__":
    main()
