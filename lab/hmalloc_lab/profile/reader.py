"""Reads the profiles that hmalloc writes (profile.proto), and says of any other file what it is."""

import gzip
import io
import os
import zlib
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import Failure
from . import wire
from .names import printable

# A profile has kilobytes, at most some megabytes; what is much larger is something else, or has no end.
_MOST_BYTES = 1 << 28
_HEAD_BYTES = 256  # that all sample types are in
_GZIP = b"\x1f\x8b"
_ALLOCATED = ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"]
_FREED = ["freed_objects", "freed_space", "freed_samples"]


@dataclass(frozen=True)
class Mapping:
    """Code in the program's address space, and where it comes from."""

    start: int
    limit: int
    offset: int
    file: str
    build_id: str


@dataclass(frozen=True)
class Allocations:
    """What one stack has allocated; its addresses, the innermost first."""

    stack: tuple[int, ...]
    objects: int
    bytes: int
    held_objects: int
    held_bytes: int


@dataclass(frozen=True)
class Life:
    """Blocks that began and ended alike; `freed_at` is the stack that freed them, empty where it is not known."""

    stack: tuple[int, ...]
    freed_at: tuple[int, ...]
    allocated_by: str
    freed_by: str
    age_ns: int
    objects: int
    bytes: int
    samples: int


@dataclass
class Profile:
    period: int = 0
    missing: str = ""
    own_functions: str = ""  # the allocator's, as a regular expression
    mappings: list[Mapping] = field(default_factory=list)
    mapping_of: dict[int, Mapping] = field(default_factory=dict)  # by address, where there is one
    allocations: list[Allocations] = field(default_factory=list)
    lives: list[Life] = field(default_factory=list)


def read(path: Path) -> Profile:
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise Failure(f"{path}: cannot be read: {error.strerror}") from error
    return parse(data, str(path))


def parse(data: bytes, path: str) -> Profile:
    """path: what to call it."""
    if data.startswith(_GZIP):
        data = _unpacked(path, data)
    if len(data) > _MOST_BYTES:
        raise Failure(f"{path}: not a profile, it is too large")
    if not data:
        raise Failure(f"{path}: not a profile, it is empty")
    try:
        rows = _Rows(memoryview(data))
    except wire.Malformed as error:
        raise Failure(f"{path}: truncated" if _begins_like_ours(data) else f"{path}: not a profile") from error
    if not set(_ALLOCATED) <= set(rows.types):
        cut = len(data) < _HEAD_BYTES and _begins_like_ours(data)
        raise Failure(f"{path}: truncated" if cut else f"{path}: not a profile of the heap by hmalloc")
    if not rows.time:  # the last field that is written
        raise Failure(f"{path}: truncated")
    if not set(_FREED) <= set(rows.types):
        raise Failure(f"{path}: a profile without frees (HMALLOC_PROFILE_FREES=1 was not set)")
    try:
        return rows.profile()
    except (wire.Malformed, IndexError, KeyError) as error:
        raise Failure(f"{path}: not a profile, or damaged") from error


def _unpacked(path: str, data: bytes) -> bytes:
    try:
        return gzip.GzipFile(fileobj=io.BytesIO(data)).read(_MOST_BYTES + 1)
    except EOFError as error:
        raise Failure(f"{path}: truncated") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise Failure(f"{path}: cannot be read: damaged gzip") from error


def _begins_like_ours(data: bytes) -> bool:
    """The first string comes first and is empty; the next one says what the first number counts."""
    return data.startswith(b"\x32\x00"[:len(data)]) and (len(data) < 32 or b"alloc_objects" in data[:_HEAD_BYTES])


class _Rows:
    """The fields of the outermost message; what names strings and locations can be read when all is there."""

    def __init__(self, data: memoryview) -> None:
        self._strings, self._samples, self._mappings, self._locations = [], [], [], []
        self._types, self._numbers, self._comments = [], {}, []
        keep = {1: self._types, 2: self._samples, 3: self._mappings, 4: self._locations, 6: self._strings}
        for number, value in wire.fields(data):
            if number in keep:
                keep[number].append(wire.part(value))
            elif number == 13:
                self._comments += wire.numbers(value)
            elif isinstance(value, int):
                self._numbers[number] = value
        self._texts = [printable(bytes(each).decode(errors="replace")) for each in self._strings]
        self.time = self._numbers.get(9, 0)
        self.types = [self._text(dict(wire.fields(each)).get(1, 0)) for each in self._types]

    def _text(self, index: int | memoryview) -> str:
        index = wire.number(index)
        if index >= len(self._texts):
            raise wire.Malformed
        return self._texts[index]

    def _path(self, index: int) -> str:
        """As it can be opened: not fit to be printed, and the kernel writes the end of a line in it as \\012."""
        return os.fsdecode(bytes(self._strings[index]).replace(rb"\012", b"\n"))

    def profile(self) -> Profile:
        profile = Profile(self._numbers.get(12, 0), "; ".join(map(self._text, self._comments)),
                          self._text(self._numbers.get(7, 0)))
        by_id = {}
        for each in self._mappings:
            found = dict(wire.fields(each))
            number, start, limit, offset, file, build_id = (wire.number(found.get(key, 0)) for key in range(1, 7))
            by_id[number] = Mapping(start, limit, offset, self._path(file), self._text(build_id))
        profile.mappings = list(by_id.values())
        addresses = {}
        for each in self._locations:
            found = dict(wire.fields(each))
            number, mapping, address = (wire.number(found.get(key, 0)) for key in (1, 2, 3))
            addresses[number] = address
            if mapping in by_id:
                profile.mapping_of[address] = by_id[mapping]
        columns = [self.types.index(name) for name in _ALLOCATED + _FREED]
        for each in self._samples:
            self._sample(profile, each, addresses, columns)
        return profile

    def _sample(self, profile: Profile, sample: memoryview, addresses: dict[int, int], columns: list[int]) -> None:
        stack, values, texts, labels, freed_at = [], [], {}, {}, []
        for number, value in wire.fields(sample):
            if number == 1:
                stack += [addresses[each] for each in wire.numbers(value)]
            elif number == 2:
                values += wire.numbers(value)
            elif number == 3:
                label = dict(wire.fields(wire.part(value)))
                key, text, amount = self._text(label.get(1, 0)), label.get(2, 0), wire.number(label.get(3, 0))
                if key == "freed_at":
                    freed_at.append(addresses.get(amount, amount))
                else:
                    texts[key], labels[key] = self._text(text), amount
        row = [values[each] for each in columns]
        if "allocated_by" not in texts:
            profile.allocations.append(Allocations(tuple(stack), *row[:4]))
        else:
            profile.lives.append(Life(tuple(stack), tuple(freed_at), texts["allocated_by"], texts["freed_by"], labels["age"],
                                      *row[4:]))

