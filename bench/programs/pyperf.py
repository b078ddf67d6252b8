"""Stands in for pyperf: runs each benchmark of pyperformance a fixed number of times in this process, without a clock.

  python3 pyperf.py LOOPS BENCHMARK...

Found by the benchmarks because it lies beside the script that is run.
"""

import argparse
import importlib.util
import runpy
import sys
import time
from pathlib import Path

perf_counter = time.perf_counter
_loops = 0


class Runner:
    """As far as the benchmarks use it."""

    def __init__(self, **_):
        self.metadata = {}
        self.argparser = argparse.ArgumentParser()
        self.args = None

    def parse_args(self):
        self.args = self.argparser.parse_args()
        return self.args

    def bench_func(self, name, function, *arguments, **_):
        for _ in range(_loops):
            result = function(*arguments)
        print(name, result if isinstance(result, (int, str, list, tuple)) else "done")

    def bench_time_func(self, name, function, *arguments, **_):
        function(_loops, *arguments)
        print(name, "done")


def main():
    global _loops
    sys.modules["pyperf"] = sys.modules["__main__"]
    _loops = int(sys.argv[1])
    folder = Path(importlib.util.find_spec("pyperformance").origin).parent / "data-files" / "benchmarks"
    for benchmark in list(sys.argv[2:]):
        path = folder / f"bm_{benchmark}" / "run_benchmark.py"
        sys.argv[:] = [str(path)]
        sys.path.insert(0, str(path.parent))
        runpy.run_path(str(path), run_name="__main__")


if __name__ == "__main__":
    main()
