"""Shows results: a table for people, the raw samples for programs."""

import json
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .compare import Comparison, Side
from .doctor import Report
from .errors import Failure
from .job import Job
from .ratios import FEWEST_PAIRS, NOT_SHOWN, TOO_FEW, Ratio, paired, spread
from .run import Outcome

# Below this, starting the process is most of what is measured.
_SHORT_S = 0.02


def _seconds(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f} s"
    return f"{value:.3g} s" if value >= 1 else f"{value * 1e3:.3g} ms"


def _memory(kib: float) -> str:
    if kib >= 1024 * 1000:
        return f"{kib / 1024:,.0f} MiB"
    return f"{kib / 1024:.4g} MiB" if kib >= 1024 else f"{kib:.0f} KiB"


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _ratio(value: float) -> str:
    return f"{value:.3f}" if value < 10 else f"{value:,.1f}"


@dataclass(frozen=True)
class Metric:
    key: str
    title: str
    value: Callable[[Outcome], float]
    show: Callable[[float], str]


METRICS = [
    Metric("wall", "wall time", lambda run: run.cost["wall_s"], _seconds),
    Metric("load", "load time", lambda run: run.load_s, _seconds),
    Metric("cpu", "CPU time", lambda run: run.cost["cpu_s"], _seconds),
    Metric("peak", "peak memory", lambda run: run.cost["peak_kb"], _memory),
    Metric("faults", "page faults", lambda run: run.cost["minor_faults"] + run.cost["major_faults"], _count),
    Metric("switches", "switches", lambda run: run.cost["voluntary_switches"] + run.cost["involuntary_switches"], _count),
]
# What these are called in the file of --json.
_FIELDS = {"wall": "wall_s", "load": "load_s", "cpu": "cpu_s", "peak": "peak_kib"}


def show_comparison(console: Console, comparison: Comparison, job: Job, hints: list[str]) -> None:
    shown = [metric for metric in METRICS if _says_something(metric, job)]
    console.print((_duel if len(comparison.candidates) == 1 else _tournament)(comparison, shown))
    console.print()
    for line in _legend(comparison):
        _print(console, Text(line, style="dim"))
    _notes(console, hints + _remarks(comparison, job))
    for line in comparison.warnings:
        _print(console, Text(f"warning: {line}", style="yellow"))


def _says_something(metric: Metric, job: Job) -> bool:
    # A server lives as long as it is let.
    return {"wall": not job.is_server, "load": job.load != ""}.get(metric.key, True)


def _table(*numbers: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("")
    for title in numbers:
        table.add_column(title, justify="right")
    table.add_column("ratio", no_wrap=True)
    table.add_column("reading", no_wrap=True)
    return table


def _duel(comparison: Comparison, metrics: list[Metric]) -> Table:
    """A line for each metric, both sides beside each other."""
    reference, (candidate,) = comparison.reference, comparison.candidates
    table = _table(reference.name, candidate.name)
    for metric in metrics:
        table.add_row(metric.title, _middle(metric, reference), _middle(metric, candidate),
                      *_reading(_ratio_of(metric, candidate, reference)))
    return table


def _tournament(comparison: Comparison, metrics: list[Metric]) -> Table:
    """A block of lines for each metric: the reference, then each of the others with its ratio to it."""
    table = _table("median")
    for metric in metrics:
        table.add_row(Text(metric.title, style="bold"))
        table.add_row(f"  {comparison.reference.name}", _middle(metric, comparison.reference))
        for side in comparison.candidates:
            table.add_row(f"  {side.name}", _middle(metric, side),
                          *_reading(_ratio_of(metric, side, comparison.reference)))
    return table


def _middle(metric: Metric, side: Side) -> str:
    middle = spread([metric.value(run) for run in side.runs])
    return f"{metric.show(middle.median)} ±{middle.relative:.0%}"


def _ratio_of(metric: Metric, side: Side, reference: Side) -> Ratio | None:
    return paired([metric.value(run) for run in side.runs], [metric.value(run) for run in reference.runs])


def _reading(ratio: Ratio | None) -> tuple[str | Text, str | Text]:
    if ratio is None:
        return "-", "-"
    interval = f" [{_ratio(ratio.low)}, {_ratio(ratio.high)}]" if ratio.low is not None else ""
    told = ratio.verdict not in (NOT_SHOWN, TOO_FEW)
    style = "dim" if not told else "green" if ratio.median < 1 else "red"
    return Text(_ratio(ratio.median) + interval), Text(ratio.verdict, style=style)


def _legend(comparison: Comparison) -> list[str]:
    runs, sides = len(comparison.reference.runs), comparison.candidates
    each = f"{runs} run{'s' if runs > 1 else ''} of each in turn; medians, ± half the distance between the quartiles."
    mine = sides[0].name if len(sides) == 1 else "an allocator"
    ratio = f"ratio: {mine} / {comparison.reference.name}, median of the pairs"
    if runs < FEWEST_PAIRS:
        return [each, f"{ratio}. Fewer than {FEWEST_PAIRS} runs show no difference."]
    return [each, f"{ratio} [its 95 % interval]; where that includes 1, a difference is {NOT_SHOWN}.",
            "switches: context switches."]


def _remarks(comparison: Comparison, job: Job) -> list[str]:
    lines = [side.proof for side in comparison.candidates if side.proof]
    middle = statistics.median(run.cost["wall_s"] for run in comparison.reference.runs)
    if not job.is_server and middle < _SHORT_S:
        lines.append(f"The program runs for {_seconds(middle)} only: much of that is starting and loading libraries.")
    return lines


def check_writable(path: Path) -> None:
    """Leaves nothing behind, and a pipe alone: its reader would take the end of this for the end of all."""
    try:
        if path.is_fifo():
            return
        is_new = not path.exists()
        path.open("a").close()
        if is_new:
            path.resolve().unlink()
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from error


def write_json(path: Path, comparison: Comparison, command: list[str]) -> None:
    document = {
        "command": command,
        "reference": _side(comparison.reference),
        "candidates": [_side(side) | {"ratios": _ratios(side, comparison.reference)} for side in comparison.candidates],
        "warnings": comparison.warnings,
    }
    try:
        path.write_text(json.dumps(document, indent=2) + "\n")
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from error


def _ratios(side: Side, reference: Side) -> dict:
    found = {metric.key: _ratio_of(metric, side, reference) for metric in METRICS}
    return {key: asdict(ratio) | {"verdict": ratio.verdict} if ratio else None for key, ratio in found.items()}


def _side(side: Side) -> dict:
    library = str(side.allocator.library) if side.allocator.library else None
    return {"name": side.name, "library": library, "samples": [_sample(run) for run in side.runs]}


def _sample(run: Outcome) -> dict:
    numbers = {_FIELDS.get(metric.key, metric.key): metric.value(run) for metric in METRICS}
    return numbers | {"exit": run.exit, "stopped": run.stopped, "seen_in_maps": run.seen_in_maps}


def show_doctor(console: Console, report: Report) -> None:
    console.print(Text(report.verdict, style="bold green" if report.served else "bold red"), soft_wrap=True)
    width = max((len(name) for name, _ in report.facts), default=0)
    for name, value in report.facts:
        # Paths are for copying: never broken, whatever the width.
        console.print(Text.assemble((f"  {name:<{width}}  ", "dim"), value), soft_wrap=True)
    _notes(console, report.hints)


def _notes(console: Console, lines: list[str]) -> None:
    for line in lines:
        _print(console, Text(f"note: {line}"))


def _print(console: Console, line: Text) -> None:
    # Broken at words for a person; in a file, one line stays one line.
    console.print(line, soft_wrap=not console.is_terminal)
