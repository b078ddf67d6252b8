#!/usr/bin/env python3
"""Runs real programs on glibc's malloc and on hmalloc: same output, same status, and hmalloc really in use."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "conformance"))
import redis  # noqa: E402
from harness import REPOSITORY, Tally, environment, execute  # noqa: E402
from table import PROGRAMS, SCRIPTS, missing, packages, unchanged  # noqa: E402


def without_own_lines(text):
    """The program's own words on descriptor 2, and hmalloc's."""
    lines = text.splitlines()
    own = [line for line in lines if line.startswith("hmalloc")]
    return "\n".join(line for line in lines if not line.startswith("hmalloc")), own


def once(program, library):
    env = environment(library, **dict(program.env))
    if library and program.proves_use:
        env["HMALLOC_VERBOSE"] = "1"
    script = (SCRIPTS / program.script).read_text() if program.script else None
    with tempfile.TemporaryDirectory() as folder:
        return execute(program.argv, env, 150, cwd=folder, text_input=script)


def compare(program, library):
    """The complaint, or nothing."""
    expected = once(program, None)
    if expected.status != 0 or expected.timed_out:
        return f"on glibc: {expected.describe()}"
    for _ in range(program.repeat):
        got = once(program, library)
        errors, own = without_own_lines(got.stderr)
        if got.status != 0 or got.timed_out:
            return got.describe()
        if program.comparable(got.stdout) != program.comparable(expected.stdout):
            return "the output differs from glibc's"
        if not program.comparable(expected.stdout).strip():
            return "there is no output to compare"
        if program.comparable is unchanged and program.proves_use and errors != expected.stderr.rstrip("\n"):
            return f"says on descriptor 2: {errors[:200]}"
        if program.proves_use and "hmalloc" in library.name and not any("active" in line for line in own):
            return "hmalloc was not in use"
    return ""


def compare_redis(library):
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        expected, _, _ = redis.run(None, Path(first))
        got, said, mapped = redis.run(library, Path(second))
    if got != expected:
        return f"expected {expected}, got {got}"
    if not mapped:
        return f"{library.name} is not in the server's address space"
    if "hmalloc" in library.name and not any("active" in line for line in said):
        return "the server does not say that hmalloc is active"
    return ""


def tests():
    for program in PROGRAMS:
        yield program.name, (lambda p=program: missing(p)), (lambda lib, p=program: compare(p, lib))
    yield "redis-server", redis.missing, compare_redis


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="programs by name; all without")
    parser.add_argument("--build", type=Path, default=REPOSITORY / "build/release")
    parser.add_argument("--lib", type=Path, help="another library to preload")
    parser.add_argument("--packages", action="store_true", help="print the Debian packages that all of them need")
    options = parser.parse_args()
    if options.packages:
        print(" ".join(packages()))
        return 0
    library = (options.lib or options.build / "libhmalloc.so").absolute()
    if not library.exists():
        parser.error(f"{library} does not exist")
    chosen = [t for t in tests() if not options.names or t[0] in options.names]
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
