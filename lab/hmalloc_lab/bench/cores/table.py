"""The result as Markdown: lines moved for each malloc with its free, and which functions of hmalloc move them."""

from collections.abc import Iterator

from .. import tables
from ..catalogue import Cell
from ..results import Results
from . import cells

_MODEL = """**Simulated, not timed.** Real threads run one at a time under QEMU's user emulation, {grain}
operations in a turn, the cores in turn. Every access of data goes through a model of coherence: MESI with a directory,
lines of 64 bytes, for each core one private cache of 1 MB with 16 ways, which the least recently used line leaves; two
sockets, each with half of the cores. A *transfer* is a line that comes from another core's cache, an *upgrade* a write
that takes a line from others that share it. The program sees so many CPUs, a clock that goes by instructions, and the
same random bytes in every run.

What the model leaves out: time, and so how long a lock is held and who waits for it (a turn ends between calls, so that
no lock is ever found taken); accesses that are in flight at once, prefetching, store buffers; shared caches; instruction
fetches; page tables and the kernel; restartable sequences, which the emulation does not have. And no core gets ahead of
the others: with more operations in a turn (`--grain`) caches of blocks run over or dry more often."""
_MOST_FUNCTIONS = 6
_LEAST_SHOWN = 0.0005
_LEAST_COMPARED = 0.01


def markdown(results: Results) -> str:
    of = results.campaign
    parts = [f"# Many cores, simulated, {of.started[:10]}", f"    {of.command}",
             _MODEL.format(grain=of.cells[0].repeat["grain"]), "## Summary", summary(results)]
    for pattern, rows in _by_pattern(results).items():
        parts += [f"## {pattern}", _per_cores(results, rows), _details(results, rows[-1])]
    parts += ["## Which functions of hmalloc move lines", _functions(results),
              "## Allocators", tables.allocators(results), "## Failures", tables.failures(results)]
    return "\n\n".join(parts) + "\n"


def summary(results: Results) -> str:
    """Each pattern at its most cores."""
    last = [rows[-1] for rows in _by_pattern(results).values()]
    rows = [[name, *(_with_ratio(results, cell, name) for cell in last)] for name in _names(results)]
    head = ["allocator", *(f"{cell.point['pattern']}, {cell.threads}" for cell in last)]
    return ("Simulated: transfers and upgrades of lines within malloc, free and the end of threads, for each malloc with "
            "its free; in brackets over the best of the others, if that is at least 0.01. Columns: pattern, cores.\n\n"
            + tables.table(head, rows))


def _names(results: Results) -> list[str]:
    return [row.name for row in results.campaign.allocators]


def _by_pattern(results: Results) -> dict[str, list[Cell]]:
    found: dict[str, list[Cell]] = {}
    for cell in results.cells.values():
        found.setdefault(str(cell.point["pattern"]), []).append(cell)
    return found


def _value(results: Results, cell: Cell, name: str, metric: str = cells.METRIC) -> float | None:
    return results.median(cell, name, metric)


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}" if value < 10 else f"{value:.1f}"


def _with_ratio(results: Results, cell: Cell, name: str) -> str:
    own = _value(results, cell, name)
    others = [value for other in _names(results) if other != name
              and (value := _value(results, cell, other)) is not None]
    if own is None or not others or min(others) < _LEAST_COMPARED:
        return _text(own)
    return f"{_text(own)} ({own / min(others):.2f})"


def _per_cores(results: Results, row: list[Cell]) -> str:
    head = ["transfers and upgrades", *(str(cell.threads) for cell in row)]
    return tables.table(head, [[name, *(_text(_value(results, cell, name)) for cell in row)] for name in _names(results)])


_COLUMNS = {"transfers": "transfers", "upgrades": "upgrades", "far": "far", "locked": "locked", "hand_offs": "hand-offs",
            "fills": "fills", "instructions": "instructions", f"whole_{cells.METRIC}": "whole program",
            "whole_instructions": "instructions"}


def _details(results: Results, cell: Cell) -> str:
    rows = [[name, *(_text(_value(results, cell, name, metric)) for metric in _COLUMNS)] for name in _names(results)]
    return (f"On {cell.threads} cores. Far: of the transfers and upgrades, across the sockets. Locked: instructions; "
            "hand-offs: of the transfers and upgrades, by a locked one. Fills: lines from memory. Whole program: transfers "
            "and upgrades, and instructions, with what the program does between the calls.\n\n"
            + tables.table(["for each pair", *_COLUMNS.values()], rows))


def _functions(results: Results) -> str:
    """Of the row that is called hmalloc, at the most cores of each pattern."""
    rows = [words for of_pattern in _by_pattern(results).values() for words in _functions_of(results, of_pattern[-1])]
    head = ["pattern, cores", "function", "line", "transfers", "upgrades"]
    return tables.table(head, rows, right_from=3) if rows else "None."


def _functions_of(results: Results, cell: Cell) -> Iterator[list[str]]:
    for run in results.runs(cell.name, "hmalloc")[:1]:
        sites = sorted(run.metrics["sites"], key=lambda site: -(site[2] + site[3]))
        for function, whose, transfers, upgrades in sites[:_MOST_FUNCTIONS]:
            if transfers + upgrades >= _LEAST_SHOWN:
                yield [f"{cell.point['pattern']}, {cell.threads}", f"`{function}`", whose, _text(transfers), _text(upgrades)]
