"""From addresses to functions and lines: addr2line of binutils for what has debug information, else the symbol table."""

import bisect
import os
import re
import shutil
import struct
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from .names import printable, shorten
from .reader import Mapping, Profile

# For one file; a program of a gigabyte may need half of it.
_PATIENCE_S = 120
_FUNCTIONS = (2, 10)  # STT_FUNC, STT_GNU_IFUNC
_NAMELESS = "its functions have no names here"
_ADDRESS = re.compile(r"0x[0-9a-f]+")
_DISCRIMINATOR = re.compile(r" \(discriminator \d+\)$")


@dataclass(frozen=True)
class Frame:
    """A function that was on a stack; of several at one address, all but the last are inline."""

    function: str | None  # with its arguments
    path: str | None
    line: int | None
    object: str           # the file that the code is in, without its folder
    address: int          # as that file counts

    @property
    def file(self) -> str | None:
        return self.path and os.path.basename(self.path)


@dataclass
class Symbols:
    """The frames of each address, the innermost first; what could not be read, in lines for people."""

    frames: dict[int, list[Frame]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


def find(profile: Profile, addresses: Iterable[int]) -> Symbols:
    found, by_file = Symbols(), defaultdict(list)
    for address in addresses:
        mapping = profile.mapping_of.get(address)
        if mapping is None:
            found.frames[address] = [Frame(None, None, None, "", address)]
        else:
            by_file[mapping.file, mapping.build_id].append((address, mapping))
    tool = shutil.which("addr2line")
    if by_file and not tool:
        found.remarks.append("addr2line is missing, so there are no lines and no inlined functions: install binutils")
    for (file, build_id), pairs in by_file.items():
        name = printable(os.path.basename(file))
        code, remark = _open(file, build_id)
        if remark:
            found.remarks.append(printable(remark))
        places = {address: code.address_of(mapping, address) if code else address - mapping.start + mapping.offset
                  for address, mapping in pairs}
        lines, remark = _ask(tool, file, places.values()) if code and tool else ({}, None)
        if remark:
            found.remarks.append(remark)
        named = code.functions(places.values(), _demangled) if code else {}
        for address, place in places.items():
            rows = _whole_names(lines.get(place, []), named.get(place))
            found.frames[address] = [Frame(*row, name, place) for row in rows]
    return found


def _whole_names(rows: list[tuple], symbol: str | None) -> list[tuple]:
    """Without lines, addr2line names what is nearest: then the symbol counts.  With them it may leave out what a function
    belongs to, which the symbol of the one that all others are inlined in has."""
    known = [row for row in rows if row[1]]
    if not known:
        return [(symbol, None, None)]
    function, *where = known[-1]
    if symbol and (function is None or shorten(symbol).endswith(shorten(function))):
        known[-1] = (symbol, *where)
    return known


class _Code:
    """An ELF file: its segments and its functions."""

    def __init__(self, elf: ELFFile) -> None:
        self._segments = [(s["p_offset"], s["p_filesz"], s["p_vaddr"]) for s in elf.iter_segments("PT_LOAD")]
        self.build_id = _build_id(elf)
        self._functions = sorted(_functions(elf))
        self._starts = [start for start, _, _ in self._functions]

    def address_of(self, mapping: Mapping, address: int) -> int:
        """What is the address in memory, in the file's own count: by way of where in the file it is."""
        offset = address - mapping.start + mapping.offset
        for begin, size, virtual in self._segments:
            if begin <= offset < begin + size:
                return offset - begin + virtual
        return offset

    def functions(self, places: Iterable[int], demangled: Callable[[list[str]], list[str]]) -> dict[int, str]:
        found = {place: name for place in places if (name := self._function(place))}
        return dict(zip(found, demangled(list(found.values()))))

    def _function(self, place: int) -> str | None:
        # The last symbols that begin before it; one function may have several names, and one may be in another.
        at = bisect.bisect_right(self._starts, place) - 1
        for start, size, name in reversed(self._functions[max(at - 3, 0):at + 1]):
            if start <= place < start + size:
                return name
        return None


def _open(file: str, build_id: str) -> tuple[_Code | None, str | None]:
    """The file, if it is the one that was profiled; else why not."""
    if not file.startswith("/"):
        return None, None  # [vdso], and code that a program has made
    try:
        with Path(file).open("rb") as opened:
            code = _Code(ELFFile(opened))
    except OSError as error:
        return None, f"{file}: {error.strerror}; {_NAMELESS}"
    except Exception as error:  # the reader of ELF files trusts them, and we do not
        return None, f"{file}: cannot be read as an ELF file ({type(error).__name__}); {_NAMELESS}"
    if build_id and code.build_id and build_id != code.build_id:
        return None, f"{file}: has changed since; {_NAMELESS}"
    return code, None


def _build_id(elf: ELFFile) -> str:
    for segment in elf.iter_segments("PT_NOTE"):
        for note in segment.iter_notes():
            if note["n_type"] == "NT_GNU_BUILD_ID":
                return note["n_desc"]
    return ""


def _functions(elf: ELFFile) -> list[tuple[int, int, str]]:
    """Start, size and name.  Read as a whole: of large programs there are hundred thousands."""
    layout = struct.Struct(("<" if elf.little_endian else ">") + ("IBBHQQ" if elf.elfclass == 64 else "IIIBBH"))
    found = []
    for section in elf.iter_sections():
        if not isinstance(section, SymbolTableSection):
            continue
        data, names = section.data(), section.stringtable.data()
        for row in layout.iter_unpack(data[:len(data) // layout.size * layout.size]):
            name, info, _, index, start, size = row if elf.elfclass == 64 else (row[0], *row[3:6], *row[1:3])
            if info & 15 in _FUNCTIONS and index != 0 and size > 0:
                found.append((start, size, names[name:names.find(b"\0", name)]))
    return [(start, size, name.decode(errors="replace")) for start, size, name in set(found)]


def _ask(tool: str, file: str, places: Iterable[int]) -> tuple[dict[int, list[tuple]], str | None]:
    """Function, file and line of each inlined function at each address, and of what they are inlined in."""
    asked = "".join(f"{each:#x}\n" for each in sorted(set(places)))
    try:
        answer = _tell([tool, "-e", file, "-f", "-C", "-i", "-a"], asked)
    except (OSError, subprocess.SubprocessError) as error:
        slow = isinstance(error, subprocess.TimeoutExpired)
        why = f"took more than {_PATIENCE_S} seconds" if slow else "failed"
        return {}, f"{printable(file)}: addr2line {why}, so there are no lines of it"
    found, rows = {}, []
    lines = iter(answer)
    for line in lines:
        if _ADDRESS.fullmatch(line):
            found[int(line, 16)] = rows = []
            continue
        path, _, number = _DISCRIMINATOR.sub("", next(lines, "??:0")).rpartition(":")
        number = int(number) if number.isdecimal() else 0
        where = (printable(path), number) if number > 0 and path != "??" else (None, None)
        rows.append((None if line == "??" else printable(line), *where))
    return found, None


def _demangled(names: list[str]) -> list[str]:
    tool = shutil.which("c++filt")
    if not tool or not any(name.startswith(("_Z", "_R")) for name in names):
        return list(map(printable, names))
    try:
        answer = _tell([tool], "\n".join(map(printable, names)))
    except (OSError, subprocess.SubprocessError):
        answer = []
    return list(map(printable, answer if len(answer) == len(names) else names))


def _tell(words: list[str], asked: str) -> list[str]:
    """Of the file and not of a server of debug information; and what is preloaded into us is not meant for the tools."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "HMALLOC_", "DEBUGINFOD_"))}
    told = subprocess.run(words, input=asked, capture_output=True, text=True, errors="replace", timeout=_PATIENCE_S,
                          check=True, env=kept | {"LC_ALL": "C"}).stdout
    return told.removesuffix("\n").split("\n")
