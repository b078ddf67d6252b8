#!/usr/bin/env python3
"""Runs real programs for long, without and with the library: same status, same results, and memory held at most."""

import argparse
import re
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "conformance"))
from harness import REPOSITORY, Tally, run_all  # noqa: E402
from session import Session, TroubleError  # noqa: E402
from table import PROGRAMS  # noqa: E402
from watch import Watch  # noqa: E402

SKIP = 77
# Peaks are seen by chance and vary; a leak over a long run leaves this behind.
MEMORY_FACTOR, MEMORY_SPARE = 2, 64 << 20
UNITS = {"s": 1, "m": 60, "h": 3600}


@dataclass
class Result:
    said: str = ""
    trouble: str = ""
    seconds: float = 0
    rounds: int = 0
    peak: int = 0
    programs: frozenset = frozenset()


def one(program, library, seconds):
    result, begin = Result(), time.monotonic()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, Watch(library) as watch:
        session = Session(library, folder, seconds)
        try:
            result.said = program.work(session)
        except TroubleError as trouble:
            result.trouble = str(trouble)
    result.seconds, result.rounds = time.monotonic() - begin, session.rounds
    result.peak, result.programs = watch.peak, frozenset(watch.programs)
    return result


def complaint(program, on_glibc, on_library):
    if on_library.trouble:
        return on_library.trouble
    if on_library.said != on_glibc.said:
        return f"says {on_library.said[:200]!r}, on glibc {on_glibc.said[:200]!r}"
    if on_library.peak > MEMORY_FACTOR * on_glibc.peak + MEMORY_SPARE:
        return f"held {on_library.peak >> 20} MB, on glibc {on_glibc.peak >> 20} MB"
    unused = [name for name in program.users if not any(seen.startswith(name) for seen in on_library.programs)]
    return f"never seen with the library: {' '.join(unused)}" if unused else ""


def row(program, on_glibc, on_library, errors):
    using = " ".join(sorted(on_library.programs)) or "none"
    return (f"| {program.name} | {on_glibc.seconds:.0f} s, {on_glibc.rounds} | {on_library.seconds:.0f} s, {on_library.rounds} | "
            f"{on_glibc.peak / 2**20:.0f} | {on_library.peak / 2**20:.0f} | {using} | {errors or 'none'} |")


def duration(text):
    match = re.fullmatch(r"(\d+)([smh])", text)
    if not match:
        raise argparse.ArgumentTypeError("a number and s, m or h")
    return int(match[1]) * UNITS[match[2]]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="programs by name; all without")
    parser.add_argument("--build", type=Path, default=REPOSITORY / "build/release")
    parser.add_argument("--library", default="libhmalloc.so", help="of the build: this, or libhmalloc-hardened.so")
    parser.add_argument("--for", dest="seconds", type=duration, default=60, metavar="TIME",
                        help="of each program on the library, as 90s, 5m or 2h")
    parser.add_argument("--glibc-for", dest="glibc_seconds", type=duration, metavar="TIME", help="without it; as long")
    parser.add_argument("--results", type=Path, help="append the table's rows to this file")
    options = parser.parse_args()
    if unknown := set(options.names) - {program.name for program in PROGRAMS}:
        parser.error(f"no program {min(unknown)}; there are {', '.join(program.name for program in PROGRAMS)}")
    # A shell starts what runs in the background with SIGINT ignored; the programs would inherit that, and Python's tests fail.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    library = (options.build / options.library).absolute()
    if not library.exists():
        parser.error(f"{library} does not exist")
    def perform(program):
        if lacks := program.missing():
            return program.name, "skipped", lacks
        on_glibc = one(program, None, options.glibc_seconds or options.seconds)
        if on_glibc.trouble:
            return program.name, "skipped", f"not even on glibc: {on_glibc.trouble}"
        on_library = one(program, library, options.seconds)
        errors = complaint(program, on_glibc, on_library)
        line = row(program, on_glibc, on_library, errors)
        if options.results:
            with open(options.results, "a") as file:
                file.write(line + "\n")
        return program.name, "failed" if errors else "passed", line

    tally = Tally()
    run_all(1, perform, [p for p in PROGRAMS if p.name in (options.names or [p.name])], tally)
    print(tally.closing_line())
    return 1 if tally.failed else 0 if tally.passed else SKIP


if __name__ == "__main__":
    sys.exit(main())
