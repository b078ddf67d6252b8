"""Which live blocks nothing points to: searched as a garbage collector would do it that knows no types.

Every word that may be a reference counts as one: in registers, stacks, private memory that the program can read, and in the
blocks that are reached from there, to the start of a block or into it.  Not searched are free and cached blocks, the
allocator's own memory, what lies below the end of a stack, pages that the program has never written, and memory that is
shared with other processes."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .heap import LIVE, SAMPLED, Snapshot
from .memory import Mapping, Memory, Thread, Unreadable

_PIECE = 4 << 20      # bytes that are searched at a time
_PAGE = 4096
_RED_ZONE = 128       # bytes below the stack pointer that a function may use
_FEW = 64             # blocks from which on they are followed together


@dataclass(frozen=True)
class Leak:
    size: int
    blocks: int
    bytes: int
    first: list[int]
    """Addresses of some blocks, those before all that no other lost block refers to."""


@dataclass
class Leaks:
    blocks: int
    bytes: int
    by_size: list[Leak]
    roots: int
    """Of the lost blocks, those to which no other lost one refers."""
    searched: int
    """Bytes that were searched for references."""
    unread: int
    """Bytes that should have been, and could not be read."""


class _Blocks:
    """All live blocks, by address."""

    def __init__(self, snapshot: Snapshot) -> None:
        starts, sizes = [np.zeros(0, np.uint64)], [np.zeros(0, np.uint64)]
        for each in snapshot.superblocks:
            live = each.indices(LIVE, SAMPLED).astype(np.uint64)
            starts.append(np.uint64(each.start) + live * np.uint64(each.size))
            sizes.append(np.full(len(live), each.size, np.uint64))
        others = [(run.start, run.length) for run in snapshot.runs] + [(each.start, each.size) for each in snapshot.huge]
        starts.append(np.array([start for start, _ in others], np.uint64))
        sizes.append(np.array([size for _, size in others], np.uint64))
        self.starts, self.sizes = np.concatenate(starts), np.concatenate(sizes)
        order = np.argsort(self.starts)
        self.starts, self.sizes = self.starts[order], self.sizes[order]
        self.first = int(self.starts[0]) if len(order) else 0
        self.end = int(self.starts[-1] + self.sizes[-1]) if len(order) else 0

    def __len__(self) -> int:
        return len(self.starts)

    def at(self, addresses: np.ndarray) -> np.ndarray:
        """For each address the index of the block that it lies in, or -1."""
        found = np.searchsorted(self.starts, addresses, "right").astype(np.int64) - 1
        inside = addresses - self.starts[found] < self.sizes[found]
        return np.where((found >= 0) & inside, found, -1)

    def references(self, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which of the words refer to a block, and to which one."""
        where = np.flatnonzero((words >= np.uint64(self.first)) & (words < np.uint64(self.end)))
        to = self.at(words[where])
        return where[to >= 0], to[to >= 0]


class Search:
    def __init__(self, memory: Memory, snapshot: Snapshot) -> None:
        self.memory, self.snapshot = memory, snapshot
        self.blocks = _Blocks(snapshot)
        self.searched = self.unread = 0

    def run(self) -> Leaks:
        if len(self.blocks) == 0:
            return Leaks(0, 0, [], 0, 0, 0)
        begins, targets = self._references_of_blocks()
        reached = _follow(len(self.blocks), begins, targets, self._roots())
        lost = np.flatnonzero(~reached)
        referred = np.zeros(len(self.blocks), bool)
        sources = np.repeat(np.arange(len(self.blocks)), np.diff(begins))
        referred[targets[~reached[sources] & (targets != sources)]] = True
        return self._report(lost, referred)

    def _report(self, lost: np.ndarray, referred: np.ndarray) -> Leaks:
        sizes = self.blocks.sizes[lost]
        rows = []
        for size in np.unique(sizes).tolist():
            of_size = lost[sizes == size]
            first = [*of_size[~referred[of_size]][:3], *of_size[referred[of_size]][:3]][:3]
            rows.append(Leak(size, len(of_size), size * len(of_size), [int(self.blocks.starts[at]) for at in first]))
        return Leaks(len(lost), int(sizes.sum()), sorted(rows, key=lambda row: -row.bytes),
                     int(np.count_nonzero(~referred[lost])), self.searched, self.unread)

    # ---- Where references are searched. ------------------------------------------------------------------------------

    def _roots(self) -> np.ndarray:
        found = []
        for thread in self.memory.threads:
            whole = thread.registers[:len(thread.registers) // 8 * 8]
            found.append(self.blocks.references(np.frombuffer(whole, "<u8"))[1])
        for start, end in root_ranges(self.memory, self.snapshot):
            for _, words in self._words(start, end):
                found.append(self.blocks.references(words)[1])
        return np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)

    def _references_of_blocks(self) -> tuple[np.ndarray, np.ndarray]:
        """The blocks that block i refers to are targets[begins[i]:begins[i + 1]]."""
        sources, targets = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for start, end in self._ranges_of_blocks():
            for address, words in self._words(start, end):
                where, to = self.blocks.references(words)
                of = self.blocks.at(np.uint64(address) + where.astype(np.uint64) * np.uint64(8))
                sources.append(of[of >= 0])
                targets.append(to[of >= 0])
        source, target = np.concatenate(sources), np.concatenate(targets)
        order = np.argsort(source, kind="stable")
        return np.searchsorted(source[order], np.arange(len(self.blocks) + 1)), target[order]

    def _ranges_of_blocks(self) -> Iterator[tuple[int, int]]:
        for each in self.snapshot.superblocks:
            if each.live:
                yield each.start, each.start + len(each.states) * each.size
        for each in self.snapshot.runs:
            yield each.start, each.start + each.length
        for each in self.snapshot.huge:
            yield each.start, each.start + each.size

    def _words(self, start: int, end: int) -> Iterator[tuple[int, np.ndarray]]:
        """Its whole words, piece by piece; without the pages that nobody has written, or can read."""
        for begin, stop in self.memory.touched(-(-start // 8) * 8, end // 8 * 8):
            for at in range(begin, stop, _PIECE):
                yield from self._piece(at, min(at + _PIECE, stop))

    def _piece(self, start: int, end: int) -> Iterator[tuple[int, np.ndarray]]:
        try:
            words = self.memory.words(start, (end - start) // 8)
        except Unreadable:
            if end - start <= _PAGE:
                self.unread += end - start
                return
            middle = max((start + end) // 2 // _PAGE * _PAGE, start + 8)
            yield from self._piece(start, middle)
            yield from self._piece(middle, end)
            return
        self.searched += end - start
        yield start, words


def _follow(count: int, begins: np.ndarray, targets: np.ndarray, roots: np.ndarray) -> np.ndarray:
    """What can be reached.  Many blocks are followed together; a few, as in a list, one by one."""
    reached = np.zeros(count, bool)
    reached[roots] = True
    front = roots
    while len(front) > 0:
        if len(front) < _FEW:
            front = _follow_one_by_one(begins, targets, front.tolist(), reached)
            continue
        lengths = begins[front + 1] - begins[front]
        places = np.repeat(begins[front] - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
        next_ones = np.unique(targets[places])
        front = next_ones[~reached[next_ones]]
        reached[front] = True
    return reached


def _follow_one_by_one(begins: np.ndarray, targets: np.ndarray, front: list[int], reached: np.ndarray) -> np.ndarray:
    """Until there are many, which are returned."""
    begin, target, is_reached = memoryview(begins), memoryview(targets), memoryview(reached)
    while front and len(front) < 4 * _FEW:
        block = front.pop()
        for at in range(begin[block], begin[block + 1]):
            if not is_reached[target[at]]:
                is_reached[target[at]] = True
                front.append(target[at])
    return np.array(front, np.int64)


def root_ranges(memory: Memory, snapshot: Snapshot) -> Iterator[tuple[int, int]]:
    rows = snapshot.layout
    excluded = sorted([*snapshot.own,
                       *[(start, start + rows["region.bytes"]) for start in snapshot.regions],
                       *[(each.start, each.start + each.length) for each in [*snapshot.huge, *snapshot.kept]]])
    for mapping in memory.mappings:
        if not _is_searched(mapping, rows.module):
            continue
        start = _first_in_use(mapping, memory.threads)
        for begin, end in excluded:
            if end <= start or begin >= mapping.end:
                continue
            if start < begin:
                yield start, begin
            start = max(start, end)
        if start < mapping.end:
            yield start, mapping.end


def _is_searched(mapping: Mapping, module: Mapping) -> bool:
    # Private memory of /dev/zero is memory as any other; to read a device's may do something.
    special = mapping.path.startswith(("/dev/", "[v")) and not mapping.path.startswith(("/dev/zero", "/dev/shm/"))
    library = "libhmalloc" in module.path and mapping.path == module.path
    code = mapping.rights[1:3] == "-x"  # where stacks may be executed, data may, too
    return mapping.rights[0] == "r" and not code and mapping.rights[3] == "p" and not special and not library


def _first_in_use(mapping: Mapping, threads: list[Thread]) -> int:
    """Below the stack pointer lies what functions left that have returned.  A thread of the C library has its variables
    above its stack, in the same mapping; where that is another's, too, all of it is searched."""
    stacks = [thread for thread in threads if thread.stack in mapping]
    if len(stacks) != 1:
        return mapping.start
    if mapping.path != "[stack]" and not stacks[0].stack < stacks[0].pointer < mapping.end:
        return mapping.start
    return max(mapping.start, stacks[0].stack - _RED_ZONE)
