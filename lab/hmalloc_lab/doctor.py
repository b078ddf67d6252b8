"""hmalloc doctor: is hmalloc in use, and if not, why.  The verdict comes first, then what it rests on."""

import os
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from . import allocators, elf
from .allocators import Allocator
from .diagnosis import Diagnosis, diagnose, language_hints
from .errors import Failure
from .programs import resolve

_SYSTEM_LIBRARIES = ("libc.so", "libc-")


@dataclass(frozen=True)
class Report:
    """What doctor prints: one line of verdict, named facts, hints in whole sentences."""

    served: bool
    verdict: str
    facts: list[tuple[str, str]] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)


def examine_program(name: str, hmalloc: Allocator) -> Report:
    program = resolve(name)
    diagnosis = diagnose(program, hmalloc)
    linked_in = "hmalloc" in diagnosis.facts.own_allocators or any(
        allocators.is_hmalloc(library) for library in diagnosis.facts.needed)
    facts = [("program", _describe(diagnosis))]
    if diagnosis.served_by:
        facts.append(("malloc from", str(diagnosis.served_by)))
    if diagnosis.served_without:
        facts.append(("without it", str(diagnosis.served_without)))
    if linked_in:
        return Report(True, f"yes: hmalloc is linked into {name}", facts, diagnosis.hints)
    if diagnosis.obstacle:
        return Report(False, f"no: hmalloc cannot serve {name}: {diagnosis.obstacle}", facts, diagnosis.hints)
    facts += _options_in_effect(hmalloc)
    return Report(True, f"yes: hmalloc serves {name} under `hmalloc run -- {name}`", facts, diagnosis.hints)


def _describe(diagnosis: Diagnosis) -> str:
    facts = diagnosis.facts
    linked = "static" if facts.static else "dynamic"
    chain = " -> ".join(str(path) for path in [*diagnosis.program.scripts, diagnosis.program.binary])
    return f"{chain} (ELF {facts.bits}-bit {facts.machine}, {linked})"


def _options_in_effect(hmalloc: Allocator) -> list[tuple[str, str]]:
    answer = allocators.ask(hmalloc.library)
    if answer is None:
        return []
    facts = [("library", f"hmalloc {answer.version}, {hmalloc.library}")]
    facts += [("options", answer.options)] if answer.options else []
    return facts + [("", remark) for remark in answer.remarks]


def examine_process(pid: int) -> Report:
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            name, facts = process.name(), _process_facts(process)
        maps = Path(f"/proc/{pid}/maps").read_text(errors="replace")
        environment = process.environ()
        binary = Path(process.exe())
    except psutil.NoSuchProcess as error:
        raise Failure(f"{pid}: no such process") from error
    except (psutil.AccessDenied, PermissionError) as error:
        raise Failure(f"{pid}: not allowed to look into this process; try with sudo") from error
    except FileNotFoundError as error:
        raise Failure(f"{pid}: the process has ended") from error
    libraries = sorted({line.split(maxsplit=5)[5] for line in maps.splitlines() if ".so" in line})
    return _judge_process(f"{name} (process {pid})", binary, libraries, environment, facts)


def _judge_process(what: str, binary: Path, libraries: list[str], environment: dict, facts: list) -> Report:
    hints = language_hints(binary, environment)
    mine = next((path for path in libraries if allocators.is_hmalloc(path)), None)
    preload = environment.get("LD_PRELOAD", "")
    options = [f"{name}={value}" for name, value in sorted(environment.items()) if name.startswith("HMALLOC_")]
    facts = [*facts, ("LD_PRELOAD", preload or "not set"), ("options", " ".join(options) or "all at their defaults")]
    if mine:
        if mine.endswith("(deleted)"):
            hints.append("The library has been replaced on disk since; a restart picks up the new one.")
        return Report(True, f"yes: hmalloc serves {what}", [("library", mine), *facts], hints)
    read = _read_if_possible(binary)
    if read and "hmalloc" in read.own_allocators:
        return Report(True, f"yes: hmalloc is linked into {what}", facts, hints)
    return Report(False, f"no: hmalloc does not serve {what}: {_why_absent(read, preload)}", facts,
                  hints + _other_allocators(libraries))


def _read_if_possible(binary: Path) -> elf.ElfFacts | None:
    try:
        return elf.read(binary)
    except Failure:
        return None


def _why_absent(facts: elf.ElfFacts | None, preload: str) -> str:
    entries = [entry for entry in preload.replace(":", " ").split() if allocators.is_hmalloc(entry)]
    if not entries:
        return "it was started without it; start it with `hmalloc run -- PROGRAM`"
    if facts is None:
        return "it was preloaded, but is not there"
    if facts.static:
        return "the program is statically linked, it loads no libraries"
    if facts.privileged:
        return f"the loader ignores LD_PRELOAD for it: {facts.privileged}"
    if facts.musl:
        return "the program uses musl, hmalloc needs glibc"
    missing = next((entry for entry in entries if not os.path.exists(entry)), None)
    return f"{missing} does not exist" if missing else "the loader did not accept the library in LD_PRELOAD"


def _other_allocators(libraries: list[str]) -> list[str]:
    known = ("jemalloc", "mimalloc", "tcmalloc", "snmalloc", "rpmalloc")
    others = [path for path in libraries if any(name in os.path.basename(path) for name in known)
              or os.path.basename(os.path.dirname(path)) == "classics"]
    return [f"It runs with {', '.join(others)}."] if others else []


def _process_facts(process: psutil.Process) -> list[tuple[str, str]]:
    facts = [("program", process.exe()), ("threads", str(process.num_threads()))]
    rollup = {}
    for line in Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()[1:]:
        key, value = line.split(":")
        rollup[key] = int(value.split()[0])
    memory = [f"{rollup['Rss'] / 1024:.1f} MiB resident", f"{rollup['Pss'] / 1024:.1f} MiB proportional",
              f"{rollup['Anonymous'] / 1024:.1f} MiB anonymous"]
    for key, name in (("AnonHugePages", "in huge pages"), ("Swap", "swapped")):
        if rollup.get(key):
            memory.append(f"{rollup[key] / 1024:.1f} MiB {name}")
    return [*facts, ("memory", ", ".join(memory))]
