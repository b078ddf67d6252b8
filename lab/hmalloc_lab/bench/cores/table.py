"""The result as Markdown: lines moved for each malloc with its free, and which functions of hmalloc move them."""

from collections.abc import Iterator, Sequence

from .. import tables
from ..catalogue import Cell
from ..results import Results
from . import cells

SIMULATED = "**Simulated, not timed.**"
MOVES = """A *transfer* is a line that comes from another core's cache, an *upgrade* a write
that takes a line from others that share it."""
COUNTED = "transfers and upgrades of lines within malloc, free and the end of threads, for each malloc with its free"
_MODEL = """{simulated} Real threads run one at a time under QEMU's user emulation, {grain}
operations in a turn, the cores in turn. Every access of data goes through a model of coherence: MESI with a directory,
lines of 64 bytes, for each core one private cache of 1 MB with 16 ways, which the least recently used line leaves; two
sockets, each with half of the cores. {moves} The program sees so many CPUs, a clock that goes by instructions, and the
same random bytes in every run.

What the model leaves out: time, and so how long a lock is held and who waits for it (a turn ends between calls, so that
no lock is ever found taken); accesses that are in flight at once, prefetching, store buffers; shared caches; instruction
fetches; page tables and the kernel; restartable sequences, which the emulation does not have. And no core gets ahead of
the others: with more operations in a turn (`--grain`) caches of blocks run over or dry more often."""
IN_BRACKETS = "in brackets over the best of the others, if that is at least 0.01"
_MOST_FUNCTIONS = 6
_LEAST_SHOWN = 0.0005
_LEAST_COMPARED = 0.01

Grid = tuple[list[str], list[list[str]]]  # head, rows


def markdown(results: Results) -> str:
    of = results.campaign
    parts = [f"# Many cores, simulated, {of.started[:10]}", f"    {of.command}",
             model(results), "## Summary", summary(results)]
    for pattern, rows in by_pattern(results).items():
        parts += [f"## {pattern}", tables.table(*per_cores(results, rows)), meaning(rows[-1]),
                  tables.table(*details(results, rows[-1]))]
    parts += ["## Which functions of hmalloc move lines", _functions(results),
              "## Allocators", tables.allocators(results), "## Failures", tables.failures(results)]
    return "\n\n".join(parts) + "\n"


def model(results: Results) -> str:
    return _MODEL.format(simulated=SIMULATED, moves=MOVES, grain=results.campaign.cells[0].repeat["grain"])


def summary(results: Results) -> str:
    return f"Simulated: {COUNTED}; {IN_BRACKETS}. Columns: pattern, cores.\n\n" + tables.table(*with_ratios(results))


def with_ratios(results: Results) -> Grid:
    """Each pattern at its most cores."""
    last = _at_most_cores(results)
    return _head(last), [[name, *(_with_ratio(results, cell, name) for cell in last)] for name in _names(results)]


def of_each_pair(results: Results, metric: str) -> Grid:
    """The same of one metric."""
    last = _at_most_cores(results)
    return _head(last), [[name, *(_text(value(results, cell, name, metric)) for cell in last)] for name in _names(results)]


def _head(columns: Sequence[Cell]) -> list[str]:
    return ["allocator", *(f"{cell.point['pattern']}, {cell.threads}" for cell in columns)]


def _at_most_cores(results: Results) -> list[Cell]:
    return [rows[-1] for rows in by_pattern(results).values()]


def _names(results: Results) -> list[str]:
    return [row.name for row in results.campaign.allocators]


def by_pattern(results: Results) -> dict[str, list[Cell]]:
    found: dict[str, list[Cell]] = {}
    for cell in results.cells.values():
        found.setdefault(str(cell.point["pattern"]), []).append(cell)
    return found


def value(results: Results, cell: Cell, name: str, metric: str = cells.METRIC) -> float | None:
    return results.median(cell, name, metric)


def _text(number: float | None) -> str:
    return "-" if number is None else f"{number:.3f}" if number < 10 else f"{number:.1f}"


def _with_ratio(results: Results, cell: Cell, name: str) -> str:
    own = value(results, cell, name)
    others = [theirs for other in _names(results) if other != name
              and (theirs := value(results, cell, other)) is not None]
    if own is None or not others or min(others) < _LEAST_COMPARED:
        return _text(own)
    return f"{_text(own)} ({own / min(others):.2f})"


def per_cores(results: Results, row: list[Cell]) -> Grid:
    head = ["transfers and upgrades", *(str(cell.threads) for cell in row)]
    return head, [[name, *(_text(value(results, cell, name)) for cell in row)] for name in _names(results)]


_COLUMNS = {"transfers": "transfers", "upgrades": "upgrades", "far": "far", "locked": "locked", "hand_offs": "hand-offs",
            "fills": "fills", "instructions": "instructions", f"whole_{cells.METRIC}": "whole program",
            "whole_instructions": "instructions"}


def details(results: Results, cell: Cell) -> Grid:
    return (["for each pair", *_COLUMNS.values()],
            [[name, *(_text(value(results, cell, name, metric)) for metric in _COLUMNS)] for name in _names(results)])


def meaning(cell: Cell) -> str:
    """Of the columns."""
    return (f"On {cell.threads} cores. Far: of the transfers and upgrades, across the sockets. Locked: instructions; "
            "hand-offs: of the transfers and upgrades, by a locked one. Fills: lines from memory. Whole program: transfers "
            "and upgrades, and instructions, with what the program does between the calls.")


def _functions(results: Results) -> str:
    head, rows = functions(results)
    quoted = [[of, f"`{function}`", *numbers] for of, function, *numbers in rows]
    return tables.table(head, quoted, right_from=3) if rows else "None."


def functions(results: Results) -> Grid:
    """Of the row that is called hmalloc, at the most cores of each pattern."""
    return (["pattern, cores", "function", "line", "transfers", "upgrades"],
            [words for cell in _at_most_cores(results) for words in _functions_of(results, cell)])


def _functions_of(results: Results, cell: Cell) -> Iterator[list[str]]:
    for run in results.runs(cell.name, "hmalloc")[:1]:
        sites = sorted(run.metrics["sites"], key=lambda site: -(site[2] + site[3]))
        for function, whose, transfers, upgrades in sites[:_MOST_FUNCTIONS]:
            if transfers + upgrades >= _LEAST_SHOWN:
                yield [f"{cell.point['pattern']}, {cell.threads}", function, whose, _text(transfers), _text(upgrades)]
