#!/usr/bin/env python3
"""Runs the conformance matrix: `run.py`, `run.py fork_mt 60`, `run.py --full`, `run.py --allocator glibc`,
`run.py --allocator hoard` (a baseline, as far as baselines.py holds it to the cases)."""

import argparse
import contextlib
import shlex
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import harness
from emulation import not_emulated
from harness import Tally
from matrix import CASES, NOT_OURS
from special import SPECIAL, Skip

from baselines import BASELINES, Listed, exceptions

LIBRARIES = {"default": "libhmalloc.so", "checked": "libhmalloc-checked.so", "hardened": "libhmalloc-hardened.so",
             "faults": "libhmalloc-faults.so"}
WHY_MISSING = {"hardened": "the hardened build comes later"}


@dataclass(frozen=True)
class Run:
    """One sub-case against one library in one mode."""

    case: object
    kind: str
    library: Path | None
    programs: Path
    mode: str
    repeat: int
    full: bool
    seconds: float
    differs: str | None = None
    excepted: Listed | None = None
    name: str = "hmalloc"  # how the library calls itself

    @property
    def cpu(self):
        return 0 if self.mode == "pinned" else None

    def environment(self):
        return harness.environment(self.library, CONFORMANCE_SECONDS=self.seconds, **self.patience)

    @property
    def patience(self):
        """Who is listed as never doing it is not waited for."""
        return {"CONFORMANCE_PATIENCE": 0.5} if self.excepted else {}

    @property
    def expected(self):
        return self.case.expect.get(self.kind, harness.OK)

    def once(self):
        if self.case.program in SPECIAL:
            return SPECIAL[self.case.program](self, self.case.sub)
        return harness.execute([self.programs / self.case.program, self.case.sub], self.environment(), 60, self.cpu)

    def good(self, ending):
        if harness.meets(self.expected, ending, harness.message_of(self.name)):
            return True
        # A write outside a block may be stopped at the access itself: better than an abort later.
        return harness.ended_ok(ending) and ending.stdout == "caught at the access\n"


def perform(run):
    """(run, verdict, note, seconds)"""
    if run.differs or (run.excepted and not run.excepted.runs):
        return run, "skipped", run.differs or run.excepted.why, 0.0
    if harness.EMULATOR and not_emulated(run.case):
        return run, "skipped", not_emulated(run.case), 0.0
    if run.library is not None and not run.library.exists():
        return run, "skipped", WHY_MISSING.get(run.kind, f"{run.library.name} is not built"), 0.0
    begin = time.monotonic()
    try:
        for _ in range(run.repeat):
            ending = run.once()
            if not run.good(ending):
                note = f"expected {run.expected}: {ending.describe()}"
                return run, *judge_failure(run, note), time.monotonic() - begin
    except Skip as reason:
        return run, "skipped", str(reason), 0.0
    return run, *judge_success(run), time.monotonic() - begin


def judge_failure(run, note):
    return ("excepted", f"{run.excepted.why} [{note}]") if run.excepted else ("failed", note)


def judge_success(run):
    """The list of exceptions stays true: what is listed and passes is to be taken off it."""
    if run.excepted is None:
        return "passed", ""
    return "failed" if run.excepted.sure else "passed", f"listed, and passes: {run.excepted.why}"


def wanted(case, patterns):
    return not patterns or any(p in (case.name, case.sub, str(case.number)) for p in patterns)


def runs_of(options):
    listed = exceptions(options.allocator) if options.allocator in BASELINES else {}
    assert set(listed) <= {case.sub for case in CASES}, "an exception to no case"
    for case in CASES:
        if not wanted(case, options.cases):
            continue
        common = {"case": case, "programs": options.programs, "mode": "plain", "repeat": options.repeat,
                  "full": options.full, "seconds": options.seconds}
        if options.allocator in BASELINES:
            yield Run(kind="default", library=options.baseline, name=options.allocator,
                      excepted=listed.get(case.sub), **common)
        elif options.allocator:
            yield Run(kind="default", library=options.peer, differs=case.differs.get(options.allocator), **common)
        elif options.lib:
            yield Run(kind=options.kind, library=options.lib, **common)
        else:
            kinds = ("default", "checked") if options.full and case.kinds == ("default",) else case.kinds
            for kind in kinds:
                yield Run(kind=kind, library=options.build / LIBRARIES[kind], **common)


def phases(options):
    """The same runs as often as asked: plain, and with --full pinned to one CPU and on a busy machine too."""
    runs = [replace(r, repeat=1) if r.case.program == "!nth" else r for r in runs_of(options)]
    yield runs, contextlib.nullcontext()
    if options.full:
        alike = [r for r in runs if r.case.program != "!nth"]
        yield [replace(r, mode="pinned", full=False) for r in alike], contextlib.nullcontext()
        yield [replace(r, mode="load", full=False) for r in alike], harness.loaded_machine()


def report(run, verdict, note, seconds):
    where = f"{run.kind}{'' if run.mode == 'plain' else ', ' + run.mode}"
    label = f"{run.case.number:3} {run.case.name}" + ("" if run.case.sub == run.case.name else f"/{run.case.sub}")
    print(f"{verdict:8}{label:44}{where:20}{seconds:7.1f} s" + (f"  {note}" if note else ""), flush=True)


def table(results):
    """One line a row of the matrix."""
    rows = {}
    for run, verdict, _, seconds in results:
        row = rows.setdefault((run.case.number, run.case.name), [Tally(), 0.0])
        row[0].count(verdict)
        row[1] += seconds
    print(f"\n{'case':36}{'passed':>8}{'failed':>8}{'skipped':>8}{'seconds':>9}")
    for (number, name), (tally, seconds) in sorted(rows.items()):
        excepted = f"  {tally.excepted} failed as listed" if tally.excepted else ""
        print(f"{number:3} {name:32}{tally.passed:8}{tally.failed:8}{tally.skipped:8}{seconds:9.1f}{excepted}")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", help="names or numbers from the matrix; all without")
    parser.add_argument("--build", type=Path, default=harness.REPOSITORY / "build/release", help="build folder")
    parser.add_argument("--programs", type=Path, help="folder of the case programs")
    parser.add_argument("--allocator", choices=(*NOT_OURS, *BASELINES),
                        help="test this one of the system, or this baseline, instead of hmalloc")
    parser.add_argument("--lib", type=Path, help="any other library to preload")
    parser.add_argument("--kind", choices=sorted(LIBRARIES), default="default", help="what --lib is held to")
    parser.add_argument("--full", action="store_true", help="three times, also pinned and under load")
    parser.add_argument("--repeat", type=int, help="times each sub-case runs (1, with --full 3)")
    parser.add_argument("--seconds", type=float, default=1.0, help="length of the timed cases")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--emulator", default="", help="the command that runs programs of another architecture")
    parser.add_argument("--list", action="store_true", help="print the cases and stop")
    options = parser.parse_args()
    harness.EMULATOR[:] = shlex.split(options.emulator)
    options.build = options.build.resolve()
    options.programs = (options.programs or options.build / "tests/conformance").resolve()
    options.repeat = options.repeat or (3 if options.full else 1)
    options.lib = options.lib and options.lib.resolve()
    options.peer = None
    if options.allocator in BASELINES:
        options.baseline = options.build / f"baselines/lib{options.allocator}.so"
        if not options.baseline.exists():
            parser.error(f"{options.baseline} is not built")
    elif options.allocator and options.allocator != "glibc":
        options.peer = harness.find_peer(options.allocator)
        if options.peer is None:
            parser.error(f"{options.allocator} is not installed")
    if options.lib and not options.lib.exists():
        parser.error(f"{options.lib} does not exist")
    unknown = [p for p in options.cases if not any(wanted(c, [p]) for c in CASES)]
    if unknown:
        parser.error(f"no such case: {' '.join(unknown)}")
    if not options.list and not (options.programs / "api_basic").exists():
        parser.error(f"no case programs in {options.programs}: build them, or name them with --programs")
    return options


def main():
    options = arguments()
    if options.list:
        for case in CASES:
            print(f"{case.number:3} {case.name:24} {case.sub}")
        return 0
    tally = Tally()
    results = []
    for runs, surroundings in phases(options):
        with surroundings:
            for result in harness.in_parallel(options.jobs, perform, runs):
                report(*result)
                tally.count(result[1])
                results.append(result)
    table(results)
    print(tally.closing_line())
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
