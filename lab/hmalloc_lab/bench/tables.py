"""The campaign as Markdown: everything but the raw runs.  And how tables write numbers."""

from collections.abc import Iterable, Sequence

from ..ratios import spread
from . import statistics
from .catalogue import UNITS, Cell
from .results import Results
from .statistics import Mean, Ratio
from .store import Run

Row = Sequence[str]


def number(value: float) -> str:
    """Three digits are as many as the noise leaves."""
    size = abs(value)
    form = ",.0f" if size >= 100 else ".1f" if size >= 10 else ".2f" if size >= 0.1 else ".2g"
    return format(value, form)


def unit(cell: Cell) -> str:
    name = UNITS.get(cell.metric, cell.metric)
    return f"{name}, {cell.metric.split('_')[1]}" if cell.metric.startswith("latency_") else name


def ratio_text(ratio: Ratio) -> str:
    """With its interval, where there are rounds enough for one."""
    middle = number(ratio.median)
    return f"{middle} [{number(ratio.low)}, {number(ratio.high)}]" if ratio.rounds >= statistics.FEWEST else middle


def counted(duels: Iterable[statistics.Duel]) -> tuple[int, int, int, int]:
    """Won, even, lost, too few rounds."""
    verdicts = [duel.ratio.verdict for duel in duels]
    won, lost = (sum(verdict in words for verdict in verdicts) for words in (statistics.BETTER, statistics.WORSE))
    return won, verdicts.count(statistics.EVEN), lost, verdicts.count(statistics.TOO_FEW)


def by_cause(failures: Iterable[Run]) -> dict[tuple[str, str, str, str], list[int]]:
    """(allocator, cell, status, reason) -> the rounds in which it happened."""
    found: dict[tuple[str, str, str, str], list[int]] = {}
    for run in failures:
        found.setdefault((run.allocator, run.cell, run.status, run.reason), []).append(run.round)
    return found


def best_first(means: dict[str, dict[str, Mean]], names: Iterable[str]) -> list[str]:
    """The names by their mean over all cells; those without one last."""
    over_all = means.get("all", {})
    return sorted(names, key=lambda name: over_all[name].value if name in over_all else float("inf"))


def best_of(means: dict[str, Mean]) -> set[str]:
    """Who has the smallest mean, as it is written."""
    smallest = min((round(mean.value, 2) for mean in means.values()), default=0)
    return {name for name, mean in means.items() if round(mean.value, 2) == smallest}


def markdown(results: Results) -> str:
    parts = ["# Benchmark results", campaign(results), "## Allocators", allocators(results), "## Families",
             "Geometric means of each cell's median divided by the smallest median of all drop-in allocators: 1.00 "
             "would be the best in every cell. In brackets the 95 % bootstrap interval over the cells (below "
             f"{statistics.FEWEST} cells their range), and their number. `all`: the cells that count time, without "
             "latency. `peak`: resident memory at its peak.", _families(results), *_duels(results), *_explicit(results),
             "## Cells", "Median ± half the distance between the quartiles over the rounds (median divided by the "
             "smallest median of all drop-in allocators, which is bold).", *_cells(results),
             "## Failures", failures(results), "## Noisy rounds", noisy(results)]
    return "\n\n".join(part for part in parts if part) + "\n"


def table(head: Row, rows: Iterable[Row], right_from: int = 1) -> str:
    lines = [head, ["--:" if at >= right_from else "---" for at in range(len(head))], *rows]
    return "\n".join(f"| {' | '.join(word.replace('|', '/') for word in line)} |" for line in lines)


def campaign(results: Results) -> str:
    of = results.campaign
    facts = {"started": of.started, "finished": of.finished or "not finished", "profile": of.profile,
             "command": f"`{of.command}`", "rounds": of.rounds, "seed": of.seed, **of.environment}
    return table(["", ""], [[name, _fact(value)] for name, value in facts.items()], right_from=2)


def _fact(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_fact(each)}" for key, each in value.items())
    return ", ".join(map(_fact, value)) if isinstance(value, list) else str(value)


def allocators(results: Results) -> str:
    return table(["allocator", "kind", "version", "sha256", "environment"],
                  [[row.name, row.kind, row.version, row.sha256[:16] or "-",
                    " ".join(f"{key}={value}" for key, value in row.environment.items()) or "-"]
                   for row in results.allocators.values()], right_from=5)


def _families(results: Results) -> str:
    means = statistics.family_means(results)
    columns = {**means, "peak": statistics.memory_means(results)}
    rows = []
    for name in best_first(means, [row.name for row in results.drop_ins]):
        rows.append([name, *(_bold_if(_mean(column, name), name in best_of(column)) for column in columns.values())])
    return table(["allocator", *columns], rows)


def _bold_if(text: str, best: bool) -> str:
    return f"**{text}**" if best else text


def _mean(means: dict[str, Mean], key: str) -> str:
    if key not in means:
        return "-"
    mean = means[key]
    return f"{mean.value:.2f} ({mean.low:.2f} to {mean.high:.2f}; {mean.cells})"


def _duels(results: Results) -> list[str]:
    parts = []
    for metric, title in ((None, "Speed, faults and latency"), ("vm_hwm_kb", "Peak memory")):
        found = statistics.duels(results, "hmalloc", metric)
        if found:
            won, even, lost, few = counted(found)
            parts.append(f"{title}: better in {won} cells, not distinguishable in {even}, worse in {lost}"
                         + (f", too few rounds in {few}." if few else "."))
            parts.append(table(["worse in", "best peer", "ratio", "rounds"], [
                [duel.cell.name, duel.peer, ratio_text(duel.ratio), str(duel.ratio.rounds)]
                for duel in found if duel.ratio.verdict in statistics.WORSE]) if lost else "")
    return ["## hmalloc against the best peer of each cell", *parts] if parts else []


def _explicit(results: Results) -> list[str]:
    explicit = statistics.explicit_means(results)
    if not explicit:
        return []
    families = [family for family in results.families if any(family in means for means in explicit.values())]
    return ["## The explicit interfaces against the same allocator preloaded",
            "Geometric means of the paired ratios, over the cells that both run.",
            table(["", *families], [[name, *(_mean(means, family) for family in families)]
                                     for name, means in explicit.items()])]


def _cells(results: Results) -> Iterable[str]:
    names = list(results.allocators)
    for family in results.families:
        rows = [[cell.name, unit(cell), *_cell_row(results, cell, names)]
                for cell in results.cells.values() if cell.family == family]
        yield f"### {family}"
        yield table(["cell", "unit", *names], rows, right_from=2)


def _cell_row(results: Results, cell: Cell, names: Iterable[str]) -> Iterable[str]:
    best = results.best(cell, results.drop_ins)
    for name in names:
        values = list(results.values(cell, name).values())
        if not values:
            yield "-"
            continue
        middle = spread(values)
        text = f"{number(middle.median)} ±{middle.relative:.0%}"
        ratio = f" ({number(middle.median / best[1])})" if best and best[1] > 0 else ""
        yield _bold_if(text, best is not None and name == best[0]) + ratio


def failures(results: Results) -> str:
    rows = [[name, cell, status, reason, ", ".join(map(str, rounds))]
            for (name, cell, status, reason), rounds in by_cause(results.failures()).items()]
    return table(["allocator", "cell", "end", "reason", "rounds"], rows, right_from=5) if rows else "None."


def noisy(results: Results) -> str:
    rows = [[str(row.number), row.started, f"{row.lost_share:.1%}" if row.lost_share is not None else "-",
             f"{row.longest_gap_us:,.0f} µs" if row.longest_gap_us is not None else "-"]
            for row in results.campaign.round_rows if row.noisy]
    return table(["round", "started", "CPU time lost", "longest pause"], rows, right_from=2) if rows else "None."
