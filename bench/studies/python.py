"""What an allocator changes for programs of Python: all benchmarks of pyperformance that need nothing else, each a fixed
number of times in a process of its own (bench/programs/pyperf.py), in interleaved rounds; CPU time and peak memory.

  PYTHON-WITH-PYPERFORMANCE bench/studies/python.py [--rounds 5] [--only NAME,NAME] NAME=LIBRARY... >TABLE.md

"pymalloc" is Python as it is, its own allocator over glibc's; "glibc" is PYTHONMALLOC=malloc without a library.  Each
library is preloaded with PYTHONMALLOC=malloc, as python -m hmalloc does; the first also below pymalloc.
"""

import argparse
import importlib.util
import os
import random
import statistics
import subprocess
import sys
from pathlib import Path

RUNNER = Path(__file__).resolve().parents[1] / "programs/pyperf.py"
BENCHMARKS = Path(importlib.util.find_spec("pyperformance").origin).parent / "data-files/benchmarks"
BASE = "pymalloc"
LEAST_S = 0.5
LIMIT_S = 120


def run(benchmark, loops, settings):
    """CPU seconds and peak in KB; None where it cannot be run here."""
    environment = {**os.environ, **settings}
    process = subprocess.Popen([sys.executable, "-B", str(RUNNER), str(loops), benchmark], env=environment,
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return None if process.returncode else (used.ru_utime + used.ru_stime, used.ru_maxrss)


def loops_of(benchmark):
    for loops in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096, 16384):
        taken = run(benchmark, loops, {"PYTHONMALLOC": "pymalloc"})
        if taken is None or taken[0] >= LEAST_S:
            return loops if taken else None
    return loops


def ways(libraries):
    found = {BASE: {"PYTHONMALLOC": "pymalloc"}, "glibc": {"PYTHONMALLOC": "malloc"}}
    for i, (name, library) in enumerate(libraries):
        found[name] = {"PYTHONMALLOC": "malloc", "LD_PRELOAD": library}
        if i == 0:
            found[f"{name} below pymalloc"] = {"PYTHONMALLOC": "pymalloc", "LD_PRELOAD": library}
    return found


def table(title, of, names, samples):
    """Ratios of medians to Python as it is, with the spread of this way's rounds."""
    lines = [f"## {title}", "| benchmark | " + " | ".join(names) + " |\n|---|" + "--:|" * len(names)]
    ratios = {name: [] for name in names}
    for benchmark in sorted(samples):
        cells = []
        for name in names:
            values = [sample[of] for sample in samples[benchmark][name]]
            ratio = statistics.median(values) / statistics.median(s[of] for s in samples[benchmark][BASE])
            ratios[name].append(ratio)
            cells.append(f"{ratio:.2f} ±{50 * (max(values) - min(values)) / statistics.median(values):.0f}%")
        lines.append(f"| {benchmark} | " + " | ".join(cells) + " |")
    means = [f"**{statistics.geometric_mean(ratios[name]):.3f}** (to {max(ratios[name]):.2f})" for name in names]
    lines.insert(2, "| **all, geometric mean (worst)** | " + " | ".join(means) + " |")
    return "\n\n".join(lines[:1]) + "\n\n" + "\n".join(lines[1:]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("libraries", nargs="+", type=lambda text: tuple(text.split("=", 1)))
    asked = parser.parse_args()
    for given in asked.libraries:
        if len(given) != 2 or not Path(given[1]).is_file():
            parser.error(f"{'='.join(given)}: expected NAME=LIBRARY, a file")
    names = asked.only.split(",") if asked.only else sorted(p.name.removeprefix("bm_") for p in BENCHMARKS.glob("bm_*"))
    loops = {name: loops_of(name) for name in names}
    left_out = [name for name in names if loops[name] is None]
    everyone = ways(asked.libraries)
    samples = {name: {way: [] for way in everyone} for name in names if loops[name]}
    drawn = random.Random(1)
    for number in range(asked.rounds):
        for benchmark in samples:
            for way in drawn.sample(list(everyone), len(everyone)):
                taken = run(benchmark, loops[benchmark], everyone[way])
                if taken is None:
                    sys.exit(f"{benchmark} fails on {way}, and does not on {BASE}")
                samples[benchmark][way].append(taken)
        print(f"round {number + 1} of {asked.rounds}", file=sys.stderr)
    others = [way for way in everyone if way != BASE]
    print(f"# pyperformance, {len(samples)} benchmarks, {asked.rounds} rounds\n")
    print(f"Python {sys.version.split()[0]}. Ratios to Python as it is; less is better.\n")
    print(table("CPU time", 0, others, samples))
    print(table("Peak memory", 1, others, samples))
    print(f"Left out, for they need packages, files or a newer Python: {', '.join(left_out) or 'none'}.")


if __name__ == "__main__":
    main()
