"""What an address is, and what lies around it."""

import struct
from collections.abc import Iterator

from .heap import CACHED, FREE, LIVE, SAMPLED, Snapshot, Superblock
from .memory import Memory, Unreadable, printable

_STATES = {FREE: "free", LIVE: "live", CACHED: "cached", SAMPLED: "live and sampled"}
_NEIGHBOURS = 2
_BYTES = 64


def describe(memory: Memory, snapshot: Snapshot, address: int) -> Iterator[str]:
    """Lines of text."""
    if superblock := snapshot.superblock_at(address):
        yield from _of_superblock(superblock, address)
        at = (address - superblock.start) // superblock.size
        if 0 <= at < len(superblock.states):
            yield from _content(memory, snapshot, superblock.start + at * superblock.size, superblock.size)
        return
    for run in [*snapshot.runs, *snapshot.cached_runs]:
        if run.start <= address < run.start + run.length:
            state = "live" if run in snapshot.runs else "cached"
            yield f"{address:#x}: {_place(address, run.start)} a large block of {run.length} bytes, {state}"
            yield from _content(memory, snapshot, run.start, run.length)
            return
    for each in snapshot.huge:
        if each.start <= address < each.start + each.length:
            behind = address - each.start - each.size
            where = _place(address, each.start) if behind < 0 else f"{behind} bytes behind the end of"
            yield f"{address:#x}: {where} a huge block of {each.size} bytes, live"
            yield from _content(memory, snapshot, each.start, each.size)
            return
    yield f"{address:#x}: {_elsewhere(memory, snapshot, address)}"


def _place(address: int, start: int) -> str:
    return "the start of" if address == start else f"{address - start} bytes into"


def _of_superblock(superblock: Superblock, address: int) -> Iterator[str]:
    owner = "no heap" if superblock.owner is None else f"heap {superblock.owner}"
    what = f"superblock at {superblock.base:#x}, held last by {owner}: " \
           f"{superblock.live} of {len(superblock.states)} blocks live"
    at = (address - superblock.start) // superblock.size
    if not 0 <= at < len(superblock.states):
        yield f"{address:#x}: in no block, at the {'start' if at < 0 else 'end'} of a {what}"
        return
    start = superblock.start + at * superblock.size
    yield f"{address:#x}: {_place(address, start)} a block of {superblock.size} bytes, {_STATES[superblock.states[at]]}"
    yield f"  block {at} of a {what}"
    for other in range(max(at - _NEIGHBOURS, 0), min(at + _NEIGHBOURS + 1, len(superblock.states))):
        mark = "->" if other == at else "  "
        yield f"  {mark} {superblock.start + other * superblock.size:#x}  {_STATES[superblock.states[other]]}"


def _content(memory: Memory, snapshot: Snapshot, start: int, size: int) -> Iterator[str]:
    for at in range(start, start + min(size, _BYTES), 16):
        try:
            data = memory.read(at, 16)
        except Unreadable:
            yield f"  {at:#x}  cannot be read"
            return
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in data)
        refers = [f"{word:#x} is {short}" for word in struct.unpack("<QQ", data) if (short := _short(snapshot, word))]
        yield f"  {at:#x}  {data[:8].hex(' ')}  {data[8:].hex(' ')}  {text}"
        yield from (f"    {each}" for each in refers)


def _short(snapshot: Snapshot, address: int) -> str | None:
    if superblock := snapshot.superblock_at(address):
        at = (address - superblock.start) // superblock.size
        if 0 <= at < len(superblock.states):
            return f"{_place(address, superblock.start + at * superblock.size)} a block of {superblock.size} bytes, " \
                   f"{_STATES[superblock.states[at]]}"
    for each in [*((run.start, run.length) for run in snapshot.runs), *((huge.start, huge.size) for huge in snapshot.huge)]:
        if each[0] <= address < each[0] + each[1]:
            return f"{_place(address, each[0])} a block of {each[1]} bytes, live"
    return None


def _elsewhere(memory: Memory, snapshot: Snapshot, address: int) -> str:
    rows = snapshot.layout
    if any(each.start <= address < each.start + each.length for each in snapshot.kept):
        return "no block; kept for the next huge block"
    if any(start <= address < start + rows["region.metadata"] for start in snapshot.regions):
        return "no block; metadata of the allocator's"
    for chunk in snapshot.chunks:
        if chunk.start <= address < chunk.start + rows["chunk.bytes"]:
            at = (address - chunk.start) // rows["slice.bytes"]
            return f"no block; in a free slice, {'resident' if chunk.dirty >> at & 1 else 'given back'}"
    if any(start <= address < start + rows["region.bytes"] for start in snapshot.regions):
        return "no block; in a chunk of the allocator's that is not in use"
    if any(start <= address < end for start, end in snapshot.own):
        return "no block; the allocator's own memory"
    mapping = memory.mapping_of(address)
    if mapping is None:
        return "nothing is mapped there"
    thread = next((each for each in memory.threads if each.stack in mapping and mapping.path in ("", "[stack]")), None)
    if thread and address >= thread.stack:
        return f"no block; perhaps on the stack of thread {thread.number} ({thread.name})"
    return f"no block of hmalloc's; in {printable(mapping.path) or 'a mapping without a name'} " \
           f"({mapping.start:x}-{mapping.end:x} {mapping.rights})"
