#!/usr/bin/env python3
"""Every misuse of cases.py ends as it says there: `run.py`, `run.py df 'free_inside 200 8'`, `run.py overflow
overflow_local` (whole programs), `run.py --allocator hoard`."""

import argparse
import shlex
import sys
from pathlib import Path

from cases import CASES, LINKED, OURS

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "conformance"))
from harness import (  # noqa: E402
    ABORT,
    EMULATOR,
    OK,
    OK_OR_ABORT,
    REPOSITORY,
    Tally,
    environment,
    execute,
    in_parallel,
    meets,
    message_of,
)

from baselines import BASELINES  # noqa: E402

OUTCOMES = {"quiet": OK, "any": OK_OR_ABORT}


def perform(test: tuple) -> tuple[str, str, str, str]:
    """(label, allocator, verdict, note)"""
    case, allocator, options = test
    library = options.build / {"default": "libhmalloc.so", "checked": "libhmalloc-checked.so"}.get(
        allocator, f"baselines/lib{allocator}.so")
    if not library.exists():
        return case.label, allocator, "skipped", f"{library.name} is not built"
    linked = case.program in LINKED
    program = options.programs / (case.program + ("-checked" if linked and allocator == "checked" else ""))
    ending = execute([program, *case.arguments], environment(None if linked else library),
                     timeout=200 if case.program.startswith("overflow") else 60)
    line, answer = case.line(allocator), case.answer(allocator)
    if meets(OUTCOMES.get(answer, ABORT), ending, line or message_of("hmalloc" if allocator in OURS else allocator)):
        return case.label, allocator, "passed", ""
    return case.label, allocator, "failed", f"expected {line.pattern.strip() if line else answer}; {ending.describe()}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="misuses by program, by name, or by name and numbers; all without")
    parser.add_argument("--build", type=Path, default=REPOSITORY / "build/release")
    parser.add_argument("--programs", type=Path, help="folder of the built programs")
    parser.add_argument("--allocator", action="append", choices=(*OURS, *BASELINES), help="again for another one")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--emulator", default="", help="the command that runs programs of another architecture")
    options = parser.parse_args()
    EMULATOR[:] = shlex.split(options.emulator)
    options.build = options.build.resolve()
    options.programs = (options.programs or options.build / "tests/misuse").resolve()
    cases = [c for c in CASES if not options.names or {c.name, c.label, c.program} & {*options.names}]
    if not cases:
        parser.error("no such misuse")
    if not (options.programs / "misuse").exists():
        parser.error(f"no programs in {options.programs}: build them, or name them with --programs")
    tests = [(c, name, options) for c in cases for name in options.allocator or OURS if c.answer(name)]
    tally = Tally()
    for label, allocator, verdict, note in in_parallel(options.jobs, perform, tests):
        tally.count(verdict)
        print(f"{verdict:8}{label:36}{allocator:16}{note}", flush=True)
    print(tally.closing_line())
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
