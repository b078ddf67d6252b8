"""The result as Markdown: rows with their verdicts, allocators against the engine's own free list, and the rounds."""

from collections.abc import Iterator, Sequence

from ..results import Results
from ..statistics import ratio
from ..store import Run
from ..tables import by_cause
from . import targets
from .cells import ALLOCATED, PARTS, model
from .targets import UNMEASURED, Judged, Row

_TITLES = {
    "bare": ("Against the bare loop", "How many times as fast as `bare`: best rounds, allocation included."),
    "threads": ("Threads and ranks", "Judged by the best rounds."),
    "allocators": ("The allocator's share",
                   "Explicit hmalloc against others, in the same program: `no-allocator` is a free list inside the engine, "
                   "which no allocator can beat by much. Judged by the median of the rounds."),
    "options": ("Options", "What another choice costs or gains."),
    "engines": ("The engines of others", "PHOLD on each, as bench/engines has it, against the same bare loop, and ours "
                "once more: best rounds. Random numbers and ties differ, and with them the number of events, by chance."),
}
_HEAD = ("row", "M events/s, best", "median", "against", "ratio, best", "median [95 %]", "least-most", "target",
         "floor", "verdict")


def markdown(results: Results) -> str:
    campaign = results.campaign
    found = targets.judged(results)
    lines = [f"# The simulation engine, {campaign.started[:10]}", "", f"`{campaign.command}`", "",
             *_machine(results), ""]
    for part in PARTS:
        of_part = [(row, judgement) for row, judgement in found if row.part == part]
        if of_part:
            title, explanation = _TITLES[part]
            lines += [f"## {title}", "", explanation, "", *_table(_HEAD, map(_cells, of_part)), ""]
            if part == "allocators":
                lines += [*_matrix(results), ""]
    lines += [*_memory(results), *_failures(results), *_rounds(results)]
    return "\n".join(lines).rstrip() + "\n"


def _machine(results: Results) -> Iterator[str]:
    known = results.campaign.environment
    yield ", ".join(f"{name}: {known[name]}" for name in ("CPU", "CPUs", "memory", "kernel", "compiler", "hmalloc")
                    if name in known)


def _cells(pair: tuple[Row, Judged | None]) -> list[str]:
    row, judgement = pair
    target = "" if row.target is None else f"{row.target:.2f}"
    floor = "" if row.floor is None else f"{row.floor:.2f}"
    if judgement is None:
        return [row.what, "", "", row.against, "", "", "", target, floor, UNMEASURED]
    return [row.what, _rate(judgement.rate), _rate(judgement.median_rate), judgement.against, f"{judgement.best:.2f}",
            f"{judgement.median:.2f} [{judgement.low:.2f}, {judgement.high:.2f}]",
            f"{judgement.least:.2f}-{judgement.most:.2f}", target, floor, judgement.verdict]


def _rate(value: float) -> str:
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _matrix(results: Results) -> Iterator[str]:
    """Everybody's time per event over the free list's, in the rounds' median."""
    cells = [model(config, threads) for config in ALLOCATED for threads in (1, 2)]
    cells = [cell for cell in cells if cell.name in results.cells]
    names = [name for name in results.allocators
             if name != "no-allocator" and any(results.runs(cell.name, name) for cell in cells)]
    if "no-allocator" not in results.allocators or not names:
        return
    yield "Time per event, with the free list's as 1 (smaller is better):"
    yield ""
    table = []
    for cell in cells:
        against = [ratio(results, cell, name, "no-allocator") for name in names]
        table.append([f"{cell.point['config']}, {cell.threads} thread{'s' if cell.threads > 1 else ''}",
                      *(f"{each.median:.3f}" if each else "" for each in against)])
    yield from _table(["configuration", *names], table)


def _memory(results: Results) -> Iterator[str]:
    if held := targets.memory(results):
        yield "## Memory"
        yield ""
        yield f"Of pending events, queue and block together; at most {targets.MOST_BYTES} bytes each."
        yield ""
        yield from _table(("configuration", "bytes per pending event", "peak of the process, MB", "verdict"),
                          ([each.config, f"{each.bytes_per_pending:.0f}", f"{each.peak_kb / 1024:.1f}", each.verdict]
                           for each in held))
        yield ""


def _failures(results: Results) -> Iterator[str]:
    failed: list[Run] = results.failures()
    if failed:
        yield "## Failed runs"
        yield ""
        for (name, cell, status, reason), rounds in by_cause(failed).items():
            yield f"- {name}, {cell}: {status}: {reason} ({len(rounds)} round{'s' if len(rounds) > 1 else ''})"
        yield ""


def _rounds(results: Results) -> Iterator[str]:
    """What the probe of the system's noise found before each round."""
    yield "## Rounds"
    yield ""
    yield "CPU time that others took in a probe before each round, and the longest pause; noisy rounds are left out"
    yield "where there are quiet ones enough."
    yield ""
    yield from _table(("round", "lost, %", "longest pause, ms", ""), (
        [str(row.number), f"{100 * (row.lost_share or 0):.1f}", f"{(row.longest_gap_us or 0) / 1e3:.2f}",
         "noisy" if row.noisy else ""] for row in results.campaign.round_rows))


def _table(head: Sequence[str], body) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|---|{'--:|' * (len(head) - 1)}"
    for row in body:
        yield f"| {' | '.join(row)} |"
