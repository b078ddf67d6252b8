"""A snapshot counted: by class, by owner, and what stands in the way of giving memory back."""

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from .heap import CACHED, FREE, LIVE, SAMPLED, Snapshot, Superblock

PAGE = 4096


@dataclass
class Count:
    superblocks: int = 0
    live: int = 0
    sampled: int = 0
    """Of the live ones, those that a profile or a tracer follows."""
    cached: int = 0
    free: int = 0
    live_bytes: int = 0
    cached_bytes: int = 0
    bytes: int = 0
    """Of its superblocks."""
    pages: int = 0
    """Of those, of 4 KB, in which some block is live or cached."""

    def add(self, superblock: Superblock, pages: int = 0) -> None:
        live, cached = superblock.live, superblock.count(CACHED)
        self.superblocks += 1
        self.live += live
        self.sampled += superblock.count(SAMPLED)
        self.cached += cached
        self.free += superblock.count(FREE)
        self.live_bytes += live * superblock.size
        self.cached_bytes += cached * superblock.size
        self.bytes += superblock.length
        self.pages += pages


@dataclass
class Census:
    classes: dict[int, Count] = field(default_factory=lambda: defaultdict(Count))
    owners: dict[int | None, Count] = field(default_factory=lambda: defaultdict(Count))
    small: Count = field(default_factory=Count)
    large_blocks: int = 0
    large_bytes: int = 0
    huge_blocks: int = 0
    huge_bytes: int = 0
    cached_bytes: int = 0
    """In caches of blocks and of runs."""
    kept_bytes: int = 0
    """In extents without a block, and behind blocks that are shorter than theirs."""
    free_dirty: int = 0
    """Bytes of free slices that are resident."""
    free_clean: int = 0
    """Bytes of free slices that are not."""
    metadata: int = 0

    @property
    def live_blocks(self) -> int:
        return self.small.live + self.large_blocks + self.huge_blocks

    @property
    def live_bytes(self) -> int:
        return self.small.live_bytes + self.large_bytes + self.huge_bytes


def count(snapshot: Snapshot) -> Census:
    census, rows = Census(), snapshot.layout
    for superblock in snapshot.superblocks:
        pages = _pages_in_use(superblock)
        for group in (census.classes[superblock.size], census.owners[superblock.owner], census.small):
            group.add(superblock, pages)
    census.large_blocks, census.large_bytes = len(snapshot.runs), sum(run.length for run in snapshot.runs)
    census.huge_blocks, census.huge_bytes = len(snapshot.huge), sum(each.size for each in snapshot.huge)
    census.cached_bytes = census.small.cached_bytes + sum(run.length for run in snapshot.cached_runs)
    census.kept_bytes = sum(each.length for each in snapshot.kept) + sum(each.slack for each in snapshot.huge)
    for chunk in snapshot.chunks:
        dirty = (chunk.free & chunk.dirty).bit_count()
        census.free_dirty += dirty * rows["slice.bytes"]
        census.free_clean += (chunk.free.bit_count() - dirty) * rows["slice.bytes"]
        census.metadata += chunk.metadata * rows["slice.bytes"]
    return census


def _pages_in_use(superblock: Superblock) -> int:
    """A page is free if no block in it, even in part, is live or cached."""
    blocks, free = len(superblock.states), superblock.count(FREE)
    if free == blocks:
        return 0
    first = superblock.start // PAGE
    if free == 0:
        return (superblock.start + blocks * superblock.size - 1) // PAGE - first + 1
    starts = superblock.start + superblock.indices(LIVE, CACHED, SAMPLED) * superblock.size
    steps = np.zeros(superblock.length // PAGE + 2, np.int64)
    np.add.at(steps, starts // PAGE - first, 1)
    np.add.at(steps, (starts + superblock.size - 1) // PAGE - first + 1, -1)
    return int(np.count_nonzero(np.cumsum(steps) > 0))


@dataclass(frozen=True)
class Change:
    what: str
    blocks: int
    bytes: int


def changes(before: Census, after: Census) -> list[Change]:
    """Of live blocks, by class; those that changed most first."""
    rows = [Change(str(size), after.classes[size].live - before.classes[size].live,
                   after.classes[size].live_bytes - before.classes[size].live_bytes)
            for size in sorted({*before.classes, *after.classes})]
    rows.append(Change("large", after.large_blocks - before.large_blocks, after.large_bytes - before.large_bytes))
    rows.append(Change("huge", after.huge_blocks - before.huge_blocks, after.huge_bytes - before.huge_bytes))
    return sorted((row for row in rows if row.blocks or row.bytes), key=lambda row: (-abs(row.bytes), row.what))
