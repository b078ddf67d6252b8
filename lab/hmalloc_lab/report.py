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
from .measure import Sample
from .ratios import FEWEST_PAIRS, Ratio, paired, spread

# Below this, starting the process is most of what is measured.
_SHORT_S = 0.05


def _seconds(value: float) -> str:
    return f"{value:.3g} s" if value >= 1 else f"{value * 1e3:.3g} ms"


def _memory(kib: float) -> str:
    return f"{kib / 1024:.4g} MiB"


def _count(value: float) -> str:
    return f"{value:,.0f}"


@dataclass(frozen=True)
class Metric:
    key: str
    title: str
    value: Callable[[Sample], float]
    show: Callable[[float], str]


METRICS = [
    Metric("wall", "wall time", lambda sample: sample.wall_s, _seconds),
    Metric("cpu", "CPU time", lambda sample: sample.cpu_s, _seconds),
    Metric("peak", "peak memory", lambda sample: sample.peak_kib, _memory),
    Metric("faults", "page faults", lambda sample: sample.faults, _count),
    Metric("switches", "context switches", lambda sample: sample.switches, _count),
]


def show_comparison(console: Console, comparison: Comparison, timed: bool, hints: list[str]) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("")
    table.add_column(comparison.baseline.name, justify="right")
    table.add_column(comparison.candidate.name, justify="right")
    table.add_column("ratio", no_wrap=True)
    table.add_column("reading", no_wrap=True)
    for metric in METRICS:
        if metric.key == "wall" and timed:
            continue
        table.add_row(*_row(metric, comparison))
    console.print(table)
    console.print()
    for line in _legend(comparison):
        console.print(line, style="dim", highlight=False)
    _notes(console, hints + _remarks(comparison, timed))
    for line in comparison.warnings:
        console.print(Text(f"warning: {line}", style="yellow"))


def _row(metric: Metric, comparison: Comparison) -> list[str | Text]:
    baselines, candidates = _values(metric, comparison)
    cells: list[str | Text] = [metric.title]
    for values in (baselines, candidates):
        middle = spread(values)
        cells.append(f"{metric.show(middle.median)} ±{middle.relative:.0%}")
    ratio = paired(candidates, baselines)
    if ratio is None:
        return [*cells, "-", "-"]
    interval = f" [{ratio.low:.2f}, {ratio.high:.2f}]" if ratio.low is not None else ""
    return [*cells, f"{ratio.median:.2f}{interval}", Text(ratio.verdict, style=_style(ratio))]


def _values(metric: Metric, comparison: Comparison) -> tuple[list[float], list[float]]:
    return ([metric.value(sample) for sample in comparison.baseline_samples],
            [metric.value(sample) for sample in comparison.candidate_samples])


def _style(ratio: Ratio) -> str:
    if ratio.verdict in ("no difference", "too few runs"):
        return "dim"
    return "green" if ratio.median < 1 else "red"


def _legend(comparison: Comparison) -> list[str]:
    runs = len(comparison.baseline_samples)
    names = f"{comparison.candidate.name} / {comparison.baseline.name}"
    lines = [f"{runs} runs of each in turn; medians, ± half the distance between the quartiles."]
    if runs < FEWEST_PAIRS:
        return [*lines, f"ratio: {names}, median of the pairs. Fewer than {FEWEST_PAIRS} runs prove no difference."]
    return [*lines, f"ratio: {names}, median of the pairs and its 95 % interval; where that includes 1,",
            "no difference can be told from chance."]


def _remarks(comparison: Comparison, timed: bool) -> list[str]:
    lines = [comparison.proof] if comparison.proof else []
    middle = statistics.median(sample.wall_s for sample in comparison.baseline_samples)
    if not timed and middle < _SHORT_S:
        lines.append(f"The program runs for {_seconds(middle)} only: most of that is starting up and loading libraries.")
    return lines


def write_json(path: Path, comparison: Comparison, command: list[str]) -> None:
    ratios = {}
    for metric in METRICS:
        baselines, candidates = _values(metric, comparison)
        ratio = paired(candidates, baselines)
        ratios[metric.key] = asdict(ratio) | {"verdict": ratio.verdict} if ratio else None
    document = {
        "command": command,
        "baseline": _side(comparison.baseline, comparison.baseline_samples),
        "candidate": _side(comparison.candidate, comparison.candidate_samples),
        "ratios": ratios,
        "warnings": comparison.warnings,
    }
    path.write_text(json.dumps(document, indent=2) + "\n")


def _side(allocator, samples: list[Sample]) -> dict:
    library = str(allocator.library) if allocator.library else None
    return {"name": allocator.name, "library": library, "samples": [asdict(sample) for sample in samples]}


def show_doctor(console: Console, report: Report) -> None:
    console.print(Text(report.verdict, style="bold green" if report.served else "bold red"), soft_wrap=True)
    width = max((len(name) for name, _ in report.facts), default=0)
    for name, value in report.facts:
        # Paths are for copying: never broken, whatever the width.
        console.print(Text.assemble((f"  {name:<{width}}  ", "dim"), value), soft_wrap=True)
    _notes(console, report.hints)


def _notes(console: Console, lines: list[str]) -> None:
    for line in lines:
        console.print(Text(f"note: {line}"), soft_wrap=not console.is_terminal)
