#!/usr/bin/env python3
"""Compares allocators on the workloads of bench/workloads, interleaved.

  bench/run.py                                          every workload, every allocator, 10 rounds
  bench/run.py --quick --workloads pairs:once,ring      WORKLOAD or WORKLOAD:CASE-PREFIX
  bench/run.py --allocators hmalloc,snmalloc --rounds 5 --out build/bench/today.json
  bench/run.py --lib mine=path/to/lib.so

In each round every allocator runs every cell once, in random order, each in a process of its own; one warm-up round
comes first.  Writes FILE.json (every raw number, the environment) and FILE.md (the tables).  A run counts only if the
program found its malloc in the library that was meant; a crash or a hang of one allocator is a row of the report.
"""
import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from runner import allocators as who  # noqa: E402
from runner.cells import all_cells, chosen_cells  # noqa: E402
from runner.measure import measure  # noqa: E402
from runner.report import report  # noqa: E402

ROOT = who.ROOT


def first_line(path, prefix=""):
    try:
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            if line.startswith(prefix):
                return line.split(":", 1)[-1].strip() if prefix else line
    except OSError:
        pass
    return "?"


def describe_environment(args, allocators, rounds):
    return {
        "date": time.strftime("%Y-%m-%d %H:%M %z"),
        "command": "bench/run.py " + " ".join(sys.argv[1:]),
        "rounds": rounds,
        "seed": args.seed,
        "CPU": first_line("/proc/cpuinfo", "model name"),
        "CPUs": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "huge pages": first_line("/sys/kernel/mm/transparent_hugepage/enabled"),
        "glibc": next((a.version for a in allocators if a.name == "glibc"), who.glibc().version),
        "load at the start": first_line("/proc/loadavg"),
    }


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--allocators", default="", metavar="A,B", help="default: all that exist")
    parser.add_argument("--workloads", default="", metavar="W,W:CASE", help="default: all")
    parser.add_argument("--rounds", type=int, help="default: 10; with --quick 3")
    parser.add_argument("--quick", action="store_true", help="fewer cells, shorter: a look, not a result")
    parser.add_argument("--no-pin", action="store_true", help="ring and exchange: let the workers share a CPU")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench" / "results.json", metavar="FILE")
    parser.add_argument("--lib", action="append", default=[], metavar="NAME=PATH", help="one more library to preload")
    parser.add_argument("--hmalloc", type=Path, default=ROOT / "build" / "release" / "libhmalloc.so", metavar="PATH")
    parser.add_argument("--executables", type=Path, default=ROOT / "build" / "release" / "bench", metavar="FOLDER")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--list", action="store_true", help="print the allocators and cells, and stop")
    args = parser.parse_args()
    args.out = args.out.with_suffix(".json")
    return parser, args


def main():
    parser, args = parse_arguments()
    try:
        everybody = [who.glibc(), *who.peers(), *who.hmallocs(args.hmalloc, args.executables),
                     *map(who.named, args.lib)]
        allocators = who.chosen(everybody, args.allocators)
        cells = chosen_cells(all_cells(args.quick, not args.no_pin), args.workloads)
    except ValueError as error:
        parser.error(str(error))
    if args.list:
        print("allocators:", *[f"{a.name} ({a.version})" for a in allocators], sep="\n  ")
        print("cells:", *[cell.name for cell in cells], sep="\n  ")
        return 0
    if not (args.executables / "pairs").exists():
        parser.error(f"no workloads in {args.executables}: build the release preset first")
    rounds = args.rounds or (3 if args.quick else 10)
    environment = describe_environment(args, allocators, rounds)
    runs = measure(cells, allocators, args.executables, rounds, args.seed)
    environment["load at the end"] = first_line("/proc/loadavg")
    environment["runs repeated because others had the CPUs"] = runs.repeated

    args.out.parent.mkdir(parents=True, exist_ok=True)
    known = [{"name": a.name, "version": a.version, "sha256": a.sha256(), "environment": a.environment}
             for a in allocators]
    rows = ",\n  ".join(json.dumps(row) for row in runs.as_rows())
    head = json.dumps({"environment": environment, "allocators": known, "failures": runs.failures}, indent=1)
    args.out.write_text(head[:-2] + f',\n "runs": [\n  {rows}\n ]\n}}\n')
    text = report(runs, cells, allocators, environment)
    args.out.with_suffix(".md").write_text(text)
    print(text)
    print(f"written: {args.out} and {args.out.with_suffix('.md').name}", file=sys.stderr)
    return 1 if runs.failures else 0


if __name__ == "__main__":
    sys.exit(main())
