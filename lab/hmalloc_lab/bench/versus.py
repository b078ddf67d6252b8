"""Two campaigns, old and new: has anything become slower, fatter or broken?  For CI: the answer is an exit code.

The two were not interleaved: between them lie hours, and another mood of the machine.  So no times are compared but
ratios to an allocator that is the same library in both, round by round within each campaign: a change is (new / its
reference) / (old / its reference), with the bootstrap's 95 % interval of the quotient of the two medians.  A change of
the reference itself cannot be seen, nor one of the kernel that moves all allocators alike.

Only what is worse by more than the threshold with the whole interval counts.  A median beyond the threshold with an
interval that merely excludes 1 would be no proof: of some 2,400 comparisons of equal allocators about sixty exclude 1,
one or two of them by more than 5 %, and a CI that cries wolf is switched off.  What a single cell cannot prove but all
cells share shows in the mean over the cells, whose interval is narrow.
"""

import statistics as stdlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..errors import Failure
from . import statistics
from .results import Results
from .statistics import FEWEST, is_memory, round_ratios
from .tables import number

_MAY_DIFFER = {"hmalloc", "load before"}  # of the environment: what is compared, and what never is the same
_DRIFT = 0.2  # of the reference's own times, from which the machine is hardly the same


@dataclass(frozen=True)
class Change:
    """New divided by old."""

    allocator: str
    where: str
    factor: float
    low: float
    high: float
    memory: bool = False

    def verdict(self, threshold: float) -> str:
        if self.low > 1 + threshold:
            return statistics.FATTER if self.memory else statistics.SLOWER
        if self.high < 1 / (1 + threshold):
            return statistics.LEANER if self.memory else statistics.FASTER
        return statistics.EVEN if self.low <= 1 <= self.high else "within the threshold"


def compare(console: Console, old: Results, new: Results, allocators: Sequence[str] | None = None,
            threshold: float = 0.05) -> int:
    """0: nothing is worse; 1: something is; Failure (2): they cannot be compared."""
    reference = _reference(old, new)
    names = _common(old, new, reference, allocators)
    for line in _differences(old, new):
        _print(console, f"warning: {line}", "yellow")
    changes, few = _changes(old, new, names, reference)
    failures = _newly_failing(old, new, names)
    if not changes and not failures:
        raise Failure(f"nothing to compare: fewer than {FEWEST} common rounds in every cell" if few else
                      "nothing to compare: no cell was measured in both")
    changes += _means(changes, names)
    _legend(console, old, new, reference, threshold)
    worse = _show(console, changes, failures, threshold)
    if few:
        _print(console, f"{few} comparisons had fewer than {FEWEST} common rounds.", "dim")
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
             and row.kind != "floor" and (not wanted or name in wanted)]
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


def _changes(old: Results, new: Results, names: Sequence[str], reference: str) -> tuple[list[Change], int]:
    """And how many comparisons had too few rounds."""
    found, few = [], 0
    for cell in new.cells.values():
        for metric in dict.fromkeys((cell.metric, "vm_hwm_kb") if cell.counts_peak else (cell.metric,)):
            for name in names:
                before, after = (round_ratios(of.values(cell, name, metric), of.values(cell, reference, metric))
                                 for of in (old, new))
                if min(len(before), len(after)) >= FEWEST:
                    where = cell.name if metric == cell.metric else f"{cell.name}, peak"
                    found.append(_change(name, where, before, after, is_memory(metric)))
                elif before and after:
                    few += 1
    return found, few


def _change(name: str, where: str, before: list[float], after: list[float], memory: bool) -> Change:
    low, high = statistics.interval([after, before], lambda new, old, axis: np.median(new, axis) / np.median(old, axis))
    return Change(name, where, stdlib.median(after) / stdlib.median(before), low, high, memory)


def _means(changes: Iterable[Change], names: Iterable[str]) -> list[Change]:
    found = []
    for name in names:
        for memory in (False, True):
            factors = [change.factor for change in changes if change.allocator == name and change.memory == memory]
            mean = statistics.mean(factors)
            if mean and mean.cells >= FEWEST:
                where = f"mean of {mean.cells} {'memory' if memory else 'time'} ratios"
                found.append(Change(name, where, mean.value, mean.low, mean.high, memory))
    return found


def _newly_failing(old: Results, new: Results, names: Sequence[str]) -> list[tuple[str, str, str]]:
    """(allocator, cell, how it ends), where it did not fail before."""
    before = {(run.allocator, run.cell) for run in old.failures()}
    return list(dict.fromkeys(
        (run.allocator, run.cell, run.status) for run in new.failures()
        if run.allocator in names and run.cell in old.cells and (run.allocator, run.cell) not in before))


# ---- Words. ---------------------------------------------------------------------------------------------------------


def _legend(console: Console, old: Results, new: Results, reference: str, threshold: float) -> None:
    _print(console, f"new / old, each as its ratio to {reference} of the same campaign (the same library in both) "
                    f"[95 % interval]; worse: the whole interval above {1 + threshold:g}")
    drift = statistics.geometric_mean(
        new.median(cell, reference) / before for cell in new.cells.values()
        if cell.name in old.cells and not is_memory(cell.metric) and new.median(cell, reference)
        and (before := old.median(cell, reference)))
    if drift:
        style = "yellow" if abs(drift - 1) > _DRIFT else "dim"
        _print(console, f"{reference} itself took {drift:.2f} times as long in the new campaign", style)


def _show(console: Console, changes: list[Change], failures: list[tuple[str, str, str]], threshold: float) -> int:
    """The table, worst first; how many are worse."""
    verdicts = [(change, change.verdict(threshold)) for change in changes]
    told = [pair for pair in verdicts if pair[1] in statistics.BETTER + statistics.WORSE]
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for title in ("allocator", "where"):
        table.add_column(title, overflow="fold")
    for title in ("new / old", "reading"):
        table.add_column(title, justify="right", no_wrap=True)
    for name, cell, status in failures:
        table.add_row(name, cell, "", Text(f"newly {status}", style="red"))
    for change, verdict in sorted(told, key=lambda pair: -pair[0].factor):
        factor = Text(f"{number(change.factor)} [{number(change.low)}, {number(change.high)}]")
        style = "red" if verdict in statistics.WORSE else "green"
        table.add_row(change.allocator, change.where, factor, Text(verdict, style=style))
    if table.row_count:
        console.print(table)
    worse, better = (sum(verdict in words for _, verdict in told) for words in (statistics.WORSE, statistics.BETTER))
    even = sum(verdict == statistics.EVEN for _, verdict in verdicts)
    _print(console, f"{worse} worse, {len(failures)} newly failing, {better} better, {even} not distinguishable, "
                    f"{len(changes) - len(told) - even} within the threshold of {threshold * 100:g} %", "bold")
    return worse


def _print(console: Console, line: str, style: str = "") -> None:
    # Broken at words for a person; in a file, one line stays one line.
    console.print(Text(line, style=style), soft_wrap=not console.is_terminal)
