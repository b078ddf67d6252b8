"""hmalloc inspect: what lies in the heap of a process or a core file, seen from outside."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from ..errors import Failure
from ..printing import head, in_time, say
from ..report import check_writable
from . import census, document, layout, picture, places, show
from .core import CoreMemory
from .heap import Snapshot, take
from .leaks import Leaks, Search
from .memory import Memory
from .process import ProcessMemory


@dataclass(frozen=True)
class Wanted:
    stop: bool = False
    leaks: bool = False
    block: int | None = None
    every: float = 0.0
    diff: bool = False
    top: int = 16
    json: Path | None = None
    blocks: Path | None = None
    picture: Path | None = None


def address(text: str) -> int | None:
    if not text:
        return None
    try:
        found = int(text, 16)
    except ValueError:
        found = -1
    if not 0 <= found < 1 << 64:
        raise Failure(f"--block {text}: not an address (0x7f0012345670)")
    return found


def inspect(what: str, wanted: Wanted) -> None:
    for path in (wanted.json, wanted.blocks, wanted.picture):
        if path:
            check_writable(path)
    console = Console(highlight=False)
    memory = _open(what)
    try:
        if wanted.every:
            _watch(console, memory, wanted)
        else:
            _look(console, memory, wanted)
    finally:
        memory.close()


def _open(what: str) -> Memory:
    if what.isdecimal():
        return ProcessMemory(int(what))
    if not Path(what).exists():
        raise Failure(f"{what}: neither the number of a process nor a core file")
    return CoreMemory(Path(what))


@contextmanager
def _stopped(memory: Memory, wanted: Wanted) -> Iterator[None]:
    with memory.standing_still() if _stops(memory, wanted) else nullcontext():
        yield


def _stops(memory: Memory, wanted: Wanted) -> bool:
    return isinstance(memory, ProcessMemory) and (wanted.stop or wanted.leaks)


def _look(console: Console, memory: Memory, wanted: Wanted) -> None:
    leaks: Leaks | None = None
    lines: list[str] = []
    begin = time.monotonic_ns()
    with _stopped(memory, wanted):
        snapshot = take(memory, layout.find(memory))
        if wanted.leaks:
            leaks = Search(memory, snapshot).run()
        if wanted.block is not None:
            lines = [*places.describe(memory, snapshot, wanted.block)]
        if memory.has_ended():
            raise Failure(f"{memory.title} has ended")
    # From here on the program may run: what is shown has been read.
    stopped_ns = time.monotonic_ns() - begin
    found = census.count(snapshot)
    if wanted.block is not None:
        for line in lines:
            say(console, line)
    else:
        show.show(console, snapshot, found, wanted.top)
    if leaks:
        show.show_leaks(console, leaks, wanted.top)
    if _stops(memory, wanted):
        say(console, f"The process stood still for {in_time(stopped_ns)}.", "dim")
    _write(wanted.json, lambda: json.dumps(document.document(snapshot, found, leaks), indent=1) + "\n")
    _write(wanted.blocks, lambda: "".join(document.blocks(snapshot)))
    _write(wanted.picture, lambda: picture.svg(snapshot))


def _write(path: Path | None, text: Callable[[], str]) -> None:
    try:
        if path:
            path.write_text(text(), encoding="utf-8")
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}", 1) from error


def _watch(console: Console, memory: Memory, wanted: Wanted) -> None:
    """Until the program ends, or whoever watches has seen enough."""
    found = layout.find(memory)
    before, looks = _counted(memory, found, wanted), 1
    show.show(console, before[0], before[1], wanted.top)
    while True:
        time.sleep(wanted.every)
        try:
            now = _counted(memory, found, wanted)
        except Failure:
            if not memory.has_ended():
                raise
            print(f"hmalloc: {memory.title} has ended", file=sys.stderr)
            return
        looks += 1
        head(console, f"{time.strftime('%H:%M:%S')}, look {looks}"
                      f"{': what has changed since the one before' if wanted.diff else ''}")
        if wanted.diff:
            show.show_changes(console, census.changes(before[1], now[1]), before[1], now[1], wanted.top)
        else:
            show.show(console, now[0], now[1], wanted.top)
        sys.stdout.flush()
        before = now


def _counted(memory: Memory, found: layout.Layout, wanted: Wanted) -> tuple[Snapshot, census.Census]:
    with _stopped(memory, wanted):
        snapshot = take(memory, found)
    return snapshot, census.count(snapshot)
