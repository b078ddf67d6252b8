"""hmalloc top: what a process allocates while it does it, on the whole terminal."""

import os
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ..errors import Failure
from ..printing import in_bytes, in_number, new_table
from . import census, gauges, layout
from .heap import Heap, Snapshot, take
from .process import ProcessMemory
from .system import find

_GAUGES = (("allocated", "the program holds it"), ("cached", "in caches of threads"),
           ("active", "superblocks and large blocks"), ("resident", "active, metadata, freed and kept"),
           ("retained", "mapped and unused"), ("mapped", "address space"))
_BAR = 16
_RATES = (("refills", "of caches", in_number), ("flushes", "of caches", in_number),
          ("cross_thread_frees", "blocks handed to another thread's heap", in_number), ("purged", "given back", in_bytes))


@dataclass(frozen=True)
class Look:
    when: float
    snapshot: Snapshot
    census: census.Census
    gauges: dict[str, int]

    def of_heap(self, number: int) -> Heap | None:
        return next((heap for heap in self.snapshot.heaps if heap.number == number), None)


def watch(what: str, every: float) -> None:
    console = Console(highlight=False)
    if not (sys.stdout.isatty() and sys.stdin.isatty()) or console.is_dumb_terminal:
        raise Failure("top: needs a terminal; without one: hmalloc inspect --every 1s PID")
    memory = ProcessMemory(find(what))
    try:
        found = layout.find(memory)
        first = before = now = _look(memory, found)
        with _keys(), Live(console=console, screen=True, auto_refresh=False) as live:
            while True:
                live.update(_page(memory.title, first, before, now, live.console.size.height), refresh=True)
                if _is_asked_to_end(every):
                    break
                try:
                    before, now = now, _look(memory, found)
                except Failure:
                    if memory.has_ended():
                        break
                    raise
        if memory.has_ended():
            print(f"hmalloc: {memory.title} has ended", file=sys.stderr)
    finally:
        memory.close()


def _look(memory: ProcessMemory, found: layout.Layout) -> Look:
    snapshot = take(memory, found)
    counted = census.count(snapshot)
    return Look(time.monotonic(), snapshot, counted, gauges.gauges(snapshot, counted))


@contextmanager
def _keys() -> Iterator[None]:
    """Keys are read at once; Ctrl-C is what it always is.  However this ends, the terminal is left as it was."""
    before = termios.tcgetattr(sys.stdin)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        tty.setcbreak(sys.stdin)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _is_asked_to_end(seconds: float) -> bool:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([sys.stdin], [], [], left)[0]:
            keys = os.read(sys.stdin.fileno(), 64)
            if keys in (b"", b"\x1b") or b"q" in keys.lower():  # an arrow begins with Escape, too
                return True
    return False


# ---- What it looks like. ---------------------------------------------------------------------------------------------


def _page(title: str, first: Look, before: Look, now: Look, height: int) -> RenderableType:
    watched = f"watched for {now.when - first.when:.0f} s"
    parts = [Text(f"{title}, hmalloc {now.snapshot.layout.library}, {watched}   q quits", "bold"),
             _totals(first, now), _rates(before, now)]
    room = max(height - 16, 4)
    parts += [_classes(first, now, room // 2), _heaps(before, now, room - room // 2)]
    return Group(*parts)


def _totals(first: Look, now: Look) -> Table:
    table = new_table("bytes", "change")
    largest = max(now.gauges["mapped"], 1)
    table.add_column("")
    for name, meaning in _GAUGES:
        share = round(_BAR * min(now.gauges[name] / largest, 1))
        table.add_row(in_bytes(now.gauges[name]), _signed(now.gauges[name] - first.gauges[name]), f"{name}: {meaning}",
                      Text("█" * share + "·" * (_BAR - share), "dim"))
    return table


def _rates(before: Look, now: Look) -> Table:
    seconds = max(now.when - before.when, 1e-9)
    table = new_table("a second")
    for name, meaning, words in _RATES:
        table.add_row(words(max(now.gauges[name] - before.gauges[name], 0) / seconds if now is not before else 0),
                      f"{name}: {meaning}")
    return table


def _classes(first: Look, now: Look, room: int) -> Table:
    counts, earlier = now.census.classes, first.census.classes
    table = new_table("size", "live", "bytes", "change", "cached", "in use")
    order = sorted(counts, key=lambda size: -counts[size].live_bytes)[:max(room - 1, 1)]
    for size in order:
        count, then = counts[size], earlier.get(size, census.Count())
        table.add_row(str(size), in_number(count.live), in_bytes(count.live_bytes),
                      _signed(count.live_bytes - then.live_bytes),
                      in_number(count.cached), f"{(count.live_bytes + count.cached_bytes) / max(count.bytes, 1):.0%}")
    return table


def _heaps(before: Look, now: Look, room: int) -> Table:
    seconds = max(now.when - before.when, 1e-9) if now is not before else 1.0
    table = new_table("heap", "live", "caches", "refills/s", "flushes/s", "handed over/s", last="thread")

    def rate(heap: Heap, name: str) -> float:
        then = before.of_heap(heap.number)
        return max(getattr(heap, name) - (getattr(then, name) if then else 0), 0) / seconds

    busy = sorted(now.snapshot.heaps, key=lambda heap: (-rate(heap, "refills") - rate(heap, "flushes"), heap.number))
    for heap in busy[:max(room - 1, 1)]:
        live = now.census.owners[heap.number].live_bytes if heap.number in now.census.owners else 0
        table.add_row(str(heap.number), in_bytes(live), in_bytes(heap.cached_bytes),
                      *(in_number(rate(heap, name)) for name in ("refills", "flushes", "foreign_frees")), heap.thread)
    return table


def _signed(size: int) -> str:
    return f"{'+' if size > 0 else '-' if size < 0 else ''}{in_bytes(abs(size))}"
