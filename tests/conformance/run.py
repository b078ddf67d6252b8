#!/usr/bin/env python3
"""Runs the conformance matrix: `run.py`, `run.py fork_mt 60`, `run.py --full`, `run.py --allocator glibc`,
`run.py --allocator hoard` (a baseline, as far as baselines.py holds it to the cases; so is `hardened`)."""

import argparse
import contextlib
import sys
from dataclasses import dataclass
from pathlib import Path

import harness
from matrix import CASES, Case
from needs import lacking
from special import SPECIAL, NotHere

from baselines import BASELINES, exceptions


@dataclass(frozen=True)
class Run:
    """One sub-case against one library in one mode."""

    case: Case
    allocator: str  # "default", "checked", "hardened" or "faults": ours
    mode: str
    options: argparse.Namespace

    @property
    def programs(self):
        return self.options.programs

    @property
    def library(self):
        return self.options.lib or (None if self.allocator == "glibc" else
                                    harness.library_of(self.options.build, self.allocator))

    @property
    def cpu(self):
        return 0 if self.mode == "pinned" else None

    @property
    def label(self):
        sub = "" if self.case.sub == self.case.name else f"/{self.case.sub}"
        return f"{self.case.number:3} {self.case.name}{sub}, {self.allocator}" + (f", {self.mode}" if self.mode != "plain" else "")

    def once(self, listed):
        if self.case.program in SPECIAL:
            return SPECIAL[self.case.program](self)
        linked = f"-{self.allocator}" if self.case.program == "local" and self.allocator in ("checked", "hardened") else ""
        # Who is listed as never doing it is not waited for.
        env = harness.environment(self.library, CONFORMANCE_SECONDS=self.options.seconds,
                                  **{"CONFORMANCE_PATIENCE": 0.5} if listed else {})
        return harness.execute([self.programs / f"{self.case.program}{linked}", self.case.sub], env, cpu=self.cpu)


def perform(run):
    return run.label, *judge(run, exceptions(run.allocator).get(run.case.sub))


def judge(run, listed):
    """(verdict, note)"""
    if listed and not listed.runs:
        return "skipped", listed.why
    if why := lacking(run):
        return "skipped", why
    if run.library and not run.library.exists():
        return "skipped", f"{run.library.name} is not built"
    expected = listed and listed.ends or run.case.expected
    for _ in range(1 if run.case.program == "!nth" else run.options.repeat):
        try:
            ending = run.once(listed)
        except NotHere as lack:
            return "skipped", str(lack)
        if not harness.meets(expected, ending, harness.message_of(run.allocator)):
            note = f"expected {expected}: {ending.describe()}"
            return ("excepted", f"{listed.why} [{note}]") if listed and not listed.ends else ("failed", note)
    if listed is None or listed.ends:
        return "passed", ""
    # The list of exceptions stays true: what is listed and passes is to be taken off it.
    return "failed" if listed.sure else "passed", f"listed, and passes: {listed.why}"


def runs_of(options, mode):
    for case in CASES:
        if options.cases and not {case.name, case.sub, str(case.number)} & {*options.cases}:
            continue
        if mode != "plain" and case.program == "!nth":
            continue
        kinds = ("default", "checked") if options.full and case.kinds == ("default",) else case.kinds
        for allocator in [options.allocator] if options.allocator else ["default"] if options.lib else kinds:
            yield Run(case, allocator, mode, options)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", help="names or numbers from the matrix; all without")
    parser.add_argument("--allocator", choices=("hardened", "glibc", *BASELINES), help="instead of hmalloc")
    parser.add_argument("--lib", type=Path, help="any other library to preload")
    parser.add_argument("--full", action="store_true", help="three times, also pinned to one CPU and under load")
    parser.add_argument("--repeat", type=int, help="times each sub-case runs (1, with --full 3)")
    parser.add_argument("--seconds", type=float, default=1.0, help="length of the timed cases")
    options = harness.parse(parser, "conformance")
    options.repeat = options.repeat or (3 if options.full else 1)
    options.lib = options.lib and options.lib.resolve(strict=True)
    if not (options.programs / "api").exists():
        parser.error(f"no case programs in {options.programs}: build them, or name them with --programs")
    if options.allocator not in (None, "glibc") and not harness.library_of(options.build, options.allocator).exists():
        parser.error(f"{options.allocator} is not built")
    assert exceptions(options.allocator).keys() <= {case.sub for case in CASES}, "an exception to no case"
    tally = harness.Tally()
    for mode in ("plain", "pinned", "load") if options.full else ("plain",):
        with harness.loaded_machine() if mode == "load" else contextlib.nullcontext():
            harness.run_all(options.jobs, perform, runs_of(options, mode), tally)
    print(tally.closing_line())
    return 0 if tally.passed and not tally.failed else 1


if __name__ == "__main__":
    sys.exit(main())
