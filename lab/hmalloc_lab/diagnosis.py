"""Whether preloading hmalloc reaches a program, and if not, why: from the program's file, without running it."""

import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

from . import dry_link, elf
from .allocators import Allocator
from .elf import ElfFacts
from .programs import Program


@dataclass(frozen=True)
class Diagnosis:
    program: Program
    facts: ElfFacts
    obstacle: str | None
    """Why hmalloc cannot serve the program, as the end of a sentence; None if it can."""
    served_by: Path | None
    served_without: Path | None
    hints: list[str]


def diagnose(program: Program, allocator: Allocator) -> Diagnosis:
    facts = elf.read(program.binary)
    obstacle = _obstacle(facts)
    served_by = served_without = None
    linkable = facts.glibc and not facts.privileged and (obstacle is None or own_malloc(facts) is not None)
    if linkable and _same_machine(facts):
        served_without = dry_link.malloc_provider(program.binary, "", facts.exports_malloc)
        served_by = dry_link.malloc_provider(program.binary, allocator.preload(""), facts.exports_malloc)
    if obstacle is None and allocator.library and served_by and served_by.resolve() != allocator.library:
        obstacle = f"{served_by} comes before it"
    return Diagnosis(program, facts, obstacle, served_by, served_without, _hints(program, facts, served_without))


def _same_machine(facts: ElfFacts) -> bool:
    # x32 programs are for this machine, but not for this library.
    return facts.bits == 64 and facts.machine == platform.machine()


def _obstacle(facts: ElfFacts) -> str | None:
    if not _same_machine(facts):
        return f"the program is for another architecture ({facts.bits}-bit {facts.machine})"
    if facts.static:
        kind = "a Go program with its own heap" if facts.is_go else "it loads no libraries"
        return f"the program is statically linked: {kind}"
    if facts.musl:
        return "the program uses musl, and this library glibc: build one for musl (docs/servers.md)"
    if facts.privileged:
        return f"the loader ignores LD_PRELOAD for the program: {facts.privileged}"
    if facts.sanitizer:
        return f"the program is built with {facts.sanitizer}, which brings its own malloc"
    return own_malloc(facts)


def own_malloc(facts: ElfFacts) -> str | None:
    """Why the program's own calls go to itself, as the end of a sentence."""
    own = f" ({', '.join(facts.own_allocators)})" if facts.own_allocators else ""
    if facts.exports_malloc:
        return f"the program defines malloc itself{own}, and the program comes before any preload"
    if facts.hides_malloc:
        return f"the program defines malloc itself{own}, for its own calls; only its libraries' calls reach a preload"
    return None


def _hints(program: Program, facts: ElfFacts, served_without: Path | None) -> list[str]:
    hints = []
    for script in program.scripts:
        hints.append(f"{script} is a script, run by {program.binary}; hmalloc serves what it starts as well, "
                     "and compare measures all of it.")
    if served_without and not served_without.name.startswith(("libc.so", "libc-")) and not facts.exports_malloc:
        hints.append(f"Without a preload its malloc is {served_without.name}; a preload wins over that "
                     "(compare --against glibc: over glibc's malloc).")
    elif facts.own_allocators and not facts.exports_malloc:
        hints.append(f"{', '.join(facts.own_allocators)} is linked into it under names of its own; calls to those "
                     "names do not reach a preload.")
    return hints + language_hints(program.binary, os.environ)


def language_hints(binary: Path, environment) -> list[str]:
    """What the languages' own heaps keep from any malloc."""
    name = binary.name
    if re.fullmatch(r"python[\d.]*", name) and environment.get("PYTHONMALLOC") not in ("malloc", "malloc_debug"):
        return ["CPython keeps blocks up to 512 bytes in a heap of its own; PYTHONMALLOC=malloc in the environment "
                "sends them to malloc."]
    if name in ("java", "node", "dotnet", "mono"):
        return [f"The objects of {name} live in a heap of its own; only its native parts call malloc."]
    return []
