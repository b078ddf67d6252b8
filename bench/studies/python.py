"""Benchmarks of pyperformance on the package for Python: CPU time and peak memory on hmalloc and on glibc, with Python's own
allocator for small blocks and without, in turns.

  PYTHON -B bench/studies/python.py [ROUNDS] >FILE          of a Python that has the packages hmalloc and pyperformance
"""

import os
import random
import statistics
import sys
from pathlib import Path

STAND_IN = Path(__file__).resolve().parents[1] / "programs/pyperf.py"
BENCHMARKS = ["chaos", "comprehensions", "deepcopy", "deltablue", "float", "gc_collect", "generators", "go", "json_dumps",
              "json_loads", "nqueens", "pidigits", "raytrace", "regex_compile", "richards", "xml_etree"]
SECONDS = 1.0  # of a run on the first way
WAYS = {
    "python": ([], {}),
    "PYTHONMALLOC=malloc": ([], {"PYTHONMALLOC": "malloc"}),
    "hmalloc": (["-m", "hmalloc"], {}),
    "hmalloc, pymalloc": (["-m", "hmalloc"], {"PYTHONMALLOC": "pymalloc"}),
    "hmalloc --hardened": (["-m", "hmalloc", "--hardened"], {}),
}


def run(way, benchmark, loops):
    """Seconds of CPU time, and KB at the peak."""
    options, variables = WAYS[way]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONMALLOC"} | variables
    words = [sys.executable, "-B", *options, str(STAND_IN), str(loops), benchmark]
    silence = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_WRONLY, 0) for number in (1, 2)]
    process = os.posix_spawn(sys.executable, words, environment, file_actions=silence)
    _, status, usage = os.wait4(process, 0)
    if status:
        raise RuntimeError(f"{benchmark} failed with {way}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def loops_for(benchmark):
    loops, empty = 1, run("python", benchmark, 0)[0]
    while (took := run("python", benchmark, loops)[0] - empty) < SECONDS / 4:
        loops *= 4
    return max(1, round(loops * SECONDS / took))


def row(name, values, digits, unit=1.0):
    """Each way's median, and its ratio to the first."""
    medians = [statistics.median(values[way]) for way in WAYS]
    print(f"| {name} | " + " | ".join(f"{m / unit:.{digits}f} ({m / medians[0]:.2f})" for m in medians) + " |", flush=True)
    return [m / medians[0] for m in medians]


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    order, head = random.Random(1), f" | {' | '.join(WAYS)} |\n|---|" + "--:|" * len(WAYS)
    seen = {}
    for benchmark in BENCHMARKS:
        try:
            loops = loops_for(benchmark)
        except RuntimeError as error:
            print(error, file=sys.stderr)
            continue
        seen[benchmark] = {way: [] for way in WAYS}
        for _ in range(rounds):
            for way in order.sample(list(WAYS), len(WAYS)):
                seen[benchmark][way].append(run(way, benchmark, loops))
    for title, which, digits, unit in (("CPU time, s", 0, 2, 1), ("peak, MB", 1, 1, 1024)):
        print(f"| {title}{head}")
        ratios = [row(benchmark, {way: [one[which] for one in found[way]] for way in WAYS}, digits, unit)
                  for benchmark, found in seen.items()]
        print("| geometric mean | " + " | ".join(f"{statistics.geometric_mean(each):.2f}" for each in zip(*ratios)) + " |\n")


main()
