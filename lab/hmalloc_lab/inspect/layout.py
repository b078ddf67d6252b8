"""The record by which the library says how its heap lies in memory (src/introspect/layout.cc), and where it is found."""

import struct
from dataclasses import dataclass, replace

from ..errors import Failure
from .memory import Mapping, Memory, Unreadable

_VERSION = 2
_HEADER = struct.Struct("<16sII16s")
_ROW = struct.Struct("<24sQ")
_MOST_ROWS = 1024
_PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
_LOAD, _NOTE = 1, 4


@dataclass(frozen=True)
class Layout:
    library: str
    """The version of the library."""
    module: Mapping
    """The file that the library is in."""
    rows: dict[str, int]
    copies: int = 1
    """Of hmalloc, from which the program allocates; this is one of them."""

    def __getitem__(self, name: str) -> int:
        try:
            return self.rows[name]
        except KeyError as error:
            raise Failure(f"hmalloc {self.library} does not say what this tool needs to know: {name}") from error


def find(memory: Memory) -> Layout:
    found = []
    for mapping in memory.mappings:
        try:
            if (address := _record_in(memory, mapping)) is not None:
                found.append(_read(memory, mapping, address))
        except Unreadable:
            continue
    if not found:
        raise Failure(f"{memory.title}: {_why_none(memory)}")
    # Of several copies, one that the program allocates from.
    used = [each for each in found if _is_used(memory, each)]
    return replace(used[0], copies=len(used)) if used else found[0]


def _why_none(memory: Memory) -> str:
    library = next((each for each in memory.mappings if "libhmalloc" in each.path), None)
    if library is None:
        return "no hmalloc in it, neither as a library nor linked in"
    try:
        memory.read(library.start, 1)
    except Unreadable:
        return f"it lacks the beginning of {library.path}, and that is not there any more"
    return f"its {library.path} is older than this tool, and says nothing of its layout"


def _is_used(memory: Memory, layout: Layout) -> bool:
    try:
        return memory.word(layout["heaps"]) != 0
    except (Unreadable, KeyError):
        return False


def _record_in(memory: Memory, mapping: Mapping) -> int | None:
    """Where its record is, if an ELF file begins here that has one."""
    if mapping.offset != 0 or mapping.path.startswith("[") or memory.read(mapping.start, 6) != b"\x7fELF\2\1":
        return None
    header = memory.read(mapping.start, 64)
    (at,), (size, count) = struct.unpack_from("<Q", header, 32), struct.unpack_from("<HH", header, 54)
    if size != _PROGRAM_HEADER.size or not 0 < count < 100:
        return None
    headers = [*_PROGRAM_HEADER.iter_unpack(memory.read(mapping.start + at, size * count))]
    first = next((address - offset for kind, _, offset, address, *_ in headers if kind == _LOAD), 0)
    for kind, _, _, address, _, _, length, alignment in headers:
        if kind == _NOTE and length < 1 << 16:
            start = mapping.start - first + address
            if (record := _record_of_notes(memory.read(start, length), start, max(alignment, 4))) is not None:
                return record
    return None


def _record_of_notes(notes: bytes, start: int, alignment: int) -> int | None:
    at = 0
    while at + 12 <= len(notes):
        name_size, size, kind = struct.unpack_from("<III", notes, at)
        place = at + 12 + -(-name_size // 4) * 4
        place = -(-place // alignment) * alignment
        if kind == 1 and notes[at + 12:at + 12 + name_size] == b"hmalloc\0" and size == 8 and place + 8 <= len(notes):
            return start + place + struct.unpack_from("<q", notes, place)[0]
        at = -(-(place + size) // alignment) * alignment
    return None


def _read(memory: Memory, module: Mapping, address: int) -> Layout:
    magic, version, count, library = _HEADER.unpack(memory.read(address, _HEADER.size))
    if magic.rstrip(b"\0") != b"hmalloc layout" or count > _MOST_ROWS:
        raise Failure(f"{memory.title}: the record of the heap's layout is damaged")
    text = library.split(b"\0")[0].decode(errors="replace")
    if version != _VERSION:
        raise Failure(f"{memory.title}: hmalloc {text} describes its heap in form {version}; "
                      f"this tool knows form {_VERSION}")
    rows = {name.split(b"\0")[0].decode(errors="replace"): value
            for name, value in _ROW.iter_unpack(memory.read(address + _HEADER.size, count * _ROW.size))}
    return Layout(text, module, rows)
