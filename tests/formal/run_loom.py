"""Builds the models in loom/ and runs each scenario: right it must pass, with any one order relaxed it must fail.

    run_loom.py --target DIR

Exit status: 0 as expected, 1 not so, 77 when there is no cargo, or no way to get the crates.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys

SKIPPED = 77
HERE = pathlib.Path(__file__).resolve().parent / "loom"


def cargo(target, *arguments):
    environment = {**os.environ, "CARGO_TARGET_DIR": str(target)}
    return subprocess.run(["cargo", *arguments], cwd=HERE, env=environment, capture_output=True, text=True)


def finding(program, *arguments):
    """What the run complains of, or None; and how many executions it explored."""
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    if done.returncode == 0:
        return None, done.stdout.strip()
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    at = next((i for i, line in enumerate(lines) if "panicked at" in line), None)
    if at is None or "exceeded maximum number of branches" in done.stderr:
        sys.exit(f"{' '.join(arguments)}: no verdict\n{done.stderr}")
    return lines[at + 1].split(".")[0], ""


def check(program, scenario, *sites):
    wrong, explored = finding(program, scenario)
    print(f"{scenario}: {wrong or explored}", flush=True)
    good = wrong is None
    for site in sites:
        wrong, explored = finding(program, scenario, site)
        print(f"  {site}: {wrong or f'NOT FOUND in {explored}'}", flush=True)
        good = good and wrong is not None
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--target", type=pathlib.Path, required=True, help="a folder for what cargo builds")
    target = parser.parse_args().target.resolve()
    if not shutil.which("cargo"):
        print("skipped: no cargo")
        return SKIPPED
    fetched = cargo(target, "fetch", "--locked")
    if fetched.returncode != 0 and "--locked" not in fetched.stderr:  # that would be a Cargo.lock that does not fit
        print(f"skipped: the crates cannot be had\n{fetched.stderr}")
        return SKIPPED
    built = cargo(target, "build", "--release", "--locked", "--offline")
    if built.returncode != 0:
        sys.exit(built.stderr)
    program = target / "release" / "loom-models"
    listed = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout
    verdicts = [check(program, *line.split("\t")) for line in listed.splitlines()]
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
