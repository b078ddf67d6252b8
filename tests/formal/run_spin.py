"""Runs a Spin model to its end and prints the states explored and the verdict.

    run_spin.py MODEL.pml --work DIR [--expect pass|fail] [--progress] [-D NAME[=VALUE]]...

A model that must fail has a fault built in by -D; if Spin finds nothing wrong with it, the test has failed.
Exit status: 0 as expected, 1 not so, 77 when there is no Spin.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

SKIPPED = 77
MOST_MEMORY_MB, MOST_STEPS = 6000, 1_000_000
# The search was cut short: what it did not see, nobody has seen.
INCOMPLETE = ("max search depth too small", "out of memory", "memory limit", "Search not completed", "VECTORSZ")


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path, required=True, help="an own folder, for what Spin writes")
    parser.add_argument("--expect", choices=("pass", "fail"), default="pass")
    parser.add_argument("--progress", action="store_true", help="look for endless runs in which no operation ends")
    parser.add_argument("-D", action="append", default=[], dest="defines")
    parser.add_argument("--cc", default=os.environ.get("CC", "cc"))
    return parser.parse_args()


def step(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    text = done.stdout + done.stderr
    if done.returncode != 0 or "Error" in text:
        sys.exit(f"{' '.join(map(str, command))}:\n{text}")


def build(options):
    shutil.rmtree(options.work, ignore_errors=True)
    options.work.mkdir(parents=True)
    step(["spin", "-a", *(f"-D{name}" for name in options.defines), options.model.resolve()], options.work)
    kind = "-DNP" if options.progress else "-DSAFETY"
    step([*options.cc.split(), "-O1", "-w", kind, "-DCOLLAPSE", f"-DMEMLIM={MOST_MEMORY_MB}", "-o", "pan", "pan.c"],
         options.work)


def explore(options):
    """(states, what is wrong or None)"""
    command = ["./pan", f"-m{MOST_STEPS}", *(["-l"] if options.progress else [])]
    report = subprocess.run(command, cwd=options.work, capture_output=True, text=True).stdout
    states = re.search(r"(\d+) states, stored", report)
    errors = re.search(r"errors: (\d+)", report)
    cut = [word for word in INCOMPLETE if word in report]
    if not states or not errors or (cut and errors[1] == "0"):
        sys.exit(f"the search did not come to its end:\n{report}")
    if errors[1] == "0":
        return int(states[1]), None
    wrong = re.search(r"pan:\d+: (.*?) \(at depth \d+\)", report)
    return int(states[1]), wrong[1] if wrong else "an error without a name"


def last_steps(options, count=40):
    command = ["./pan", "-r", f"{options.model.name}.trail"]
    replay = subprocess.run(command, cwd=options.work, capture_output=True, text=True).stdout
    steps = [line for line in replay.splitlines() if "proc" in line]
    return "\n".join(steps[-count:])


def main():
    options = parse()
    if not shutil.which("spin"):
        print("skipped: no spin")
        return SKIPPED
    build(options)
    states, wrong = explore(options)
    name = " ".join([options.model.stem, *options.defines, *(["progress"] if options.progress else [])])
    print(f"{name}: {states} states, {wrong or 'nothing wrong'}; expected to {options.expect}")
    if (wrong is None) == (options.expect == "pass"):
        return 0
    print(last_steps(options) if wrong else "the fault was not found")
    return 1


if __name__ == "__main__":
    sys.exit(main())
