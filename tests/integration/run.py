#!/usr/bin/env python3
"""Runs real programs on glibc's malloc and on hmalloc or a baseline: same output, same status, and it was in use."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "conformance"))
import redis  # noqa: E402
from harness import REPOSITORY, Tally, environment, execute  # noqa: E402
from library import Library, without_own_lines  # noqa: E402
from table import BASELINES_RUN, PROGRAMS, SCRIPTS, missing, packages, unchanged  # noqa: E402

from baselines import BASELINES  # noqa: E402


def once(program, library=None):
    """(how it ended, the complaint that the library was not in use or nothing)"""
    env = dict(program.env)
    script = (SCRIPTS / program.script).read_text() if program.script else None
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as proof:
        if library is None:
            return execute(program.argv, environment(**env), 150, cwd=folder, text_input=script), ""
        if not program.proves_use:
            return execute(program.argv, environment(library.path, **env), 150, cwd=folder, text_input=script), ""
        ending = execute(program.argv, library.told_to_show(proof, **env), 150, cwd=folder, text_input=script)
        return ending, library.not_in_use(proof, ending.stderr)


def compare(program, library):
    """The complaint, or nothing."""
    expected, _ = once(program)
    if expected.status != 0 or expected.timed_out:
        return f"on glibc: {expected.describe()}"
    for _ in range(program.repeat):
        got, not_in_use = once(program, library)
        errors = without_own_lines(got.stderr)
        if got.status != 0 or got.timed_out:
            return got.describe()
        if program.comparable(got.stdout) != program.comparable(expected.stdout):
            return "the output differs from glibc's"
        if not program.comparable(expected.stdout).strip():
            return "there is no output to compare"
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


def tests():
    for program in PROGRAMS:
        yield program.name, (lambda p=program: missing(p)), (lambda lib, p=program: compare(p, lib))
    yield "redis-server", redis.missing, compare_redis


def library_of(options):
    if options.allocator:
        return Library((options.build / f"baselines/lib{options.allocator}.so").absolute(), options.allocator)
    path = (options.lib or options.build / "libhmalloc.so").absolute()
    return Library(path, "hmalloc" if path.name.startswith("libhmalloc") else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="programs by name; all without")
    parser.add_argument("--build", type=Path, default=REPOSITORY / "build/release")
    parser.add_argument("--allocator", choices=BASELINES, help="this baseline instead of hmalloc, on some programs")
    parser.add_argument("--lib", type=Path, help="another library to preload")
    parser.add_argument("--packages", action="store_true", help="print the Debian packages that all of them need")
    options = parser.parse_args()
    if options.packages:
        print(" ".join(packages()))
        return 0
    library = library_of(options)
    if not library.path.exists():
        parser.error(f"{library.path} does not exist")
    names = options.names or (BASELINES_RUN if options.allocator else [t[0] for t in tests()])
    chosen = [t for t in tests() if t[0] in names]
    if not chosen:
        parser.error("no such program")
    tally = Tally()
    for name, why_not, work in chosen:
        begin = time.monotonic()
        skipped = why_not()
        complaint = "" if skipped else work(library)
        verdict = "skipped" if skipped else "failed" if complaint else "passed"
        tally.count(verdict)
        print(f"{verdict:8}{name:18}{time.monotonic() - begin:6.1f} s  {skipped or complaint}".rstrip(), flush=True)
    print(tally.closing_line())
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
