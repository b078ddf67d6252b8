"""The memory of a core file, as the kernel or gdb's gcore writes it.  What the system left out because it stands in a file
that was mapped is read there, if the file is still that long."""

import mmap
import os
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from ..errors import Failure
from .memory import Mapping, Memory, Thread, Unreadable, printable
from .registers import EXTENDED, of_machine

_RIGHTS = ((4, "r"), (2, "w"), (1, "x"))  # PF_R and so on
_REGISTERS, _NUMBER = 112, 32  # in struct elf_prstatus: pr_reg, pr_pid


class CoreMemory(Memory):
    stands_still = True

    def __init__(self, path: Path) -> None:
        self.title = f"core file {path}"
        if not path.is_file():
            raise Failure(f"{path}: no core file")
        try:
            self._file = path.open("rb")
            self._data = mmap.mmap(self._file.fileno(), 0, prot=mmap.PROT_READ) if path.stat().st_size else b""
            elf = ELFFile(self._file)
        except ELFError as error:
            raise Failure(f"{path}: no core file") from error
        except OSError as error:
            raise Failure(f"{path}: {error.strerror}") from error
        if elf["e_type"] != "ET_CORE" or elf.elfclass != 64:
            raise Failure(f"{path}: no core file of a 64-bit program")
        try:
            self._load(elf, path)
        except (ELFError, OSError, ValueError, KeyError, IndexError, AttributeError, TypeError) as error:
            raise Failure(f"{path}: the core file is damaged") from error

    def _load(self, elf: ELFFile, path: Path) -> None:
        self._segments, notes, files = [], [], []
        for segment in elf.iter_segments():
            if segment["p_type"] == "PT_NOTE":
                _check_length(path, segment, len(self._data))
                notes = list(segment.iter_notes())
            elif segment["p_type"] == "PT_LOAD":
                _check_length(path, segment, len(self._data))
                self._segments.append((segment["p_vaddr"], segment["p_filesz"], segment["p_offset"], segment["p_memsz"],
                                       "".join(name if segment["p_flags"] & bit else "-" for bit, name in _RIGHTS) + "p"))
        for note in notes:
            if note["n_type"] == "NT_FILE":
                table = note["n_desc"]
                files = [(entry["vm_start"], entry["vm_end"], entry["page_offset"] * table["page_size"],
                          name.decode(errors="replace"))
                         for entry, name in zip(table["Elf_Nt_File_Entry"], table["filename"], strict=True)]
        self._files = files
        self.mappings = []
        for start, _, _, length, rights in self._segments:
            file = next((each for each in files if each[0] <= start < each[1]), None)
            place = file[2] + start - file[0] if file else 0
            self.mappings.append(Mapping(start, start + length, rights, file[3] if file else "", place))
        self.threads = _threads(notes, elf.get_machine_arch())
        if not self._segments:
            raise Failure(f"{path}: the core file has no memory")

    def close(self) -> None:
        self._file.close()

    def read(self, address: int, size: int) -> bytes:
        parts = []
        while size > 0:
            part = self._read_some(address, size)
            if not part:
                raise Unreadable(address)
            parts.append(part)
            address, size = address + len(part), size - len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _read_some(self, address: int, size: int) -> bytes:
        for start, there, offset, length, _ in self._segments:
            if start <= address < start + there:
                at = offset + address - start
                return self._data[at:at + min(size, start + there - address)]
            if start <= address < start + length:
                return self._read_file(address, min(size, start + length - address))
        return b""

    def _read_file(self, address: int, size: int) -> bytes:
        for start, end, offset, name in self._files:
            if start <= address < end:
                try:
                    # A device, or a pipe that now has this name, is not for reading.
                    if not Path(name).is_file():
                        return b""
                    with open(name, "rb") as file:
                        return os.pread(file.fileno(), min(size, end - address), offset + address - start)
                except OSError:
                    return b""
        return b""


def _check_length(path: Path, segment: object, length: int) -> None:
    if (needed := segment["p_offset"] + segment["p_filesz"]) > length:
        raise Failure(f"{path}: the core file is cut off: it has {length} bytes of at least {needed}")


def _threads(notes: list, machine: str) -> list[Thread]:
    name, found = "", []
    for note in notes:
        data = note["n_descdata"]
        if note["n_type"] == "NT_PRPSINFO":
            name = printable(note["n_desc"]["pr_fname"].split(b"\0")[0].decode(errors="replace"))
        elif note["n_type"] == "NT_PRSTATUS":
            found.append([int.from_bytes(data[_NUMBER:_NUMBER + 4], "little"), data[_REGISTERS:-8], b"", b""])
        elif found and note["n_type"] in ("NT_FPREGSET", EXTENDED):
            found[-1][2] = data
        elif found and note["n_type"] in ("NT_ARM_TLS", 0x401):
            found[-1][3] = data
    return [Thread(number, name, *of_machine("aarch64" if machine == "AArch64" else "x86_64", general, pointer),
                   general + floating) for number, general, floating, pointer in found]
