"""What a window costs between ranks, if each writes to all others and if it writes only where it has something: measured on
this machine's CPUs, and modelled up to a thousand ranks.  Needs Open MPI, and the laboratory's Python.

  build/venv/bin/python bench/studies/ranks.py >docs/results/ranks.md
"""

import collections
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
RANKS = (2, 4, 8, 16, 32, 64)
BEYOND = (256, 1000)
PARTNERS = {"none": 0, "2": 2, "all": 10**6}
BYTES = 240  # ten events of PHOLD
WAYS = ("all", "needed")
ROUNDS = 3


def measure(ranks, partners, way):
    """Nanoseconds of a window: all ranks share the CPUs, so CPUs times this is what all of them spend."""
    windows = str(max(40, 8000 // ranks))
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


def costs():
    """(way, ranks, partners by name) -> microseconds of a rank for a window, sorted."""
    cpus, seen = len(os.sched_getaffinity(0)), collections.defaultdict(list)
    for _ in range(ROUNDS):
        for ranks, (name, partners), way in itertools.product(RANKS, PARTNERS.items(), WAYS):
            seen[way, ranks, name].append(measure(ranks, partners, way) * min(cpus, ranks) / ranks / 1000)
    return {of: sorted(rounds) for of, rounds in seen.items()}


def show_measured(seen):
    columns = list(itertools.product(PARTNERS, WAYS))
    print("| ranks | " + " | ".join(f"{name}: {way}" for name, way in columns) + " |\n|--:|" + "--:|" * len(columns))
    for ranks in RANKS:
        cells = [seen[way, ranks, name] for name, way in columns]
        print(f"| {ranks} | " + " | ".join(f"{statistics.median(c):.2f} ({c[0]:.2f}–{c[-1]:.2f})" for c in cells) + " |")


def show_model(seen):
    """From all rows but the last; that one shows how far it can be trusted."""
    check, few = RANKS[-1], [name for name in PARTNERS if name != "all"]
    heads = [f"{check} ranks, {name}: model, measured" for name in PARTNERS]
    heads += [f"{ranks} ranks, {name}" for ranks in BEYOND for name in few]
    print("| way | microseconds | " + " | ".join(heads) + " |\n|---|---|" + "--:|" * len(heads))
    for way in WAYS:
        points = [(terms(way, ranks, partners), statistics.median(seen[way, ranks, name]))
                  for ranks in RANKS[1:-1] for name, partners in PARTNERS.items()]
        matrix, measured = numpy.array([term for term, _ in points]), numpy.array([cost for _, cost in points])
        found = numpy.linalg.lstsq(matrix / measured[:, None], numpy.ones(len(points)), rcond=None)[0]
        names = ["", " for each other rank"] if way == "all" else ["", " for each partner", " for each level"]
        cells = [f"{found @ terms(way, check, partners):.1f}, {statistics.median(seen[way, check, name]):.1f}"
                 for name, partners in PARTNERS.items()]
        cells += [f"{found @ terms(way, ranks, PARTNERS[name]):.0f}" for ranks in BEYOND for name in few]
        text = " + ".join(f"{value:.2f}{name}" for value, name in zip(found, names, strict=True))
        print(f"| {way} | {text} | " + " | ".join(cells) + " |")


def main():
    subprocess.run(["ninja", "-C", RELEASE, "pdes_mpi_ranks"], check=True, stdout=sys.stderr)
    seen = costs()
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always"], capture_output=True, text=True, check=False).stdout
    print(f"# Windows among many ranks\n\nMade by `build/venv/bin/python bench/studies/ranks.py` at {commit.strip()}: "
          f"{len(os.sched_getaffinity(0))} CPUs, all ranks on them.\n")
    print(f"CPU time of one rank for one window, in microseconds: it sends {BYTES} bytes to as many others as the column "
          f"says. Medians of {ROUNDS} rounds (least–most).\n")
    show_measured(seen)
    print("\nThe model: `all` costs something for each other rank, `needed` something for each partner and for each level "
          f"of the tree. Fitted to the rows from {RANKS[1]} to {RANKS[-2]} ranks, by least squares of relative errors.\n")
    show_model(seen)


if __name__ == "__main__":
    main()
