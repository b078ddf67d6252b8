"""Shows a map as tables, for 80 columns."""

import re
from collections import defaultdict
from dataclasses import dataclass

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..printing import head, in_bytes, in_number, in_percent, in_time, new_table, say
from .advice import RESERVATIONS, Advice
from .document import heaviest
from .sites import Amount, Map, Site, Thread, place_of

_MOST_THREADS = 8      # that a matrix of them is readable with
_MOST_NAMES = 12       # of a row's threads
_FREEING_PLACES = 3    # of each site


def show(console: Console, program: str, sharing: Map, given: list[Advice], top: int) -> None:
    say(console, f"{program}: one sample in {in_bytes(sharing.period)}; every figure is an estimate from samples")
    for remark in [*([sharing.missing] if sharing.missing else []), *sharing.remarks]:
        say(console, f"note: {remark}")
    if not sharing.sites:
        say(console, "There are no samples: the program allocated too little for this rate (--rate).")
        return
    _totals(console, sharing)
    _matrix(console, sharing)
    _places(console, "Places by bytes handed over", [site for site in sharing.sites if site.handed_over.bytes > 0][:top],
            {"handed over": lambda site: in_bytes(site.handed_over.bytes), "of freed": _share_handed_over,
             "blocks": lambda site: in_number(site.handed_over.objects), "mean": lambda site: in_bytes(site.block_bytes)})
    by_allocated = sorted(sharing.sites, key=lambda site: -site.allocated.bytes)
    _places(console, "Places by bytes allocated", by_allocated[:top],
            {"allocated": lambda site: in_bytes(site.allocated.bytes), "held": lambda site: in_bytes(site.held.bytes),
             "blocks": lambda site: in_number(site.allocated.objects), "mean": lambda site: in_bytes(site.block_bytes)})
    _frees(console, sharing, top)
    _ages(console, sharing)
    _advice(console, given, top)


def _totals(console: Console, sharing: Map) -> None:
    console.print()
    handed_over, freed = sharing.total["handed_over"], sharing.total["freed"]
    table = new_table("bytes", "blocks", "samples")
    for name, title in (("allocated", "allocated"), ("held", "held at the end"), ("freed", "freed")):
        amount = sharing.total[name]
        table.add_row(in_bytes(amount.bytes), in_number(amount.objects), str(amount.samples or ""), title)
    table.add_row(in_bytes(handed_over.bytes), in_number(handed_over.objects), str(handed_over.samples),
                  f"of these handed over: freed by another thread ({in_percent(handed_over.bytes, freed.bytes)})")
    console.print(table)


# ---- Threads. -------------------------------------------------------------------------------------------------------


@dataclass
class _Row:
    name: str
    members: list[int]  # indices of threads


def _matrix(console: Console, sharing: Map) -> None:
    if not sharing.matrix:
        head(console, "Nothing was freed that had been sampled.")
        return
    rows = _rows(sharing.threads)
    row_of = {member: at for at, row in enumerate(rows) for member in row.members}
    cells = defaultdict(Amount)
    within = defaultdict(float)
    for (by, freer), amount in sharing.matrix.items():
        cells[row_of[by], row_of[freer]].add(amount.objects, amount.bytes, amount.samples)
        if row_of[by] == row_of[freer] and by != freer:
            within[row_of[by]] += amount.bytes
    head(console, "Threads: rows allocate, columns free; bytes")
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column("", overflow="fold")
    for at in range(len(rows)):
        table.add_column(str(at + 1), justify="right", no_wrap=True)
    for by, row in enumerate(rows):
        table.add_row(Text(f"{by + 1} {row.name}"), *[in_bytes(cells[by, freer].bytes) if (by, freer) in cells else "-"
                                                     for freer in range(len(rows))])
    console.print(table)
    for at, row in enumerate(rows):
        if len(row.members) > 1:
            members = sorted((sharing.threads[member] for member in row.members), key=lambda thread: thread.id)
            names = ", ".join(_title(member, True) for member in members[:_MOST_NAMES])
            more = f" and {len(members) - _MOST_NAMES} more" if len(members) > _MOST_NAMES else ""
            passed = f"; {in_bytes(within[at])} went from one of them to another" if within[at] else ""
            say(console, f"{at + 1} are {names}{more}{passed}.", "dim")


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
    head(console, title)
    table = new_table(*columns, last="place")
    for site in sites:
        table.add_row(*[value(site) for value in columns.values()], Text(place_of(site.frame)))
    console.print(table)


def _share_handed_over(site: Site) -> str:
    return in_percent(site.handed_over.bytes, site.freed.bytes)


def _frees(console: Console, sharing: Map, top: int) -> None:
    sites = [site for site in sharing.sites if site.handed_over.bytes > 0][:top]
    if not sites:
        return
    head(console, "Where handed-over blocks are freed")
    for site in sites:
        say(console, place_of(site.frame))
        freed = [(place, amount) for (place, by_other), amount in heaviest(site) if by_other]
        table = new_table("", "")
        for place, amount in freed[:_FREEING_PLACES]:
            table.add_row(in_bytes(amount.bytes), in_percent(amount.bytes, site.handed_over.bytes), Text(place))
        if rest := freed[_FREEING_PLACES:]:
            size = sum(amount.bytes for _, amount in rest)
            table.add_row(in_bytes(size), in_percent(size, site.handed_over.bytes), f"{len(rest)} more places")
        console.print(Padding(table, (0, 0, 0, 2), expand=False))


def _ages(console: Console, sharing: Map) -> None:
    ages = defaultdict(Amount)
    for site in sharing.sites:
        for age, amount in site.ages.items():
            ages[age].add(amount.objects, amount.bytes, amount.samples)
    if not ages:
        return
    head(console, "How old the blocks were that were freed")
    table = new_table("bytes", "share", "blocks", last="age")
    total = sharing.total["freed"].bytes
    for age, amount in sorted(ages.items()):
        span = f"{in_time(age)} to {in_time(age * 10)}" if age else "under 1 us"
        table.add_row(in_bytes(amount.bytes), in_percent(amount.bytes, total), in_number(amount.objects), span)
    console.print(table)


def _advice(console: Console, given: list[Advice], top: int) -> None:
    head(console, "Advice" if given else "Advice: none, no place has the evidence for it.")
    for each in given[:top]:
        say(console, f"- {each.text}")
    if len(given) > top:
        say(console, f"- {len(given) - top} more (--top)")
    for kind, text in RESERVATIONS.items():
        if any(each.kind == kind for each in given):
            say(console, text, "dim")
