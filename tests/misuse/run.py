#!/usr/bin/env python3
"""Every misuse of cases.py ends as it says there: `run.py`, `run.py df 'free_inside 200 8'`, `run.py overflow`
(a whole program), `run.py --allocator hoard`."""

import argparse
import signal
import sys
from pathlib import Path

from cases import CASES, LINKED, OURS, TAGS, Case

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "conformance"))
import harness  # noqa: E402

from baselines import BASELINES  # noqa: E402

# Cases that only a machine can judge, an emulated one too (tests/aarch64).
NOT_EMULATED = {"huge": "what lies behind a block may be the emulator's, which then is what crashes"}
OUTCOMES = {"quiet": harness.OK, "any": harness.OK_OR_ABORT}


def perform(test: tuple[Case, str, argparse.Namespace]) -> tuple[str, str, str]:
    """(label, verdict, note)"""
    case, allocator, options = test
    label = f"{case.label}, {allocator}"
    tags = allocator == TAGS
    allocator_built = "hardened" if tags else allocator
    library = harness.library_of(options.build, allocator_built)
    if not library.exists():
        return label, "skipped", f"{library.name} is not built"
    if harness.EMULATOR and case.label in NOT_EMULATED:
        return label, "skipped", NOT_EMULATED[case.label]
    linked = case.program in LINKED
    program = options.programs / (case.program + (f"-{allocator_built}" if linked and allocator != "default" else ""))
    environment = harness.environment(None if linked else library, **({"HMALLOC_TAGS": 1} if tags else {}))
    ending = harness.execute([program, *case.arguments], environment, timeout=300)
    line, answer = case.line(allocator), case.answer(allocator)
    faulted = "fault" in answer.split(" or ") and ending.status == -signal.SIGSEGV and not ending.stderr
    expected = OUTCOMES.get(answer, harness.ABORT)
    if faulted or (answer != "fault" and harness.meets(expected, ending, line or harness.message_of(allocator))):
        return label, "passed", ""
    return label, "failed", f"expected {answer}{f', {line.pattern.strip()}' if line else ''}; {ending.describe()}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="misuses by program, by name, or by name and numbers; all without")
    parser.add_argument("--allocator", action="append", choices=(*OURS, TAGS, *BASELINES), help="again for another one")
    options = harness.parse(parser, "misuse")
    if not (options.programs / "misuse").exists():
        parser.error(f"no programs in {options.programs}: build them, or name them with --programs")
    cases = [c for c in CASES if not options.names or {c.name, c.label, c.program} & {*options.names}]
    tests = [(c, name, options) for c in cases for name in options.allocator or OURS if c.answer(name)]
    tally = harness.Tally()
    harness.run_all(options.jobs, perform, tests, tally)
    print(tally.closing_line())
    return 0 if tally.passed and not tally.failed else 1


if __name__ == "__main__":
    sys.exit(main())
