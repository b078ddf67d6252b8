"""hmalloc compare: one program in turn on two allocators, in pairs, so that both meet the same moods of the machine."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from .allocators import Allocator, active_pids, is_hmalloc
from .diagnosis import Diagnosis
from .errors import Failure
from .job import Job, Output
from .run import Outcome


@dataclass(frozen=True)
class Comparison:
    """All samples; the n-th of the one side and the n-th of the other were made next to each other."""

    reference: Allocator
    candidate: Allocator
    reference_samples: list[Outcome]
    candidate_samples: list[Outcome]
    proof: str
    warnings: list[str] = field(default_factory=list)
    same_behaviour: bool = True


@dataclass(frozen=True)
class Plan:
    job: Job
    reference: Allocator
    candidate: Allocator
    rounds: int
    diagnosis: Diagnosis


Progress = Callable[[str], None]
Rehearsal = tuple[Outcome, Output]
Side = tuple[Allocator, list[Outcome]]


def compare(plan: Plan, progress: Progress) -> Comparison:
    _require_reachable(plan)
    progress(f"warming up on {plan.reference.name}")
    reference = plan.job.rehearse(plan.reference)
    _require_running(plan, plan.reference, reference)
    progress(f"warming up on {plan.candidate.name}")
    candidate = plan.job.rehearse(plan.candidate)
    warnings = _require_same_exit(plan, reference, candidate)
    _require_running(plan, plan.candidate, candidate)
    proof = _proof(plan, candidate)
    differing = _differing_output(plan, reference, candidate)

    references, candidates = [], []
    for number, order in enumerate(_orders(plan.rounds, (plan.reference, references),
                                                  (plan.candidate, candidates)), start=1):
        for allocator, samples in order:
            progress(f"round {number} of {plan.rounds}: {allocator.name}")
            samples.append(plan.job.run(allocator))

    exits = _exit_warnings(plan, references, candidates)
    return Comparison(plan.reference, plan.candidate, references, candidates, proof, warnings + differing + exits,
                      same_behaviour=not differing and not exits)


def _orders(rounds: int, one: Side, other: Side) -> list[list[Side]]:
    """Who goes first: drawn for every second round, turned round for the next, so that nobody goes first more often."""
    orders = []
    while len(orders) < rounds:
        first = [one, other]
        random.shuffle(first)
        orders += [first, first[::-1]]
    return orders[:rounds]


def _require_reachable(plan: Plan) -> None:
    name, without = plan.job.command[0], plan.diagnosis.served_without
    if plan.candidate.library and plan.diagnosis.obstacle:
        raise Failure(f"{plan.candidate.name} cannot serve {name}: {plan.diagnosis.obstacle}", 1)
    if without and is_hmalloc(without):
        raise Failure(f"{name} is linked with hmalloc: there is no run without it to compare with", 1)


def _proof(plan: Plan, rehearsal: Rehearsal) -> str:
    """How we know that the candidate was really in use; a Failure if we do not."""
    (sample, output), name, evidence = rehearsal, plan.candidate.name, []
    if plan.candidate.library is None:
        return ""
    if plan.candidate.is_hmalloc and active_pids(output.errors):
        evidence.append("it reported itself")
    if sample.seen_in_maps:
        evidence.append("it was seen in the process")
    if plan.diagnosis.served_by == plan.candidate.library:
        evidence.append("the loader binds malloc to it")
    if not evidence:
        raise Failure(f"{name} was not in use, so there is nothing to compare: it was never seen in the process", 1)
    return f"{name} was in use: {', '.join(evidence)}."


def _require_running(plan: Plan, allocator: Allocator, rehearsal: Rehearsal) -> None:
    sample, output = rehearsal
    if plan.job.ended_early(sample):
        raise Failure(f"{plan.job.command[0]} ended by itself on {allocator.name} after {sample.cost['wall_s']:.1f} s "
                      f"({sample.exit}), before it was told to{_quote(output)}", 1)


def _require_same_exit(plan: Plan, reference: Rehearsal, candidate: Rehearsal) -> list[str]:
    """A program that fails on one allocator only is not worth measuring; warnings about any other odd end."""
    exits = reference[0].exit, candidate[0].exit
    if exits[0] == exits[1]:
        return [] if exits[0] == "exit code 0" else [f"The program ends with {exits[0]} on both."]
    again, _ = plan.job.rehearse(plan.reference)
    if again.exit != exits[0]:
        return ["The program's exit varies from run to run on the same allocator."]
    raise Failure(f"{plan.job.command[0]} behaves differently: {exits[0]} on {plan.reference.name}, {exits[1]} on "
                  f"{plan.candidate.name}{_quote(candidate[1])}", 1)


def _quote(output: Output) -> str:
    lines = [line for line in output.errors.splitlines() if line.strip() and not line.startswith("hmalloc: options")]
    return "".join(f"\n  {line}" for line in lines[-5:])


def _differing_output(plan: Plan, reference: Rehearsal, candidate: Rehearsal) -> list[str]:
    expected, found = reference[1].digest, candidate[1].digest
    if expected == found or plan.job.is_server:
        return []
    # Times, addresses, the order of threads: many programs never print the same twice.
    _, again = plan.job.rehearse(plan.reference)
    if again.digest != expected:
        return []
    return [f"What the program prints on {plan.candidate.name} differs from what it prints on {plan.reference.name}."]


def _exit_warnings(plan: Plan, references: list[Outcome], candidates: list[Outcome]) -> list[str]:
    warnings = []
    usual = {sample.exit for sample in references}
    for allocator, samples in ((plan.reference, references), (plan.candidate, candidates)):
        odd = [sample.exit for sample in samples if sample.exit != references[0].exit]
        if odd and (len(usual) > 1 or allocator is plan.candidate):
            warnings.append(f"{len(odd)} of {len(samples)} runs on {allocator.name} ended with {odd[0]}.")
    return warnings
