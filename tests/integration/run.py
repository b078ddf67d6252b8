#!/usr/bin/env python3
"""Runs real programs on glibc's malloc and on hmalloc or a baseline: same output, same status, and it was in use."""

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "conformance"))
import redis  # noqa: E402
from harness import REPOSITORY, Tally, environment, execute, run_all  # noqa: E402
from library import Library, without_own_lines  # noqa: E402
from table import BASELINES_RUN, PROGRAMS, SCRIPTS, missing, packages, unchanged  # noqa: E402

from baselines import BASELINES  # noqa: E402


def once(program, library=None):
    """(how it ended, the complaint that the library was not in use or nothing)"""
    script = (SCRIPTS / program.script).read_text() if program.script else None
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as proof:
        shows = library and program.proves_use
        env = (library.told_to_show(proof, **dict(program.env)) if shows else
               library.serves(**dict(program.env)) if library else environment(**dict(program.env)))
        ending = execute(program.argv, env, 150, cwd=folder, text_input=script)
        return ending, library.not_in_use(proof, ending.stderr) if shows else ""


def compare(program, library):
    """The complaint, or nothing."""
    expected, _ = once(program)
    wanted = program.comparable(expected.stdout)
    if expected.status != 0 or expected.timed_out or not wanted.strip():
        return f"on glibc: {expected.describe()}, or nothing to compare"
    for _ in range(program.repeat):
        got, not_in_use = once(program, library)
        errors = without_own_lines(got.stderr)
        if got.status != 0 or got.timed_out:
            return got.describe()
        if program.comparable(got.stdout) != wanted:
            return "the output differs from glibc's"
        if program.comparable is unchanged and program.proves_use and errors != expected.stderr.rstrip("\n"):
            return f"says on descriptor 2: {errors[:200]}"
        if not_in_use:
            return not_in_use
    return ""


def compare_redis(library):
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        expected, _ = redis.run(None, Path(first))
        got, complaint = redis.run(library, Path(second))
    return f"expected {expected}, got {got}" if got != expected else complaint


# Name -> why it cannot run here, and how it is judged.
TESTS = {program.name: (lambda p=program: missing(p), lambda library, p=program: compare(p, library)) for program in PROGRAMS}
TESTS["redis-server"] = redis.missing, compare_redis


def library_of(options):
    if options.allocator:
        return Library((options.build / f"baselines/lib{options.allocator}.so").absolute(), options.allocator)
    path = (options.lib or options.build / "libhmalloc.so").absolute()
    return Library(path, "hmalloc" if path.name.startswith("libhmalloc") else "", options.guard)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="programs by name; all without")
    parser.add_argument("--build", type=Path, default=REPOSITORY / "build/release")
    parser.add_argument("--allocator", choices=BASELINES, help="this baseline instead of hmalloc, on some programs")
    parser.add_argument("--lib", type=Path, help="another library to preload")
    parser.add_argument("--guard", action="store_true", help="with guarded blocks")
    parser.add_argument("--packages", action="store_true", help="print the Debian packages that all of them need")
    options = parser.parse_args()
    if options.packages:
        print(" ".join(packages()))
        return 0
    library = library_of(options)
    if not library.path.exists():
        parser.error(f"{library.path} does not exist")
    if unknown := {*options.names} - TESTS.keys():
        parser.error(f"no such program: {' '.join(unknown)}")

    def perform(name):
        why_not, judge = TESTS[name]
        if lacks := why_not():
            return name, "skipped", lacks
        complaint = judge(library)
        return name, "failed" if complaint else "passed", complaint

    tally = Tally()
    run_all(1, perform, options.names or (BASELINES_RUN if options.allocator else TESTS), tally)
    print(tally.closing_line())
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
