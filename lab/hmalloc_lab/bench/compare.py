"""Old and new: has anything become slower, fatter or broken?  For CI: the answer is an exit code.

Best, both took part in one campaign: then new is divided by old round by round.  Two campaigns were not interleaved:
between them lie hours, and another mood of the machine.  So no times are compared but ratios to an allocator that is the
same library in both, round by round within each campaign: a change is (new / its reference) / (old / its reference), of
the medians.  A change of the reference itself cannot be seen, nor one of the kernel that moves all allocators alike.

What counts as a change is in detection.py; the intervals that are shown are the bootstrap's, of 95 %, for a picture.  What
a single cell cannot prove but all cells share shows in the mean over the cells, which scatters little.
"""

import statistics as stdlib
from collections.abc import Iterable, Sequence

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..errors import Failure
from . import detection, statistics
from .catalogue import Cell
from .changes import Change, judged, means, tested
from .results import Results
from .statistics import FEWEST, is_memory, round_ratios
from .tables import number

_MAY_DIFFER = {"hmalloc", "load before"}  # of the environment: what is compared, and what never is the same
_DRIFT = 0.2  # of the reference's own times, from which the machine is hardly the same


def compare(console: Console, old: Results, new: Results, allocators: Sequence[str] | None = None,
            threshold: float = 0.05) -> int:
    """Two campaigns.  0: nothing is worse; 1: something is; Failure (2): they cannot be compared."""
    reference = _reference(old, new)
    names = _common(old, new, reference, allocators)
    for line in _differences(old, new):
        _print(console, f"warning: {line}", "yellow")
    changes, few = _changes(old, new, names, reference, threshold)
    _print(console, f"new / old, each as its ratio to {reference} of the same campaign (the same library in both) "
                    f"[95 % interval]{_promise(threshold)}")
    _tell_drift(console, old, new, reference)
    return _answer(console, changes, _newly_failing(old, new, names), few, threshold, paired=False)


def compare_within(console: Console, results: Results, old: str, new: str, threshold: float = 0.05) -> int:
    """Two allocators of one campaign, say two builds, that were run next to each other in every round."""
    results.require(old, new)
    found, few = [], 0
    for cell, metric in _measured(results):
        ratios = round_ratios(results.values(cell, new, metric), results.values(cell, old, metric))
        if len(ratios) >= FEWEST:
            low, high = statistics.interval([ratios], np.median)
            found.append(tested(new, _place(cell, metric), (stdlib.median(ratios), low, high), ratios, None, threshold,
                                 is_memory(metric)))
        elif ratios:
            few += 1
    before = {run.cell for run in results.failures() if run.allocator == old}
    failures = [(new, run.cell, run.status) for run in results.failures() if run.allocator == new and run.cell not in before]
    _print(console, f"{new} / {old}, round by round [95 % interval]{_promise(threshold)}")
    return _answer(console, found, list(dict.fromkeys(failures)), few, threshold, paired=True)


def _answer(console: Console, changes: list[Change], failures: list[tuple[str, str, str]], few: int, threshold: float,
            paired: bool) -> int:
    if not changes and not failures:
        raise Failure(f"nothing to compare: fewer than {FEWEST} common rounds in every cell" if few else
                      "nothing to compare: no cell was measured in both")
    worse = _show(console, judged(changes) + judged(means(changes, threshold)), failures, threshold)
    if few:
        _print(console, f"{few} comparisons had fewer than {FEWEST} common rounds.", "dim")
    if changes:
        _tell_rounds(console, changes, threshold, paired)
    return 1 if worse or failures else 0


# ---- What can be compared. ------------------------------------------------------------------------------------------


def _reference(old: Results, new: Results) -> str:
    """glibc where it is the same library in both, else any other that is."""
    same = [name for name, row in old.allocators.items() if row in old.drop_ins and name in new.allocators
            and row.sha256 == new.allocators[name].sha256 and row.version == new.allocators[name].version]
    if not same:
        raise Failure("nothing to compare by: no allocator is the same library in both databases (glibc, usually)")
    return "glibc" if "glibc" in same else same[0]


def _common(old: Results, new: Results, reference: str, wanted: Sequence[str] | None) -> list[str]:
    for name in wanted or ():
        if name not in old.allocators or name not in new.allocators:
            raise Failure(f"{name}: not in both databases")
    names = [name for name, row in new.allocators.items() if name in old.allocators and name != reference
             and row.kind != "no-allocator" and (not wanted or name in wanted)]
    if not names:
        raise Failure(f"nothing to compare: no allocator but {reference} is in both databases")
    if not old.cells.keys() & new.cells.keys():
        raise Failure("nothing to compare: no cell is in both databases")
    return names


def _differences(old: Results, new: Results) -> Iterable[str]:
    before, after = old.campaign, new.campaign
    for key in sorted((before.environment.keys() & after.environment.keys()) - _MAY_DIFFER):
        if before.environment[key] != after.environment[key]:
            yield f"another {key}: {before.environment[key]}, now {after.environment[key]}"
    if before.profile != after.profile:
        yield f"another profile: {before.profile}, now {after.profile}; cells of one name repeat their work differently"
    for which, campaign in (("old", before), ("new", after)):
        if campaign.finished is None:
            yield f"the {which} campaign was not finished"
    alone = len(old.cells.keys() ^ new.cells.keys())
    if alone:
        yield f"{alone} cells are in one of the databases only"


# ---- Changes. -------------------------------------------------------------------------------------------------------


def _measured(results: Results) -> Iterable[tuple[Cell, str]]:
    for cell in results.cells.values():
        for metric in dict.fromkeys((cell.metric, "vm_hwm_kb") if cell.counts_peak else (cell.metric,)):
            yield cell, metric


def _place(cell: Cell, metric: str) -> str:
    return cell.name if metric == cell.metric else f"{cell.name}, peak"


def _changes(old: Results, new: Results, names: Sequence[str], reference: str,
             threshold: float) -> tuple[list[Change], int]:
    """And how many comparisons had too few rounds."""
    found, few = [], 0
    for cell, metric in _measured(new):
        for name in names:
            before, after = (round_ratios(of.values(cell, name, metric), of.values(cell, reference, metric))
                             for of in (old, new))
            if min(len(before), len(after)) >= FEWEST:
                shown = stdlib.median(after) / stdlib.median(before), *statistics.interval(
                    [after, before], lambda new, old, axis: np.median(new, axis) / np.median(old, axis))
                found.append(tested(name, _place(cell, metric), shown, after, before, threshold, is_memory(metric)))
            elif before and after:
                few += 1
    return found, few


def _newly_failing(old: Results, new: Results, names: Sequence[str]) -> list[tuple[str, str, str]]:
    """(allocator, cell, how it ends), where it did not fail before."""
    before = {(run.allocator, run.cell) for run in old.failures()}
    return list(dict.fromkeys(
        (run.allocator, run.cell, run.status) for run in new.failures()
        if run.allocator in names and run.cell in old.cells and (run.allocator, run.cell) not in before))


# ---- Words. ---------------------------------------------------------------------------------------------------------


def _promise(threshold: float) -> str:
    return (f"; worse: shown to be worse by more than half the threshold of {threshold * 100:g} %, wrongly in at most "
            f"{detection.FALSE_ALARMS:.0%} of comparisons without a change")


def _tell_drift(console: Console, old: Results, new: Results, reference: str) -> None:
    drift = statistics.geometric_mean(
        new.median(cell, reference) / before for cell in new.cells.values()
        if cell.name in old.cells and not is_memory(cell.metric) and new.median(cell, reference)
        and (before := old.median(cell, reference)))
    if drift:
        style = "yellow" if abs(drift - 1) > _DRIFT else "dim"
        _print(console, f"{reference} itself took {drift:.2f} times as long in the new campaign", style)


def _show(console: Console, changes: list[Change], failures: list[tuple[str, str, str]], threshold: float) -> int:
    """The table, worst first; how many are worse."""
    told = [change for change in changes if change.verdict in statistics.BETTER + statistics.WORSE]
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for title in ("allocator", "where"):
        table.add_column(title, overflow="fold")
    for title in ("new / old", "reading"):
        table.add_column(title, justify="right", no_wrap=True)
    for name, cell, status in failures:
        table.add_row(name, cell, "", Text(f"newly {status}", style="red"))
    for change in sorted(told, key=lambda change: -change.factor):
        factor = Text(f"{number(change.factor)} [{number(change.low)}, {number(change.high)}]")
        style = "red" if change.verdict in statistics.WORSE else "green"
        table.add_row(change.allocator, change.where, factor, Text(change.verdict, style=style))
    if table.row_count:
        console.print(table)
    worse, better = (sum(change.verdict in words for change in told) for words in (statistics.WORSE, statistics.BETTER))
    even = sum(change.verdict == statistics.EVEN for change in changes)
    _print(console, f"{worse} worse, {len(failures)} newly failing, {better} better, {even} not distinguishable, "
                    f"{len(changes) - len(told) - even} not shown to be beyond half of {threshold * 100:g} %", "bold")
    return worse


def _tell_rounds(console: Console, changes: list[Change], threshold: float, paired: bool) -> None:
    """How many rounds the threshold asks for, if a single cell is to show it: the noise of these runs says so."""
    for memory in (False, True):
        needed = sorted(detection.rounds_needed(change.scatter, threshold, len(changes), paired)
                        for change in changes if change.memory == memory)
        if needed:
            _print(console, f"{'memory' if memory else 'time'}: a change of one cell alone by {threshold * 100:g} % is "
                            f"found with {1 - detection.MISSED:.0%} probability in {stdlib.median_low(needed)} rounds "
                            f"(half of the cells), {needed[-1]} (all)", "dim")


def _print(console: Console, line: str, style: str = "") -> None:
    # Broken at words for a person; in a file, one line stays one line.
    console.print(Text(line, style=style), soft_wrap=not console.is_terminal)
