"""What a window costs between ranks, if each writes to all others and if it writes only where it has something: measured on
this machine's CPUs, and modelled up to a thousand ranks.  Needs Open MPI, and the laboratory's Python.

  build/venv/bin/python bench/studies/ranks.py >docs/results/ranks.md
  build/venv/bin/python bench/studies/ranks.py --fit docs/results/ranks.md     the model alone, of the rows that are there
"""

import argparse
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
from scipy.optimize import nnls

ROOT = Path(__file__).resolve().parents[2]
RELEASE = ROOT / "build" / "release"
PROGRAM = RELEASE / "tests" / "pdes" / "pdes_mpi_ranks"
RANKS = (2, 4, 8, 16, 32, 64)
BEYOND = (256, 1000)
PARTNERS = {"none": 0, "2": 2, "all": 10**6}
BYTES = 240  # ten events of PHOLD
WAYS = ("all", "needed")
ROUNDS = 3
TRUSTED = 0.2  # the largest relative error in the row that is not fitted with which the model is used beyond it


def measure(ranks, partners, way):
    """Nanoseconds of a window: all ranks share the CPUs, so CPUs times this is what all of them spend."""
    windows = str(max(40, 8000 // ranks))
    env = os.environ | {"PDES_RANK_MESSAGES": way, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(["mpirun", "-q", "--oversubscribe", "--bind-to", "none", "--mca", "pml", "ob1", "--mca", "btl",
                           "self,vader", "-n", str(ranks), PROGRAM, "bench", windows, str(BYTES), str(partners)],
                          env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=True)
    return float(re.search(r"median (\d+)", done.stdout)[1])


def terms(way, ranks, partners, cpus):
    """What a rank does in a window, and how often; and what is added where ranks share CPUs: they wait in turn, a process
    is changed for whatever must be waited for, and each turn finds more to look at."""
    to, levels, turns = min(partners, ranks - 1), math.log2(ranks), max(0, ranks / cpus - 1)
    shared = 1 if turns else 0
    if way == "all":
        own = {"each other rank": ranks - 1, "each partner": to}
        waits = {"shared": shared, "each turn and other rank": turns * (ranks - 1), "each turn and partner": turns * to}
    else:
        own = {"each level": levels, "each partner": to}
        waits = {"each level": shared * levels, "each partner": shared * to, "each turn": turns,
                 "each turn and partner": turns * to}
    return own, waits


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


def fitted(way, seen, cpus):
    """Microseconds of each term, none below 0, by least squares of relative errors over all rows but the last."""
    points = [(terms(way, ranks, partners, cpus), statistics.median(seen[way, ranks, name]))
              for ranks in RANKS[:-1] for name, partners in PARTNERS.items()]
    matrix, measured = numpy.array([[*own.values(), *waits.values()] for (own, waits), _ in points]), [c for _, c in points]
    return nnls(matrix / numpy.array(measured)[:, None], numpy.ones(len(points)))[0]


def show_model(seen, cpus):
    """The last row says how far it can be trusted, and where it can, what ranks with CPUs of their own would spend."""
    check = RANKS[-1]
    heads = ["way", "a rank's own", "where ranks share CPUs, besides",
             *(f"{check} ranks, {name}: model, measured" for name in PARTNERS)]
    print("| " + " | ".join(heads) + " |\n|---|---|---|" + "--:|" * len(PARTNERS))
    beyond = []
    for way in WAYS:
        found = fitted(way, seen, cpus)
        own, waits = terms(way, check, 2, cpus)
        parts = [f"{cost:.2g} for {name}" if name != "shared" else f"{cost:.2g}"
                 for name, cost in zip([*own, *waits], found, strict=True)]
        cells, errors = [], []
        for name, partners in PARTNERS.items():
            of, measured = terms(way, check, partners, cpus), statistics.median(seen[way, check, name])
            model = found @ [*of[0].values(), *of[1].values()]
            cells.append(f"{model:.1f}, {measured:.1f}")
            errors.append(abs(model / measured - 1))
        print(f"| {way} | {' + '.join(parts[:len(own)])} | {' + '.join(parts[len(own):])} | " + " | ".join(cells) + " |")
        if max(errors) <= TRUSTED:
            beyond.append((way, found[:len(own)]))
    print("\nA turn is one that others have on the rank's CPU: ranks / CPUs - 1. A way is modelled further if it is within "
          f"{TRUSTED:.0%} of\nthe {check} ranks, which were not fitted: {', '.join(way for way, _ in beyond) or 'neither'}.")
    if beyond:
        columns = [(ranks, name) for ranks in (check, *BEYOND) for name in PARTNERS if name != "all"]
        print("\n| way, each rank with a CPU of its own | " + " | ".join(f"{ranks} ranks, {name}" for ranks, name in columns)
              + " |\n|---|" + "--:|" * len(columns))
        for way, found in beyond:
            cells = [found @ list(terms(way, ranks, PARTNERS[name], ranks)[0].values()) for ranks, name in columns]
            print(f"| {way} | " + " | ".join(f"{cell:.1f}" for cell in cells) + " |")


def read(page):
    """What show_measured() wrote: the median, the least and the most of the rounds."""
    rows, columns = re.findall(r"^\| (\d+) \| (.*) \|$", page, re.MULTILINE), list(itertools.product(PARTNERS, WAYS))
    return {(way, int(ranks), name): [float(number) for number in re.findall(r"[\d.]+", cell)]
            for ranks, cells in rows for (name, way), cell in zip(columns, cells.split(" | "), strict=True)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fit", type=Path, metavar="PAGE", help="measure nothing: fit the rows of this page")
    page = parser.parse_args().fit
    if page:
        text = page.read_text(encoding="utf-8")
        show_model(read(text), int(re.search(r"(\d+) CPUs, all ranks", text)[1]))
        return
    subprocess.run(["ninja", "-C", RELEASE, "pdes_mpi_ranks"], check=True, stdout=sys.stderr)
    seen, cpus = costs(), len(os.sched_getaffinity(0))
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always"], capture_output=True, text=True, check=False).stdout
    print(f"# Windows among many ranks\n\nMade by `build/venv/bin/python bench/studies/ranks.py` at {commit.strip()}: "
          f"{cpus} CPUs, all ranks on them.\n")
    print(f"CPU time of one rank for one window, in microseconds: it sends {BYTES} bytes to as many others as the column "
          f"says. Medians of {ROUNDS} rounds (least–most).\n")
    show_measured(seen)
    print(f"\n## A model\n\nFitted to the rows from {RANKS[0]} to {RANKS[-2]} ranks, no term below 0.\n")
    show_model(seen, cpus)


if __name__ == "__main__":
    main()
