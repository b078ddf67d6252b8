"""hmalloc compare: one program in turn on several allocators, in rounds, so that all meet the same moods of the machine."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from .allocators import Allocator, active_pids, is_hmalloc
from .diagnosis import Diagnosis
from .errors import Failure
from .job import Job, Output
from .run import Outcome, Sight


@dataclass
class Side:
    """An allocator and its measured runs; the n-th runs of all sides were made next to each other."""

    allocator: Allocator
    proof: str = ""  # how we know that it was really in use
    runs: list[Outcome] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.allocator.name


@dataclass(frozen=True)
class Comparison:
    reference: Side
    candidates: list[Side]
    warnings: list[str]
    same_behaviour: bool


@dataclass(frozen=True)
class Plan:
    job: Job
    reference: Allocator
    candidates: list[tuple[Allocator, Diagnosis]]
    rounds: int

    @property
    def program(self) -> str:
        return self.job.command[0]

    @property
    def steps(self) -> int:
        """Runs, with those to warm up."""
        return (1 + len(self.candidates)) * (1 + self.rounds)


Progress = Callable[[str], None]
Rehearsal = tuple[Outcome, Output]


def compare(plan: Plan, progress: Progress) -> Comparison:
    for allocator, diagnosis in plan.candidates:
        _require_reachable(plan, allocator, diagnosis)
    expected = _rehearse(plan, plan.reference, progress)
    reference, candidates, exits, differing = Side(plan.reference), [], [], []
    for allocator, diagnosis in plan.candidates:
        found = _rehearse(plan, allocator, progress, expected)
        exits += _exit_warnings(plan, expected, found)
        candidates.append(Side(allocator, _proof(allocator, diagnosis, found)))
        differing += _differing_output(plan, allocator, expected, found)
    sides = [reference, *candidates]
    for number, order in enumerate(_orders(plan.rounds, sides), start=1):
        for side in order:
            progress(f"round {number} of {plan.rounds}: {side.name}")
            side.runs.append(plan.job.run(side.allocator))
    varying = _varying_exits(sides)
    return Comparison(reference, candidates, [*dict.fromkeys(exits), *differing, *varying],
                      same_behaviour=not differing and not varying)


def _orders(rounds: int, sides: list[Side]) -> list[list[Side]]:
    """Who goes first: drawn for every second round, turned round for the next, so that nobody is ahead of another more
    often than behind."""
    orders = []
    while len(orders) < rounds:
        drawn = random.sample(sides, len(sides))
        orders += [drawn, drawn[::-1]]
    return orders[:rounds]


def _require_reachable(plan: Plan, allocator: Allocator, diagnosis: Diagnosis) -> None:
    if allocator.library and diagnosis.obstacle:
        raise Failure(f"{allocator.name} cannot serve {plan.program}: {diagnosis.obstacle}", 1)
    if diagnosis.served_without and is_hmalloc(diagnosis.served_without):
        raise Failure(f"{plan.program} is linked with hmalloc: there is no run without it to compare with", 1)


# ---- Runs to warm up. -----------------------------------------------------------------------------------------------


def _rehearse(plan: Plan, allocator: Allocator, progress: Progress, expected: Rehearsal | None = None) -> Rehearsal:
    """expected: of the reference, whose exit this one has to have."""
    progress(f"warming up on {allocator.name}")
    outcome, output = plan.job.rehearse(allocator)
    if expected and outcome.exit != expected[0].exit and plan.job.rehearse(plan.reference)[0].exit == expected[0].exit:
        raise Failure(f"{plan.program} behaves differently: {expected[0].exit} on {plan.reference.name}, "
                      f"{outcome.exit} on {allocator.name}{_quote(output)}", 1)
    if plan.job.ended_early(outcome):
        raise Failure(f"{plan.program} ended by itself on {allocator.name} after {outcome.cost['wall_s']:.1f} s "
                      f"({outcome.exit}), before it was told to{_quote(output)}", 1)
    return outcome, output


def _quote(output: Output) -> str:
    lines = [line for line in output.errors.splitlines() if line.strip() and not line.startswith("hmalloc: options")]
    return "".join(f"\n  {line}" for line in lines[-5:])


def _exit_warnings(plan: Plan, expected: Rehearsal, found: Rehearsal) -> list[str]:
    """A program that fails on one allocator only is not measured; these are about any other odd end."""
    if found[0].exit != expected[0].exit:
        return ["The program's exit varies from run to run on the same allocator."]
    on_all = "both" if len(plan.candidates) == 1 else "all"
    verb = "is" if found[0].exit.startswith("killed") else "ends with"
    return [] if found[0].exit == "exit code 0" else [f"The program {verb} {found[0].exit} on {on_all}."]


def _proof(allocator: Allocator, diagnosis: Diagnosis, rehearsal: Rehearsal) -> str:
    """How we know that the allocator was really in use; a Failure if we do not."""
    (outcome, output), evidence = rehearsal, []
    if allocator.library is None:
        return ""
    if allocator.is_hmalloc and active_pids(output.errors):
        evidence.append("it reported itself")
    if outcome.seen_in_maps:
        evidence.append("it was seen in the process")
    if diagnosis.served_by == allocator.library:
        evidence.append("the loader binds malloc to it")
    if not evidence and outcome.sight is Sight.ENDED:
        raise Failure(f"whether {allocator.name} was in use is not known, so there is nothing to compare: the program ended "
                      "before it could be looked at", 1)
    if not evidence:
        raise Failure(f"{allocator.name} was not in use, so there is nothing to compare: it was never seen in the "
                      "process", 1)
    return f"{allocator.name} was in use: {', '.join(evidence)}."


def _differing_output(plan: Plan, allocator: Allocator, expected: Rehearsal, found: Rehearsal) -> list[str]:
    if expected[1].digest == found[1].digest or plan.job.is_server:
        return []
    # Times, addresses, the order of threads: many programs never print the same twice.
    _, again = plan.job.rehearse(plan.reference)
    if again.digest != expected[1].digest:
        return []
    return [f"What the program prints on {allocator.name} differs from what it prints on {plan.reference.name}."]


# ---- Measured runs. -------------------------------------------------------------------------------------------------


def _varying_exits(sides: list[Side]) -> list[str]:
    usual, warnings = sides[0].runs[0].exit, []
    for side in sides:
        if odd := [run.exit for run in side.runs if run.exit != usual]:
            warnings.append(f"{len(odd)} of {len(side.runs)} runs on {side.name} ended otherwise: {odd[0]}.")
    return warnings
