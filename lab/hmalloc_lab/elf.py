"""What an executable's file says about its malloc: loader, architecture, libraries, allocator symbols."""

import os
from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from .errors import NOT_EXECUTABLE, Failure

_SANITIZERS = {
    "__asan_init": "AddressSanitizer",
    "__tsan_init": "ThreadSanitizer",
    "__msan_init": "MemorySanitizer",
    "__hwasan_init": "HWAddressSanitizer",
}
_SANITIZER_LIBRARIES = {
    "libasan": "AddressSanitizer",
    "libtsan": "ThreadSanitizer",
    "libhwasan": "HWAddressSanitizer",
    "libclang_rt.asan": "AddressSanitizer",
    "libclang_rt.tsan": "ThreadSanitizer",
    "libclang_rt.hwasan": "HWAddressSanitizer",
}
# A symbol that only this allocator has: the mark of a copy linked into the program.
_ALLOCATOR_MARKS = {
    "hm_version": "hmalloc",
    "je_malloc": "jemalloc",
    "_rjem_malloc": "jemalloc",
    "mallctl": "jemalloc",
    "mi_malloc": "mimalloc",
    "tc_malloc": "tcmalloc",
    "TCMallocInternalMalloc": "tcmalloc",
    "rpmalloc": "rpmalloc",
}
_ALLOCATOR_LIBRARIES = ("hmalloc", "jemalloc", "mimalloc", "tcmalloc", "snmalloc", "rpmalloc", "hoard", "tbbmalloc")
_CODE = ("STT_FUNC", "STT_LOOS", "STT_GNU_IFUNC", "STT_NOTYPE")  # pyelftools calls an indirect function LOOS
# The kernel's names for what pyelftools calls otherwise.
_MACHINES = {"x64": "x86_64", "AArch64": "aarch64", "RISC-V": "riscv64"}


@dataclass(frozen=True)
class ElfFacts:
    bits: int
    machine: str
    loader: str | None
    needed: list[str]
    sanitizer: str | None
    own_allocators: list[str]
    """Allocators linked into the file itself."""
    exports_malloc: bool
    """Its own malloc is visible to the libraries, so that it wins over any preload."""
    hides_malloc: bool
    """It has a malloc for its own calls; what the libraries call is another."""
    is_go: bool
    privileged: str | None
    """Why the loader ignores LD_PRELOAD for it, if this user starts it: setuid, setgid or file capabilities."""
    privileged_for_others: str | None
    """The same, if an ordinary user does that it does not belong to."""

    @property
    def static(self) -> bool:
        return self.loader is None

    @property
    def musl(self) -> bool:
        return self.loader is not None and "ld-musl" in self.loader

    @property
    def glibc(self) -> bool:
        return self.loader is not None and os.path.basename(self.loader).startswith("ld-linux")

    @property
    def allocator_libraries(self) -> list[str]:
        return [name for name in self.needed if any(known in name for known in _ALLOCATOR_LIBRARIES)]


def exports_malloc(path: Path) -> bool:
    """False also for what cannot be read."""
    try:
        return read(path).exports_malloc
    except Failure:
        return False


def read(path: Path) -> ElfFacts:
    try:
        with path.open("rb") as file:
            return _read(ELFFile(file), path)
    except (ELFError, OSError) as error:
        raise Failure(f"{path}: cannot be read as an ELF file: {error}", NOT_EXECUTABLE) from error


def _read(elf: ELFFile, path: Path) -> ElfFacts:
    needed = [tag.needed for section in elf.iter_sections() if isinstance(section, DynamicSection)
              for tag in section.iter_tags("DT_NEEDED")]
    loader = next((s.get_interp_name() for s in elf.iter_segments("PT_INTERP")), None)
    machine = elf.get_machine_arch()
    exported, marks = _symbols(elf)
    return ElfFacts(
        bits=elf.elfclass, machine=_MACHINES.get(machine, machine), loader=loader, needed=needed,
        sanitizer=_sanitizer(needed, marks),
        own_allocators=sorted({name for mark, name in _ALLOCATOR_MARKS.items() if mark in marks}),
        exports_malloc="malloc" in exported, hides_malloc="malloc" in marks - exported,
        is_go=elf.get_section_by_name(".note.go.buildid") is not None,
        privileged=_privileged(path, os.getuid(), os.getgid()), privileged_for_others=_privileged(path, -1, -1))


def _symbols(elf: ELFFile) -> tuple[set[str], set[str]]:
    """What the file defines for others, and which of the telling names it defines at all."""
    telling = _ALLOCATOR_MARKS.keys() | _SANITIZERS.keys() | {"malloc"}
    exported, marks = set(), set()
    for section in elf.iter_sections():
        if not isinstance(section, SymbolTableSection):
            continue
        for symbol in section.iter_symbols():
            if symbol.name in telling and symbol["st_shndx"] != "SHN_UNDEF" and symbol["st_info"]["type"] in _CODE:
                marks.add(symbol.name)
                if section["sh_type"] == "SHT_DYNSYM":
                    exported.add(symbol.name)
    return exported, marks


def _sanitizer(needed: list[str], defined: set[str]) -> str | None:
    for library in needed:
        for prefix, name in _SANITIZER_LIBRARIES.items():
            if library.startswith(prefix):
                return name
    return next((name for symbol, name in _SANITIZERS.items() if symbol in defined), None)


def _privileged(path: Path, user: int, group: int) -> str | None:
    status = path.stat()
    # For the owner's own processes a set bit changes nothing, and the loader stays in its normal mode.
    if status.st_mode & 0o4000 and status.st_uid != user:
        return "it is setuid"
    if status.st_mode & 0o2000 and status.st_gid != group:
        return "it is setgid"
    try:
        os.getxattr(path, "security.capability")
    except OSError:
        return None
    # root gains nothing by them.
    return "it has file capabilities" if user != 0 else None
