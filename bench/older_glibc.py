"""Lets a library that was linked against a newer glibc load under an older one.

What current compilers take from glibc 2.38 is, as a rule, `__isoc23_strtol` and its kin, which differ from `strtol` only in
that they read binary numbers.  Such a symbol is given its old name, which is the end of the new one in the table of names,
and the demand for the newer version becomes one that the loader may pass over.
"""

import struct
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

_NEW = "__isoc23_"
_ANY_VERSION = 1    # VER_NDX_GLOBAL
_SYMBOL_BYTES = 24  # Elf64_Sym
_HASH, _NAME = slice(0, 4), slice(8, 12)  # of Elf64_Vernaux


class TooNew(Exception):
    """It uses more of the newer glibc than has an older name."""


def let_load(library: Path, newest: tuple[int, int]) -> list[str]:
    """newest: the version of the glibc that is to load it.  What had to be changed."""
    content, changed = bytearray(library.read_bytes()), []
    with library.open("rb") as file:
        elf = ELFFile(file)
        demands = _too_new(elf, newest)
        symbols, versions = elf.get_section_by_name(".dynsym"), elf.get_section_by_name(".gnu.version")
        for number, symbol in enumerate(symbols.iter_symbols()):
            if versions.get_symbol(number)["ndx"] not in demands:
                continue
            if not symbol.name.startswith(_NEW):
                raise TooNew(f"{library.name} needs {symbol.name} of a newer glibc")
            struct.pack_into("<I", content, symbols["sh_offset"] + number * _SYMBOL_BYTES,
                             symbol.entry["st_name"] + len(_NEW))
            struct.pack_into("<H", content, versions["sh_offset"] + 2 * number, _ANY_VERSION)
            changed.append(symbol.name)
        if demands and not all(other for _, other in demands.values()):
            raise TooNew(f"{library.name} asks for nothing of an older glibc")
        for at, other in demands.values():
            for part in (_HASH, _NAME):
                content[at + part.start:at + part.stop] = content[other + part.start:other + part.stop]
    library.write_bytes(content)
    return changed


def _too_new(elf: ELFFile, newest: tuple[int, int]) -> dict[int, tuple[int, int]]:
    """Index of a version of glibc that is not there -> where in the file it is demanded, and where one that is there."""
    found, there = {}, 0
    for section in elf.iter_sections():
        if not isinstance(section, GNUVerNeedSection):
            continue
        offset = section["sh_offset"]
        for need, entries in section.iter_versions():
            at = offset + need["vn_aux"]
            for entry in entries:
                name, _, number = entry.name.partition("_")
                if name == "GLIBC" and tuple(map(int, number.split(".")[:2])) > newest:
                    found[entry["vna_other"]] = at
                elif name == "GLIBC":
                    there = at
                at += entry["vna_next"]
            offset += need["vn_next"]
    return {index: (at, there) for index, at in found.items()}
