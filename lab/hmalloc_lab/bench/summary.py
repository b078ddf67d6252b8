"""A campaign in the terminal, for those who never open the page."""


from rich.console import Console
from rich.table import Table
from rich.text import Text

from . import statistics, store
from .programs import report as programs
from .results import Results
from .statistics import Duel, Mean
from .tables import best_first, best_of, by_cause, counted, number, ratio_text, unit

_MACHINE = (("CPU", "", ""), ("CPUs", "", " CPUs"), ("kernel", "kernel ", ""), ("glibc", "glibc ", ""))
_MOST_LINES = 12  # of a list; the page and the Markdown have all
_WIDE = 110       # columns from which medians stand beside their ratio


def show(console: Console, results: Results, reference: str | None = None) -> None:
    """reference: an allocator to compare all others with, cell by cell."""
    if reference:
        results.require(reference)
    _head(console, results)
    _families(console, results)
    _programs(console, results)
    _explicit(console, results)
    _duels(console, results)
    _failures(console, results)
    if reference:
        _against(console, results, reference)


def _head(console: Console, results: Results) -> None:
    of = results.campaign
    console.print(Text(f"Campaign {of.id}: {of.profile}, {of.started[:16].replace('T', ' ')}", style="bold"))
    machine = [f"{before}{of.environment[key]}{after}" for key, before, after in _MACHINE if key in of.environment]
    if machine:
        _print(console, ", ".join(machine))
    made, noisy = len(of.round_rows), sorted(results.noisy_rounds)
    rounds = f"{made} rounds" if made == of.rounds else f"{made} rounds, {of.rounds} planned"
    if noisy:
        named = f": {', '.join(map(str, noisy))}" if len(noisy) <= _MOST_LINES // 2 else ""
        rounds += f" ({len(noisy) if len(noisy) < made else 'all'} noisy{named})"
    failed = len(results.failures())
    _print(console, f"{rounds}, {len(results.cells)} cells, {len(results.allocators)} allocators: "
                    f"{len(of.runs) - failed:,} runs that count, {failed:,} that failed"
                    f"{'' if of.finished else '; not finished'}")


# All families fit a terminal of 80 columns.
_HEADS = {"false sharing": "false\nshar.", "simulation": "sim.", "latency": "lat.", "memory": "mem.", "servers": "srv.",
          "programs": "prog."}


def _families(console: Console, results: Results) -> None:
    means = statistics.family_means(results)
    columns = {**means, "peak": statistics.memory_means(results)}
    if not means:
        _print(console, "Nothing was measured.")
        return
    _title(console, "How far from the best", "1.00 is the best drop-in allocator of each cell")
    table = _table()
    table.add_column("", overflow="fold")
    for title in columns:
        table.add_column(_HEADS.get(title, title), justify="right", no_wrap=True)
    partial = False
    for name in best_first(means, [row.name for row in results.drop_ins]):
        row = [Text(name, style="bold" if name == "hmalloc" else "")]
        for column in columns.values():
            row.append(_mean(column, name))
            partial |= row[-1].plain.endswith("*")
        table.add_row(*row)
    console.print(table)
    _print(console, "Geometric means; smaller is better. all: the cells that count time, without latency. peak: peak "
                    "resident memory." + (" *: over fewer cells than the others." if partial else ""), "dim")


def _mean(column: dict[str, Mean], name: str) -> Text:
    if name not in column:
        return Text("-", style="dim")
    fewer = column[name].cells < max(mean.cells for mean in column.values())
    style = "bold green" if name in best_of(column) else ""
    return Text(f"{column[name].value:.2f}{'*' if fewer else ''}", style=style)


def _programs(console: Console, results: Results) -> None:
    if programs.cells(results):
        _title(console, "Programs", "over the row's best, the least of the rounds: mean, worst")
        head, rows = programs.summary(results)
        table = _table(*head)
        for row in rows:
            table.add_row(*row)
        console.print(table)


def _explicit(console: Console, results: Results) -> None:
    explicit = statistics.explicit_means(results)
    if explicit:
        _title(console, "Explicit interfaces", "ratio to the same allocator preloaded, in the same cells")
    for name, means in explicit.items():
        _print(console, f"{name}: " + ", ".join(f"{family} {mean.value:.2f}" for family, mean in means.items()))


def _duels(console: Console, results: Results) -> None:
    found = statistics.duels(results, "hmalloc")
    if not found:
        return
    _title(console, "hmalloc against the best peer of each cell", "")
    peaks = statistics.duels(results, "hmalloc", "vm_hwm_kb")
    for what, duels in (("time, faults, latency", found), ("peak memory", peaks)):
        won, even, lost, few = counted(duels)
        _print(console, f"{what}: won {won}, even {even}, lost {lost}" + (f", too few rounds {few}" if few else ""))
    behind = [duel for duel in found if duel.ratio.verdict in statistics.WORSE]
    if all(duel.ratio.verdict == statistics.TOO_FEW for duel in found):
        behind = [duel for duel in found if duel.ratio.median > 1]
        _print(console, f"Fewer than {statistics.FEWEST} rounds prove nothing. By the medians alone hmalloc is behind "
                        f"in {len(behind)} of {len(found)} cells.")
    if behind:
        console.print(_behind_table(console, results, behind[:_MOST_LINES]))
    _more(console, len(behind), "cells behind the best peer")


def _behind_table(console: Console, results: Results, behind: list[Duel]) -> Table:
    wide = console.width >= _WIDE
    table = _table("behind, worst first", "best peer", *(("hmalloc", "peer", "unit") if wide else ()), "ratio")
    for duel in behind:
        row = [duel.cell.name, duel.peer]
        if wide:
            row += [number(results.median(duel.cell, name) or 0) for name in ("hmalloc", duel.peer)] + [unit(duel.cell)]
        table.add_row(*row, Text(ratio_text(duel.ratio)))
    return table


def _failures(console: Console, results: Results) -> None:
    failures = results.failures()
    unproved = sorted({run.allocator for run in failures if run.status == store.NOT_LOADED})
    if failures:
        _title(console, "Failures", "")
    causes = by_cause(failures)
    for (name, cell, status, reason), rounds in list(causes.items())[:_MOST_LINES]:
        times = f"round {rounds[0]}" if len(rounds) == 1 else f"{len(rounds)} rounds"
        _print(console, f"{name} {status} in {cell} ({times}): {reason}", "red")
    _more(console, len(causes), "causes")
    console.print()
    _print(console, "Each run that counts has proved that its allocator served it"
                    + (f"; runs of {', '.join(unproved)} did not, and do not count." if unproved else "."))


def _against(console: Console, results: Results, reference: str) -> None:
    for name in results.allocators:
        found = [(cell, against) for cell in results.cells.values()
                 if name != reference and (against := statistics.ratio(results, cell, name, reference))]
        if not found:
            continue
        _title(console, f"{name} / {reference}", "median of the rounds' ratios [95 % interval]")
        table = _table("cell", "ratio", "reading")
        for cell, against in found:
            verdict = against.verdict
            style = "green" if verdict in statistics.BETTER else "red" if verdict in statistics.WORSE else "dim"
            table.add_row(cell.name, Text(ratio_text(against)), Text(verdict, style=style))
        console.print(table)


def _table(*titles: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for at, title in enumerate(titles):
        table.add_column(title, overflow="fold", no_wrap=at > 0, justify="left" if at == 0 else "right")
    return table


def _title(console: Console, title: str, explanation: str) -> None:
    console.print()
    console.print(Text.assemble((title, "bold"), (f": {explanation}" if explanation else "", "dim")))


def _more(console: Console, length: int, what: str) -> None:
    if length > _MOST_LINES:
        _print(console, f"and {length - _MOST_LINES} more {what}", "dim")


def _print(console: Console, line: str, style: str = "") -> None:
    # Broken at words for a person; in a file, one line stays one line.
    console.print(Text(line, style=style), soft_wrap=not console.is_terminal)
