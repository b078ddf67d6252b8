"""The table of replayed traces: what each allocator needed for the same calls in the same order."""

from dataclasses import dataclass

from ..bench.results import Results


@dataclass(frozen=True)
class Line:
    """One quantity of one trace, by allocator."""

    title: str
    values: dict[str, float | None]
    more_is_better: bool = False

    @property
    def best(self) -> float | None:
        known = [value for value in self.values.values() if value is not None]
        return (max if self.more_is_better else min)(known, default=None)


@dataclass(frozen=True)
class Trace:
    name: str
    cell: str
    in_use: float | None  # U in bytes: the same for all, it is the program's
    lines: list[Line]


def traces(results: Results) -> list[Trace]:
    found = []
    for cell in results.select("replay"):
        def medians(metric: str, cell=cell) -> dict[str, float | None]:
            return {name: results.median(cell, name, metric) for name in results.allocators}

        in_use, held, times = medians("max_in_use"), medians("max_allocated"), medians("ns_per_op")
        lines = [Line("A, MB", _each(held, lambda name, value: value / 2**20)),
                 Line("A/U", _each(held, lambda name, value, used=in_use: value / used[name] if used[name] else None)),
                 Line("million ops/s", _each(times, lambda name, value: 1e3 / value if value else None), True)]
        lines = [line for line in lines if line.best is not None]
        if lines:
            live = [value for value in in_use.values() if value]
            found.append(Trace(str(cell.point.get("trace", "")), cell.name, max(live, default=None), lines))
    return found


def served(found: list[Trace]) -> list[str]:
    """The allocators that replayed any of them."""
    lines = [line for trace in found for line in trace.lines]
    return [name for name in (lines[0].values if lines else ()) if any(line.values[name] is not None for line in lines)]


def _each(values: dict[str, float | None], change) -> dict[str, float | None]:
    return {name: None if value is None else change(name, value) for name, value in values.items()}
