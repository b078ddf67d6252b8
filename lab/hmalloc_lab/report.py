"""Shows results: a table for people, the raw samples for programs."""

import json
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .compare import Comparison
from .doctor import Report
from .job import Job
from .ratios import FEWEST_PAIRS, Ratio, paired, spread
from .run import Outcome

# Below this, starting the process is most of what is measured.
_SHORT_S = 0.02


def _seconds(value: float) -> str:
    return f"{value:.3g} s" if value >= 1 else f"{value * 1e3:.3g} ms"


def _memory(kib: float) -> str:
    return f"{kib / 1024:,.4g} MiB" if kib >= 1024 else f"{kib:.0f} KiB"


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
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("")
    table.add_column(comparison.reference.name, justify="right")
    table.add_column(comparison.candidate.name, justify="right")
    table.add_column("ratio", no_wrap=True)
    table.add_column("reading", no_wrap=True)
    for metric in METRICS:
        if _says_something(metric, job):
            table.add_row(*_row(metric, comparison))
    console.print(table)
    console.print()
    for line in _legend(comparison):
        _print(console, Text(line, style="dim"))
    _notes(console, hints + _remarks(comparison, job))
    for line in comparison.warnings:
        _print(console, Text(f"warning: {line}", style="yellow"))


def _says_something(metric: Metric, job: Job) -> bool:
    # A server lives as long as it is let.
    return {"wall": not job.is_server, "load": job.load != ""}.get(metric.key, True)


def _row(metric: Metric, comparison: Comparison) -> list[str | Text]:
    references, candidates = _values(metric, comparison)
    cells: list[str | Text] = [metric.title]
    for values in (references, candidates):
        middle = spread(values)
        cells.append(f"{metric.show(middle.median)} ±{middle.relative:.0%}")
    ratio = paired(candidates, references)
    if ratio is None:
        return [*cells, "-", "-"]
    interval = f" [{_ratio(ratio.low)}, {_ratio(ratio.high)}]" if ratio.low is not None else ""
    return [*cells, Text(_ratio(ratio.median) + interval), Text(ratio.verdict, style=_style(ratio))]


def _values(metric: Metric, comparison: Comparison) -> tuple[list[float], list[float]]:
    return ([metric.value(sample) for sample in comparison.reference_samples],
            [metric.value(sample) for sample in comparison.candidate_samples])


def _style(ratio: Ratio) -> str:
    if ratio.verdict in ("no difference", "too few runs"):
        return "dim"
    return "green" if ratio.median < 1 else "red"


def _legend(comparison: Comparison) -> list[str]:
    runs = len(comparison.reference_samples)
    each = f"{runs} run{'s' if runs > 1 else ''} of each in turn; medians, ± half the distance between the quartiles."
    ratio = f"ratio: {comparison.candidate.name} / {comparison.reference.name}, median of the pairs"
    if runs < FEWEST_PAIRS:
        return [each, f"{ratio}. Fewer than {FEWEST_PAIRS} runs prove no difference."]
    return [each, f"{ratio} [its 95 % interval]; where that includes 1, the difference may be chance.",
            "switches: context switches."]


def _remarks(comparison: Comparison, job: Job) -> list[str]:
    lines = [comparison.proof] if comparison.proof else []
    middle = statistics.median(sample.cost["wall_s"] for sample in comparison.reference_samples)
    if not job.is_server and middle < _SHORT_S:
        lines.append(f"The program runs for {_seconds(middle)} only: much of that is starting and loading libraries.")
    return lines


def write_json(path: Path, comparison: Comparison, command: list[str]) -> None:
    ratios = {}
    for metric in METRICS:
        references, candidates = _values(metric, comparison)
        ratio = paired(candidates, references)
        ratios[metric.key] = asdict(ratio) | {"verdict": ratio.verdict} if ratio else None
    document = {
        "command": command,
        "reference": _side(comparison.reference, comparison.reference_samples),
        "candidate": _side(comparison.candidate, comparison.candidate_samples),
        "ratios": ratios,
        "warnings": comparison.warnings,
    }
    path.write_text(json.dumps(document, indent=2) + "\n")


def _side(allocator, samples: list[Outcome]) -> dict:
    library = str(allocator.library) if allocator.library else None
    return {"name": allocator.name, "library": library, "samples": [_sample(sample) for sample in samples]}


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
