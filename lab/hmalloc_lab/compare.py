"""hmalloc compare: one program in turn on two allocators, in pairs, so that both meet the same moods of the machine."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from .allocators import Allocator, active_pids
from .diagnosis import Diagnosis
from .errors import Failure
from .measure import Job, Output, Sample


@dataclass(frozen=True)
class Comparison:
    """All samples; the n-th of the one side and the n-th of the other were made next to each other."""

    baseline: Allocator
    candidate: Allocator
    baseline_samples: list[Sample]
    candidate_samples: list[Sample]
    proof: str
    warnings: list[str] = field(default_factory=list)
    same_behaviour: bool = True


@dataclass(frozen=True)
class Plan:
    job: Job
    baseline: Allocator
    candidate: Allocator
    rounds: int
    diagnosis: Diagnosis


Progress = Callable[[str], None]
Side = tuple[Allocator, list[Sample]]


def compare(plan: Plan, progress: Progress) -> Comparison:
    _require_reachable(plan)
    progress(f"warming up on {plan.baseline.name}")
    baseline, baseline_output = plan.job.rehearse(plan.baseline)
    _require_running(plan, baseline, baseline_output, "")
    progress(f"warming up on {plan.candidate.name}")
    candidate, candidate_output = plan.job.rehearse(plan.candidate)
    _require_same_exit(plan, baseline, candidate, candidate_output)
    proof = _proof(plan, candidate, candidate_output)
    warnings, same = _behaviour(plan, baseline, baseline_output, candidate_output)

    baselines, candidates = [], []
    for number, order in enumerate(_orders(plan.rounds, (plan.baseline, baselines),
                                                  (plan.candidate, candidates)), start=1):
        for allocator, samples in order:
            progress(f"round {number} of {plan.rounds}: {allocator.name}")
            samples.append(plan.job.run(allocator))

    exits = _exit_warnings(plan, baselines, candidates)
    return Comparison(plan.baseline, plan.candidate, baselines, candidates, proof, warnings + exits,
                      same and not exits)


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
    if without and "libhmalloc" in without.name:
        raise Failure(f"{name} is linked with hmalloc: there is no run without it to compare with", 1)


def _proof(plan: Plan, sample: Sample, output: Output) -> str:
    """How we know that the candidate was really in use; a Failure if we do not."""
    name, evidence = plan.candidate.name, []
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


def _require_running(plan: Plan, sample: Sample, output: Output, where: str) -> None:
    if sample.ended_early:
        raise Failure(f"{plan.job.command[0]} ended by itself after {sample.wall_s:.1f} s ({sample.exit}), before "
                      f"--for was over{where}{_quote(output)}", 1)


def _require_same_exit(plan: Plan, baseline: Sample, candidate: Sample, output: Output) -> None:
    if baseline.exit != candidate.exit:
        raise Failure(
            f"{plan.job.command[0]} behaves differently: {baseline.exit} on {plan.baseline.name}, {candidate.exit} on "
            f"{plan.candidate.name}{_quote(output)}", 1)
    _require_running(plan, candidate, output, f" on {plan.candidate.name}")


def _quote(output: Output) -> str:
    lines = [line for line in output.errors.splitlines() if line.strip() and not line.startswith("hmalloc: options")]
    return "".join(f"\n  {line}" for line in lines[-5:])


def _behaviour(plan: Plan, baseline: Sample, baseline_output: Output, output: Output) -> tuple[list[str], bool]:
    warnings = []
    if baseline.exit != "exit code 0":
        warnings.append(f"The program ends with {baseline.exit} on both.")
    if baseline_output.digest == output.digest or plan.job.stop_after_s:
        return warnings, True
    # Times, addresses, thread order: many programs never print the same twice.
    _, again = plan.job.rehearse(plan.baseline)
    if again.digest != baseline_output.digest:
        return [*warnings, "The program's output varies from run to run, so it was not compared."], True
    return [*warnings, f"The program's output on {plan.candidate.name} differs from that on {plan.baseline.name}."], False


def _exit_warnings(plan: Plan, baselines: list[Sample], candidates: list[Sample]) -> list[str]:
    warnings = []
    usual = {sample.exit for sample in baselines}
    for allocator, samples in ((plan.baseline, baselines), (plan.candidate, candidates)):
        odd = [sample.exit for sample in samples if sample.exit != baselines[0].exit]
        if odd and (len(usual) > 1 or allocator is plan.candidate):
            warnings.append(f"{len(odd)} of {len(samples)} runs on {allocator.name} ended with {odd[0]}.")
    return warnings
