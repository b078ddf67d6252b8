"""Shows a map as tables, for 80 columns."""

import re
from collections import defaultdict
from dataclasses import dataclass

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from .advice import RESERVATIONS, Advice
from .document import heaviest
from .sites import Amount, Map, Site, Thread, place_of

_MOST_THREADS = 8      # that a matrix of them is readable with
_MOST_NAMES = 12       # of a row's threads
_FREEING_PLACES = 3    # of each site
_UNITS = ["B", "K", "M", "G", "T", "P", "E"]
_TIMES = ["ns", "us", "ms", "s"]


def show(console: Console, program: str, sharing: Map, given: list[Advice], top: int) -> None:
    _say(console, f"{program}: one sample in {_bytes(sharing.period)}; every figure is an estimate from samples")
    for remark in [*([sharing.missing] if sharing.missing else []), *sharing.remarks]:
        _say(console, f"note: {remark}")
    if not sharing.sites:
        _say(console, "There are no samples: the program allocated too little for this rate (--rate).")
        return
    _totals(console, sharing)
    _matrix(console, sharing)
    _places(console, "Places by bytes handed over", [site for site in sharing.sites if site.handed_over.bytes > 0][:top],
            {"handed over": lambda site: _bytes(site.handed_over.bytes), "of freed": _share_handed_over,
             "blocks": lambda site: _count(site.handed_over.objects), "mean": lambda site: _bytes(site.block_bytes)})
    by_allocated = sorted(sharing.sites, key=lambda site: -site.allocated.bytes)
    _places(console, "Places by bytes allocated", by_allocated[:top],
            {"allocated": lambda site: _bytes(site.allocated.bytes), "held": lambda site: _bytes(site.held.bytes),
             "blocks": lambda site: _count(site.allocated.objects), "mean": lambda site: _bytes(site.block_bytes)})
    _frees(console, sharing, top)
    _ages(console, sharing)
    _advice(console, given, top)


def _say(console: Console, line: str, style: str = "") -> None:
    # Broken at words for a person; in a file, one line stays one line.
    console.print(Text(line, style=style), soft_wrap=not console.is_terminal)


def _head(console: Console, title: str) -> None:
    console.print()
    _say(console, title, "bold")


def _table(*numbers: str, last: str = "") -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_header=any(numbers))
    for title in numbers:
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column(last, overflow="fold")
    return table


def _totals(console: Console, sharing: Map) -> None:
    console.print()
    handed_over, freed = sharing.total["handed_over"], sharing.total["freed"]
    table = _table("bytes", "blocks", "samples")
    for name, title in (("allocated", "allocated"), ("held", "held at the end"), ("freed", "freed")):
        amount = sharing.total[name]
        table.add_row(_bytes(amount.bytes), _count(amount.objects), str(amount.samples or ""), title)
    table.add_row(_bytes(handed_over.bytes), _count(handed_over.objects), str(handed_over.samples),
                  f"of these handed over: freed by another thread ({_share(handed_over.bytes, freed.bytes)})")
    console.print(table)


# ---- Threads. -------------------------------------------------------------------------------------------------------


@dataclass
class _Row:
    name: str
    members: list[int]  # indices of threads


def _matrix(console: Console, sharing: Map) -> None:
    if not sharing.matrix:
        _head(console, "Nothing was freed that had been sampled.")
        return
    rows = _rows(sharing.threads)
    row_of = {member: at for at, row in enumerate(rows) for member in row.members}
    cells = defaultdict(Amount)
    within = defaultdict(float)
    for (by, freer), amount in sharing.matrix.items():
        cells[row_of[by], row_of[freer]].add(amount.objects, amount.bytes, amount.samples)
        if row_of[by] == row_of[freer] and by != freer:
            within[row_of[by]] += amount.bytes
    _head(console, "Threads: rows allocate, columns free; bytes")
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column("", overflow="fold")
    for at in range(len(rows)):
        table.add_column(str(at + 1), justify="right", no_wrap=True)
    for by, row in enumerate(rows):
        table.add_row(Text(f"{by + 1} {row.name}"), *[_bytes(cells[by, freer].bytes) if (by, freer) in cells else "-"
                                                     for freer in range(len(rows))])
    console.print(table)
    for at, row in enumerate(rows):
        if len(row.members) > 1:
            members = sorted((sharing.threads[member] for member in row.members), key=lambda thread: thread.id)
            names = ", ".join(_title(member, True) for member in members[:_MOST_NAMES])
            more = f" and {len(members) - _MOST_NAMES} more" if len(members) > _MOST_NAMES else ""
            passed = f"; {_bytes(within[at])} went from one of them to another" if within[at] else ""
            _say(console, f"{at + 1} are {names}{more}{passed}.", "dim")


def _rows(threads: list[Thread]) -> list[_Row]:
    """A row for each thread; where that are too many, one for those that differ in their number only, and if need be one
    for all that have least."""
    if len(threads) <= _MOST_THREADS:
        names = [thread.name for thread in threads]
        return [_Row(_title(thread, names.count(thread.name) > 1), [at]) for at, thread in enumerate(threads)]
    alike = defaultdict(list)
    for at, thread in enumerate(threads):
        alike[re.sub(r"\d+", "*", thread.name)].append(at)
    rows = [_Row(f"{pattern} ({_counted(threads, members)})" if len(members) > 1 else threads[members[0]].name, members)
            for pattern, members in alike.items()]
    if len(rows) > _MOST_THREADS:
        rest = [member for row in rows[_MOST_THREADS - 1:] for member in row.members]
        rows[_MOST_THREADS - 1:] = [_Row(f"others ({_counted(threads, rest)})", rest)]
    return rows


def _counted(threads: list[Thread], members: list[int]) -> str:
    """A row without a number is of several."""
    return f"{len(members)} threads{'' if all(threads[member].id for member in members) else ' and more'}"


def _title(thread: Thread, with_number: bool) -> str:
    return f"{thread.name} ({thread.id})" if with_number and thread.id else thread.name


# ---- Places. --------------------------------------------------------------------------------------------------------


def _places(console: Console, title: str, sites: list[Site], columns: dict) -> None:
    if not sites:
        return
    _head(console, title)
    table = _table(*columns, last="place")
    for site in sites:
        table.add_row(*[value(site) for value in columns.values()], Text(place_of(site.frame)))
    console.print(table)


def _share_handed_over(site: Site) -> str:
    return _share(site.handed_over.bytes, site.freed.bytes)


def _frees(console: Console, sharing: Map, top: int) -> None:
    sites = [site for site in sharing.sites if site.handed_over.bytes > 0][:top]
    if not sites:
        return
    _head(console, "Where handed-over blocks are freed")
    for site in sites:
        _say(console, place_of(site.frame))
        freed = [(place, amount) for (place, by_other), amount in heaviest(site) if by_other]
        table = _table("", "")
        for place, amount in freed[:_FREEING_PLACES]:
            table.add_row(_bytes(amount.bytes), _share(amount.bytes, site.handed_over.bytes), Text(place))
        if rest := freed[_FREEING_PLACES:]:
            size = sum(amount.bytes for _, amount in rest)
            table.add_row(_bytes(size), _share(size, site.handed_over.bytes), f"{len(rest)} more places")
        console.print(Padding(table, (0, 0, 0, 2), expand=False))


def _ages(console: Console, sharing: Map) -> None:
    ages = defaultdict(Amount)
    for site in sharing.sites:
        for age, amount in site.ages.items():
            ages[age].add(amount.objects, amount.bytes, amount.samples)
    if not ages:
        return
    _head(console, "How old the blocks were that were freed")
    table = _table("bytes", "share", "blocks", last="age")
    total = sharing.total["freed"].bytes
    for age, amount in sorted(ages.items()):
        span = f"{_time(age)} to {_time(age * 10)}" if age else "under 1 us"
        table.add_row(_bytes(amount.bytes), _share(amount.bytes, total), _count(amount.objects), span)
    console.print(table)


def _advice(console: Console, given: list[Advice], top: int) -> None:
    _head(console, "Advice" if given else "Advice: none, no place has the evidence for it.")
    for each in given[:top]:
        _say(console, f"- {each.text}")
    if len(given) > top:
        _say(console, f"- {len(given) - top} more (--top)")
    for kind, text in RESERVATIONS.items():
        if any(each.kind == kind for each in given):
            _say(console, text, "dim")


# ---- Numbers. -------------------------------------------------------------------------------------------------------


def _bytes(count: float) -> str:
    at = 0
    while count >= 999.5 and at + 1 < len(_UNITS):
        count /= 1024
        at += 1
    return f"{count:.3g}{_UNITS[at]}" if count < 999.5 else f"{count:.0f}{_UNITS[at]}"


def _count(count: float) -> str:
    return f"{count:,.0f}" if count < 1e7 else f"{count:.3g}".replace("e+0", "e").replace("e+", "e")


def _share(part: float, whole: float) -> str:
    """A per cent that is all or nothing only where it is."""
    if not whole:
        return "-"
    rounded = f"{part / whole:.0%}"
    return {"0%": "<1%", "100%": ">99%"}.get(rounded, rounded) if 0 < part < whole else rounded


def _time(nanoseconds: int) -> str:
    at = 0
    while nanoseconds >= 1000 and at + 1 < len(_TIMES):
        nanoseconds //= 1000
        at += 1
    return f"{nanoseconds} {_TIMES[at]}"
