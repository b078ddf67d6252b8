"""Shows a snapshot as tables and a picture, for 80 columns."""

from rich.console import Console
from rich.text import Text

from ..printing import head, in_bytes, in_number, in_percent, new_table, say
from .census import PAGE, Census, Change, Count
from .heap import Snapshot
from .leaks import Leaks
from .memory import printable
from .picture import LEGEND, rows

WHAT_LEAKS_CANNOT_KNOW = (
    "A reference that is hidden (compressed, combined with other bits, not aligned, to the end of a block, in memory that "
    "is shared, a device's or inaccessible) is not seen, so its block counts as lost; a word that looks like an address, or "
    "an old one in memory that is still in use, holds a block that nothing needs.")


def show(console: Console, snapshot: Snapshot, census: Census, top: int) -> None:
    how = "while it stood still" if snapshot.exact else "while it ran: what changed meanwhile is counted as it was found"
    say(console, f"{snapshot.title}, hmalloc {snapshot.layout.library}, read {how}")
    if snapshot.layout.copies > 1:
        say(console, f"note: {snapshot.layout.copies} copies of hmalloc are in use; this is the one in "
                     f"{printable(snapshot.layout.module.path)} at {snapshot.layout.module.start:#x}")
    if snapshot.changing:
        say(console, f"note: {in_number(snapshot.changing)} places were being changed, and are not counted (--stop)")
    _totals(console, snapshot, census)
    _classes(console, census)
    _owners(console, snapshot, census, top)
    _picture(console, snapshot, top)


def _totals(console: Console, snapshot: Snapshot, census: Census) -> None:
    console.print()
    table = new_table("bytes", "blocks")
    table.add_row(in_bytes(census.live_bytes), in_number(census.live_blocks), "live: the program holds them")
    for blocks, size, text in ((census.large_blocks, census.large_bytes, "of these above 32 KB"),
                               (census.huge_blocks, census.huge_bytes, "of these above 1 MB")):
        if blocks:
            table.add_row(in_bytes(size), in_number(blocks), text)
    if census.small.sampled:
        table.add_row("", in_number(census.small.sampled), "of these followed by a profile or a tracer, of up to 32 KB")
    table.add_row(in_bytes(census.cached_bytes), in_number(census.small.cached), "in caches of threads")
    pages = in_percent(census.small.pages * PAGE, census.small.bytes)
    for size, text in ((census.small.bytes, f"superblocks: in {pages} of their pages some block is in use"),
                       (census.free_dirty, "free slices that are resident"),
                       (census.free_clean, "free slices that have gone back to the system"),
                       (census.kept_bytes, "kept for the next huge blocks"), (census.metadata, "metadata of slices")):
        table.add_row(in_bytes(size), "", text)
    console.print(table)


_COLUMNS = ("superblocks", "live", "bytes", "cached", "free", "in use", "pages")


def _columns(count: Count) -> list[str]:
    return [in_number(count.superblocks), in_number(count.live), in_bytes(count.live_bytes), in_number(count.cached),
            in_number(count.free), in_percent(count.live_bytes + count.cached_bytes, count.bytes),
            in_percent(count.pages * PAGE, count.bytes)]


def _classes(console: Console, census: Census) -> None:
    if not census.classes:
        return
    head(console, "Classes: blocks; how much of the superblocks, and of their pages, is in use")
    table = new_table("size", *_COLUMNS)
    for size, count in sorted(census.classes.items()):
        table.add_row(str(size), *_columns(count))
    console.print(table)


def _owners(console: Console, snapshot: Snapshot, census: Census, top: int) -> None:
    head(console, "Heaps: whose superblocks they are, or were last")
    heaps = {heap.number: heap for heap in snapshot.heaps}
    order = sorted({*heaps, *census.owners}, key=lambda each: -census.owners.get(each, Count()).live_bytes)
    table = new_table("heap", "superblocks", "live", "bytes", "own caches", "in use", last="thread")
    for number in order[:top]:
        count, heap = census.owners.get(number, Count()), heaps.get(number)
        table.add_row("-" if number is None else str(number), in_number(count.superblocks), in_number(count.live),
                      in_bytes(count.live_bytes), in_bytes(heap.cached_bytes) if heap else "-",
                      in_percent(count.live_bytes + count.cached_bytes, count.bytes), Text(_whose(snapshot, number)))
    console.print(table)
    if len(order) > top:
        say(console, f"{len(order) - top} more (--top)", "dim")


def _whose(snapshot: Snapshot, number: int | None) -> str:
    heap = next((heap for heap in snapshot.heaps if heap.number == number), None)
    if heap is None:
        return "nobody's"
    if heap.thread:
        return heap.thread
    if heap.stranded:
        return "left behind by a fork"
    return "" if heap.live else "no thread"


def _picture(console: Console, snapshot: Snapshot, top: int) -> None:
    found = rows(snapshot)
    if not found:
        return
    least = sorted(sorted(found, key=lambda row: row.in_use)[:top], key=lambda row: row.start)
    which = f"the {top} of {len(found)} with least in use (--picture for all)" if len(found) > top else "by address"
    head(console, f"Chunks of 2 MB, {which}")
    say(console, LEGEND, "dim")
    for row in least:
        console.print(Text(f"{row.start:012x} {row.cells}"), soft_wrap=True)


def show_changes(console: Console, found: list[Change], before: Census, after: Census, top: int) -> None:
    table = new_table("bytes", "blocks", last="live blocks of this size")
    for row in found[:top]:
        table.add_row(_signed(row.bytes, in_bytes), _signed(row.blocks, in_number), row.what)
    blocks, size = after.live_blocks - before.live_blocks, after.live_bytes - before.live_bytes
    table.add_row(_signed(size, in_bytes), _signed(blocks, in_number),
                  f"all; there are {in_bytes(after.live_bytes)} in {in_number(after.live_blocks)} now")
    console.print(table)


def _signed(number: int, words: object) -> str:
    return f"{'+' if number > 0 else '-' if number < 0 else ''}{words(abs(number))}"


def show_leaks(console: Console, leaks: Leaks, top: int) -> None:
    if leaks.blocks == 0:
        head(console, f"No block is lost: something refers to each (searched: {in_bytes(leaks.searched)}).")
    else:
        head(console, f"Lost blocks, to which nothing refers that the program can reach: {in_number(leaks.blocks)} of "
                      f"{in_bytes(leaks.bytes)}")
        table = new_table("size", "blocks", "bytes", last="some of them (--block)")
        for leak in leaks.by_size[:top]:
            table.add_row(str(leak.size), in_number(leak.blocks), in_bytes(leak.bytes),
                          " ".join(f"{address:#x}" for address in leak.first))
        console.print(table)
        say(console, f"To {in_number(leaks.roots)} of them no other lost block refers, either "
                     f"(searched: {in_bytes(leaks.searched)}).")
        if len(leaks.by_size) > top:
            say(console, f"{len(leaks.by_size) - top} more sizes (--top)", "dim")
    if leaks.unread:
        say(console, f"note: {in_bytes(leaks.unread)} could not be read, or are not in the core file; to what only those "
                     "refer, nothing does")
    say(console, WHAT_LEAKS_CANNOT_KNOW, "dim")
