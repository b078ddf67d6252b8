"""Puts a profile's samples together: what each place in the program allocates, and who frees it where and when."""

import re
from collections import defaultdict
from dataclasses import dataclass, field

from . import symbols
from .names import OTHER_THREADS, TAKEN, Wrappers, shorten
from .reader import Life, Profile
from .symbols import Frame, Symbols

_MOST_CALLERS = 8
_UNKNOWN_PLACE = "an unknown place"
_STARTS = re.compile(r"start_thread|(__)?clone3?|__libc_start_\w+|_start|execute_native_thread_routine")
# Of inlined functions of templates, addr2line may know no more than the last part of the name.
_STANDARD_LIBRARY = re.compile(r"/c\+\+/(v1|[0-9.]+)/|/rustc/\w+/library/(alloc|core|std)/")


@dataclass
class Amount:
    objects: float = 0.0
    bytes: float = 0.0
    samples: int = 0

    def add(self, objects: float, size: float, samples: int = 0) -> None:
        self.objects += objects
        self.bytes += size
        self.samples += samples

    def add_life(self, life: Life) -> None:
        self.add(life.objects, life.bytes, life.samples)


@dataclass(frozen=True)
class Thread:
    """A row of the library's.  With number 0 it stands for all further threads of a name, one with "another of" before the
    name for those of them that free what another of them allocated, and OTHER_THREADS for whoever had no row."""

    name: str
    id: int

    @classmethod
    def of(cls, text: str) -> "Thread":
        found = re.fullmatch(r"(.*) \((\d+)\)", text)
        return cls(found[1], int(found[2])) if found else cls(OTHER_THREADS, 0)

    @property
    def key(self) -> int | str:
        """What tells it from others: a thread with a number may change its name."""
        return self.id or self.name

    def is_other_than(self, thread: "Thread") -> bool:
        """For sure: two of those that are not told apart may be one, or not."""
        return self.key != thread.key and (self.id != thread.id or OTHER_THREADS not in (self.name, thread.name))

    def is_surely(self, thread: "Thread") -> bool:
        return self.key == thread.key != OTHER_THREADS


@dataclass
class Site:
    """Where the program asks for memory: the innermost function that does not only pass it on."""

    frame: Frame
    allocated: Amount = field(default_factory=Amount)
    held: Amount = field(default_factory=Amount)
    freed: Amount = field(default_factory=Amount)
    handed_over: Amount = field(default_factory=Amount)  # freed by another thread than the one that allocated
    kept: Amount = field(default_factory=Amount)         # freed by the one that allocated
    ages: dict[int, Amount] = field(default_factory=lambda: defaultdict(Amount))
    freed_at: dict[tuple[str, bool], Amount] = field(default_factory=lambda: defaultdict(Amount))
    lives: list[tuple[float, float]] = field(default_factory=list)  # objects and bytes of each kind
    stacks: dict[tuple[int, ...], float] = field(default_factory=lambda: defaultdict(float))
    callers: list[str] = field(default_factory=list)  # of the heaviest stack, this function first
    takes_advice: bool = False

    @property
    def block_bytes(self) -> float:
        amount = self.allocated if self.allocated.objects else self.freed
        return amount.bytes / amount.objects if amount.objects else 0.0


@dataclass
class Map:
    period: int
    missing: str
    remarks: list[str]
    total: dict[str, Amount]
    threads: list[Thread]
    matrix: dict[tuple[int, int], Amount]  # who allocated and who freed, as indices of threads
    sites: list[Site]                      # those first that hand most over


def place_of(frame: Frame) -> str:
    where = f"{frame.file}:{frame.line}" if frame.file else ""
    if frame.function:
        return f"{shorten(frame.function)} ({where or frame.object})"
    return where or (f"{frame.object}+{frame.address:#x}" if frame.object else f"{frame.address:#x}")


def _starts_threads(frame: Frame) -> bool:
    if frame.function is None:
        return frame.object.startswith(("libstdc++.", "libc++."))  # which have no symbol for it
    return _STARTS.fullmatch(shorten(frame.function)) is not None


def build(profile: Profile, skip: re.Pattern | None) -> Map:
    stacks = {each.stack for each in profile.allocations} | {each.stack for each in profile.lives}
    addresses = {address for stack in stacks for address in stack}
    addresses |= {address for each in profile.lives for address in each.freed_at}
    return _Builder(profile, symbols.find(profile, sorted(addresses)), skip).build()


class _Builder:
    def __init__(self, profile: Profile, found: Symbols, skip: re.Pattern | None) -> None:
        self._profile, self._found = profile, found
        self._wrappers = Wrappers(skip, profile.own_functions)
        self._kinds, self._known_places = {}, {}
        self._sites, self._site_of = {}, {}

    def build(self) -> Map:
        threads, matrix = self._threads(), defaultdict(Amount)
        total = {name: Amount() for name in ("allocated", "held", "freed", "handed_over")}
        for each in self._profile.allocations:
            site = self._site(each.stack)
            site.stacks[each.stack] += each.bytes
            for amount in (site.allocated, total["allocated"]):
                amount.add(each.objects, each.bytes)
            for amount in (site.held, total["held"]):
                amount.add(each.held_objects, each.held_bytes)
        for life in self._profile.lives:
            by, freer = threads[Thread.of(life.allocated_by).key], threads[Thread.of(life.freed_by).key]
            self._add_life(life, by[1], freer[1])
            matrix[by[0], freer[0]].add_life(life)
            total["freed"].add_life(life)
            if freer[1].is_other_than(by[1]):
                total["handed_over"].add_life(life)
        sites = sorted(self._sites.values(), key=lambda site: (-site.handed_over.bytes, -site.allocated.bytes))
        for site in sites:
            site.callers = self._callers(site)
        return Map(self._profile.period, self._profile.missing, self._found.remarks, total,
                   [thread for _, thread in threads.values()], dict(matrix), sites)

    def _threads(self) -> dict[int | str, tuple[int, Thread]]:
        """By key, with the index; the ones first that allocate and free most.  A thread may change its name: the one
        that it had for most of its blocks is shown."""
        names = defaultdict(lambda: defaultdict(float))
        for life in self._profile.lives:
            for text in (life.allocated_by, life.freed_by):
                thread = Thread.of(text)
                names[thread.key][thread] += life.bytes
        order = sorted(names, key=lambda key: (key == OTHER_THREADS, -sum(names[key].values()), str(key)))
        return {key: (at, max(names[key], key=names[key].get)) for at, key in enumerate(order)}

    def _add_life(self, life: Life, by: Thread, freer: Thread) -> None:
        site, is_other = self._site(life.stack), freer.is_other_than(by)
        site.stacks[life.stack] += 0
        site.freed.add_life(life)
        if is_other:
            site.handed_over.add_life(life)
        if freer.is_surely(by):
            site.kept.add_life(life)
        site.ages[life.age_ns].add_life(life)
        site.freed_at[self._place(life.freed_at), is_other].add_life(life)
        site.lives.append((life.objects, life.bytes))

    def _frames(self, stack: tuple[int, ...]) -> list[Frame]:
        return [frame for address in stack for frame in self._found.frames[address]]

    def _kind(self, function: str) -> tuple[bool, bool]:
        if function not in self._kinds:
            self._kinds[function] = self._wrappers.is_own(function), self._wrappers.passes_on(function)
        return self._kinds[function]

    def _is_own(self, frame: Frame) -> bool:
        return frame.function is not None and self._kind(frame.function)[0]

    def _passes_on(self, frame: Frame) -> bool:
        if frame.path and _STANDARD_LIBRARY.search(frame.path):
            return True
        return frame.function is not None and self._kind(frame.function)[1]

    def _innermost(self, frames: list[Frame]) -> int:
        """Of the program's functions, without what starts its threads; if none is, the outermost that passes on."""
        begin = max((at + 1 for at, frame in enumerate(frames) if self._is_own(frame)), default=0)
        end = next((at for at in range(begin, len(frames)) if _starts_threads(frames[at])), len(frames))
        if end <= begin:
            end = len(frames)
        return next((at for at in range(begin, end) if not self._passes_on(frames[at])), end - 1)

    def _place(self, stack: tuple[int, ...]) -> str:
        if stack not in self._known_places:
            frames = self._frames(stack)
            self._known_places[stack] = place_of(frames[self._innermost(frames)]) if frames else _UNKNOWN_PLACE
        return self._known_places[stack]

    def _site(self, stack: tuple[int, ...]) -> Site:
        if stack in self._site_of:
            return self._site_of[stack]
        frames = self._frames(stack) or [Frame(None, None, None, "", 0)]
        at = self._innermost(frames)
        frame = frames[at]
        # By its function where the line is not known, by its address where nothing is.
        key = (frame.object, frame.function, frame.path, frame.line, None if frame.function else frame.address)
        site = self._sites.setdefault(key, Site(frame))
        site.takes_advice |= any(TAKEN.match(inner.function) for inner in frames[:at] if inner.function)
        self._site_of[stack] = site
        return site

    def _callers(self, site: Site) -> list[str]:
        heaviest = max(site.stacks, key=site.stacks.get)
        frames = self._frames(heaviest)
        return [place_of(frame) for frame in frames[self._innermost(frames):][:_MOST_CALLERS]]
