"""What lies in a heap: every block with its state, read by the record of the layout (layout.py) from outside."""

import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from ..errors import Failure
from .layout import Layout
from .memory import Memory, Unreadable

FREE, LIVE, CACHED, SAMPLED = 0, 1, 2, 3
"""A block's state, as it is told here: CACHED in every library, and SAMPLED is live, too."""

_NO_STATE = 255
_TRIES = 5
_MOST_HEAPS, _MOST_REGIONS, _MOST_SLABS = 1 << 20, 1 << 22, 1 << 22


class Damaged(Exception):
    """The heap says what cannot be."""


@dataclass
class Superblock:
    start: int
    """Of its first block."""
    base: int
    """Of its first slice."""
    length: int
    size: int
    """Of a block."""
    owner: int | None
    """The number of the heap that held it last."""
    states: bytearray

    def count(self, state: int) -> int:
        return self.states.count(state)

    @property
    def live(self) -> int:
        return self.count(LIVE) + self.count(SAMPLED)

    def indices(self, *states: int) -> np.ndarray:
        """Of its blocks in one of these states."""
        return np.flatnonzero(np.isin(np.frombuffer(self.states, np.uint8), states))


@dataclass(frozen=True)
class Run:
    """Slices of a block above 32 KB."""

    start: int
    length: int


@dataclass(frozen=True)
class Huge:
    """A block above 1 MB, or what was one and is kept."""

    start: int
    size: int
    length: int
    """Of its extent."""
    slack: int = 0
    """What is kept behind the block."""


@dataclass
class Heap:
    address: int
    number: int
    live: bool
    """Whether a thread has it."""
    stranded: bool
    """Left behind by a fork: of a thread that the child does not have."""
    refills: int
    flushes: int
    foreign_frees: int
    thread: str = ""
    """Its name and number, if they are known."""
    cached: int = 0
    cached_bytes: int = 0


@dataclass(frozen=True)
class Chunk:
    start: int
    free: int
    """Bit i: slice i is free."""
    dirty: int
    """Bit i: it is free, and resident."""
    guards: int
    """Bit i: it is inaccessible, and nobody's."""
    metadata: int
    """So many slices at its start."""


@dataclass
class Snapshot:
    title: str
    layout: Layout
    exact: bool
    superblocks: list[Superblock] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    cached_runs: list[Run] = field(default_factory=list)
    huge: list[Huge] = field(default_factory=list)
    kept: list[Huge] = field(default_factory=list)
    heaps: list[Heap] = field(default_factory=list)
    chunks: list[Chunk] = field(default_factory=list)
    regions: list[int] = field(default_factory=list)
    own: list[tuple[int, int]] = field(default_factory=list)
    """Other memory of the allocator's: where it begins and ends."""
    mapped: int = 0
    """Bytes of regions, extents and what the program's own heaps are in."""
    own_heaps: int = 0
    """Of the program's own: those that are live."""
    own_places: int = 0
    """So many there were at once."""
    counters: dict[str, int] = field(default_factory=dict)
    """Those of the whole process."""
    changing: int = 0
    """What could not be read because the program was changing it."""

    def superblock_at(self, address: int) -> Superblock | None:
        return next((each for each in self.superblocks if each.base <= address < each.base + each.length), None)


def take(memory: Memory, layout: Layout) -> Snapshot:
    """A process that runs may change a list while it is read; then it is tried again."""
    tries = 1 if memory.stands_still else _TRIES
    while True:
        try:
            return _Reader(memory, layout).take()
        except (Damaged, Unreadable) as error:
            tries -= 1
            if memory.has_ended():
                raise Failure(f"{memory.title} has ended") from error
            if tries == 0:
                why = "" if memory.stands_still else "; or it changed too much while it was read: try --stop"
                raise Failure(f"{memory.title}: its heap is damaged: {error}{why}", 1) from error


class _Reader:
    def __init__(self, memory: Memory, layout: Layout) -> None:
        self.memory, self.layout = memory, layout
        self.snapshot = Snapshot(memory.title, layout, memory.stands_still)
        self.by_slice: dict[int, Superblock] = {}
        self.heap_of_shelf: dict[int, Heap] = {}
        known = {layout[f"state.{name}"]: state for name, state in
                 (("free", FREE), ("taken", LIVE), ("cached", CACHED), ("sampled", SAMPLED), ("own", LIVE))}
        self.state_of = bytes(known.get(each, _NO_STATE) for each in range(256))

    def take(self) -> Snapshot:
        self._heaps()
        self._slices()
        for heap in self.snapshot.heaps:
            if heap.stranded:
                # Left as it was at the fork, perhaps in the middle of a change.
                with suppress(Damaged, Unreadable):
                    self._caches(heap)
                continue
            self._tolerating(lambda heap=heap: self._caches(heap))
            self._tolerating(lambda heap=heap: self._kept_runs(heap))
        self._extents()
        self._own_heaps()
        self._own_memory()
        self.snapshot.counters = {name.removeprefix("counter."): self.memory.word(place)
                                  for name, place in self.layout.rows.items() if name.startswith("counter.")}
        self.snapshot.exact &= self.memory.stands_still  # somebody may have let it go on
        return self.snapshot

    def _tolerating(self, read: Callable[[], None]) -> None:
        """What is in the middle of a change is passed over, unless nothing can be."""
        try:
            read()
        except (Damaged, Unreadable):
            if self.snapshot.exact:
                raise
            self.snapshot.changing += 1

    def _number(self, data: bytes, name: str, size: int = 8) -> int:
        at = self.layout[name]
        return int.from_bytes(data[at:at + size], "little")

    # ---- Heaps. ------------------------------------------------------------------------------------------------------

    def _heaps(self) -> None:
        rows, seen = self.layout, set()
        size = max(rows[name] for name in ("heap.refills", "heap.flushes", "heap.foreign_frees", "heap.stranded")) + 8
        address = self.memory.word(rows["heaps"])
        while address != 0:
            if address in seen or len(seen) > _MOST_HEAPS:
                raise Damaged(f"the list of heaps comes back to {address:#x}")
            seen.add(address)
            data = self.memory.read(address, size)
            heap = Heap(address, self._number(data, "heap.number", 4), bool(self._number(data, "heap.live", 1)),
                        bool(self._number(data, "heap.stranded", 1)), self._number(data, "heap.refills"),
                        self._number(data, "heap.flushes"), self._number(data, "heap.foreign_frees"))
            thread = self._number(data, "heap.thread", 4)
            if heap.live and not heap.stranded and thread != 0:
                heap.thread = self.memory.thread(thread)
            self.snapshot.heaps.append(heap)
            self.heap_of_shelf[address + rows["heap.shelf"]] = heap
            address = self._number(data, "heap.next")
        self.snapshot.heaps.sort(key=lambda heap: heap.number)

    def _caches(self, heap: Heap) -> None:
        rows = self.layout
        caches = self.memory.read(heap.address + rows["heap.caches"], rows["heap.classes"] * rows["cache.bytes"])
        for at in range(0, len(caches), rows["cache.bytes"]):
            one = caches[at:at + rows["cache.bytes"]]
            top, bottom = self._number(one, "cache.top"), self._number(one, "cache.bottom")
            if top == bottom:
                continue
            if not heap.address <= bottom < top < heap.address + rows["heap.bytes"] or (top - bottom) % 8 != 0:
                raise Damaged(f"a cache of heap {heap.number} has entries from {bottom:#x} to {top:#x}")
            for block in self.memory.words(bottom + 8, (top - bottom) // 8).tolist():
                self._tolerating(lambda block=block: self._cache(heap, block))

    def _cache(self, heap: Heap, block: int) -> None:
        superblock = self.by_slice.get(block // self.layout["slice.bytes"])
        if superblock is None:
            raise Damaged(f"heap {heap.number} caches {block:#x}, which is in no superblock")
        at, rest = divmod(block - superblock.start, superblock.size)
        if rest != 0 or not 0 <= at < len(superblock.states):
            raise Damaged(f"heap {heap.number} caches {block:#x}, where no block begins")
        if superblock.states[at] == FREE:
            raise Damaged(f"heap {heap.number} caches {block:#x}, which is free")
        superblock.states[at] = CACHED
        heap.cached += 1
        heap.cached_bytes += superblock.size

    def _kept_runs(self, heap: Heap) -> None:
        rows = self.layout
        count = int.from_bytes(self.memory.read(heap.address + rows["heap.run_count"], 4), "little")
        if count > rows["heap.most_runs"]:
            raise Damaged(f"heap {heap.number} keeps {count} runs")
        for descriptor in self.memory.words(heap.address + rows["heap.runs"], count).tolist():
            region = descriptor // rows["region.bytes"] * rows["region.bytes"]
            at = (descriptor - region - rows["region.descriptors"]) // rows["slice.descriptor"]
            data = self.memory.read(descriptor, rows["slice.descriptor"])
            self.snapshot.cached_runs.append(
                Run(region + at * rows["slice.bytes"], self._number(data, "slice.block_size", 4)))

    # ---- Slices. -----------------------------------------------------------------------------------------------------

    def _slices(self) -> None:
        rows, seen = self.layout, set()
        region = self.memory.word(rows["regions"])
        while region != 0:
            start = region // rows["region.bytes"] * rows["region.bytes"]
            if start in seen or len(seen) > _MOST_REGIONS or region != start + rows["region.header"]:
                raise Damaged(f"the list of regions comes to {region:#x}")
            seen.add(start)
            self.snapshot.regions.append(start)
            absent = self.memory.read(region + rows["region.absent"], 1)[0].bit_count()
            self.snapshot.mapped += rows["region.bytes"] - absent * rows["chunk.bytes"]
            self._tolerating(lambda start=start: self._region(start))
            region = self.memory.word(region + rows["region.next"])
        self.snapshot.superblocks.sort(key=lambda each: each.base)
        self.snapshot.runs.sort(key=lambda each: each.start)
        self.snapshot.chunks.sort(key=lambda each: each.start)
        self.snapshot.regions.sort()

    def _region(self, start: int) -> None:
        rows = self.layout
        chunks = rows["region.bytes"] // rows["chunk.bytes"]
        per_chunk = rows["chunk.bytes"] // rows["slice.bytes"]
        kinds = self.memory.read(rows["map"] + start // rows["chunk.bytes"], chunks)
        descriptors = self.memory.read(start + rows["region.descriptors"], chunks * per_chunk * rows["slice.descriptor"])
        for chunk, kind in enumerate(kinds):
            if kind != rows["map.slices"]:
                continue
            first = rows["region.metadata"] // rows["slice.bytes"] if chunk == 0 else 0
            header = descriptors[chunk * rows["slice.descriptor"]:][:rows["slice.descriptor"]]
            self.snapshot.chunks.append(Chunk(
                start + chunk * rows["chunk.bytes"], self._number(header, "chunk.free"),
                self._number(header, "chunk.dirty") | self._number(header, "chunk.dirty_before"),
                self._number(header, "chunk.guards"), first))
            for at in range(chunk * per_chunk + first, (chunk + 1) * per_chunk):
                place = at * rows["slice.descriptor"]
                kind = descriptors[place + rows["slice.kind"]]
                if kind in (rows["slice.is_blocks"], rows["slice.is_large"]):
                    data = descriptors[place:place + rows["slice.descriptor"]]
                    read = self._superblock if kind == rows["slice.is_blocks"] else self._run
                    self._tolerating(lambda at=at, data=data, read=read: read(start, start + at * rows["slice.bytes"], data))

    def _run(self, region: int, base: int, data: bytes) -> None:
        length = self._number(data, "slice.block_size", 4)
        if length % self.layout["slice.bytes"] != 0 or not 0 < length <= self.layout["chunk.bytes"]:
            raise Damaged(f"the block at {base:#x} has {length} bytes")
        self.snapshot.runs.append(Run(base, length))

    def _superblock(self, region: int, base: int, data: bytes) -> None:
        rows = self.layout
        size, blocks = self._number(data, "slice.block_size", 4), self._number(data, "superblock.blocks", 4)
        start, states = self._number(data, "superblock.start"), self._number(data, "superblock.states")
        length = rows["slice.bytes"] * (1 if size <= rows["superblock.one_slice"] else rows["superblock.slices"])
        if size == 0 or not base <= start <= start + blocks * size <= base + length:
            raise Damaged(f"the superblock at {base:#x} has {blocks} blocks of {size} bytes at {start:#x}")
        if not region <= states <= states + blocks <= region + rows["region.metadata"]:
            raise Damaged(f"the superblock at {base:#x} has its states at {states:#x}")
        owner = self.heap_of_shelf.get(self._number(data, "superblock.owner"))
        found = Superblock(start, base, length, size, owner.number if owner else None,
                           bytearray(self.memory.read(states, blocks).translate(self.state_of)))
        if _NO_STATE in found.states:
            raise Damaged(f"a block of the superblock at {base:#x} is in no state that there is")
        self.snapshot.superblocks.append(found)
        for at in range(length // rows["slice.bytes"]):
            self.by_slice[base // rows["slice.bytes"] + at] = found

    # ---- Heaps of the program's own. ---------------------------------------------------------------------------------

    def _own_heaps(self) -> None:
        rows, seen = self.layout, set()
        slab = self.memory.word(rows["own.slabs"])
        while slab != 0:
            start, used = slab // rows["chunk.bytes"] * rows["chunk.bytes"], self.memory.word(slab + rows["own.used"])
            if slab in seen or slab + (used + 1) * rows["own.place"] > start + rows["chunk.bytes"]:
                raise Damaged(f"the list of the program's own heaps comes to {slab:#x}, where there are {used}")
            seen.add(slab)
            self.snapshot.own.append((start, start + rows["chunk.bytes"]))
            self.snapshot.mapped += rows["chunk.bytes"]
            self.snapshot.own_places += used
            data = self.memory.read(slab + rows["own.place"], used * rows["own.place"])
            names = np.frombuffer(data, np.uint32)[rows["own.name"] // 4::rows["own.place"] // 4]
            self.snapshot.own_heaps += int(np.count_nonzero(names))
            slab = self.memory.word(slab + rows["own.next"])

    # ---- Extents, and what else is the allocator's. ------------------------------------------------------------------

    def _extents(self) -> None:
        rows, seen = self.layout, set()
        slab = self.memory.word(rows["extents"])
        while slab != 0:
            if slab in seen or len(seen) > _MOST_SLABS:
                raise Damaged(f"the list of extents comes back to {slab:#x}")
            seen.add(slab)
            data = self.memory.read(slab, rows["slab.bytes"])
            self.snapshot.own.append((slab, slab + rows["slab.bytes"]))
            for at in range(rows["slab.count"]):
                place = rows["slab.extents"] + at * rows["extent.descriptor"]
                self._tolerating(lambda one=data[place:place + rows["extent.descriptor"]]: self._extent(one))
            slab = self._number(data, "slab.next")
        self.snapshot.huge.sort(key=lambda each: each.start)
        self.snapshot.kept.sort(key=lambda each: each.start)

    def _extent(self, data: bytes) -> None:
        state = self._number(data, "extent.state", 4)
        if state == self.layout["extent.is_unused"]:
            return
        start, size, length = (self._number(data, f"extent.{name}") for name in ("start", "size", "bytes"))
        self.snapshot.mapped += length
        if state not in (self.layout["extent.is_live"], self.layout["extent.is_kept"]):
            return
        if state == self.layout["extent.is_kept"]:
            self.snapshot.kept.append(Huge(start, 0, length))
        elif size > length:
            raise Damaged(f"the block at {start:#x} has {size} bytes in an extent of {length}")
        else:
            self.snapshot.huge.append(Huge(start, size, length, self._number(data, "extent.slack")))

    def _own_memory(self) -> None:
        rows = self.layout
        own = self.snapshot.own
        own += [(heap.address, heap.address + rows["heap.bytes"]) for heap in self.snapshot.heaps]
        own.append((rows["map"], rows["map"] + rows["map.chunks"]))
        data, length = struct.unpack("<QQ", self.memory.read(rows["profile"] + rows["array.data"], 8)
                                     + self.memory.read(rows["profile"] + rows["array.bytes"], 8))
        own.append((data, data + length))
