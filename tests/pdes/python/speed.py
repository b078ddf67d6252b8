"""How fast models in Python are beside the same in C++: both in turn, on one thread.

    HM_PDES_LIBRARY=build/release/libhmalloc-pdes.so PYTHONPATH=pdes/python \\
        python3 tests/pdes/python/speed.py build/release/pdes [ROUNDS]
"""

import json
import statistics
import subprocess
import sys
from pathlib import Path

from models import airport, phold

CASES = (("phold", phold, {"end": 400}), ("airport", airport, {"end": 1000}))


def in_cxx(program, options):
    words = [f"--{name}={value}" for name, value in options.items()]
    return json.loads(subprocess.run([program, *words, "--json"], capture_output=True, text=True, check=True).stdout)


def main(programs, rounds=10):
    for name, model, options in CASES:
        model.run(**options)  # compiles
        python, cxx = [], []
        for _ in range(rounds):
            python.append(model.run(**options).events_per_s / 1e6)
            cxx.append(in_cxx(Path(programs, f"hmalloc-pdes-{name}"), options)["events_per_s"] / 1e6)
        ratios = [a / b for a, b in zip(python, cxx)]
        for what, values in ("Python", python), ("C++", cxx), ("Python / C++", ratios):
            print(f"{name:8} {what:13} best {max(values):.2f}, median {statistics.median(values):.2f}, least {min(values):.2f}")
        plain = model.run(plain=True, **options | {"end": 10}).events_per_s / 1e6
        print(f"{name:8} plain Python  {plain:.3f}")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
