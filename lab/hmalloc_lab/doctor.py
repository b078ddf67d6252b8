"""hmalloc doctor: is hmalloc in use, and if not, why.  The verdict comes first, then what it rests on."""

import os
import re
import struct
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil

from . import allocators, elf
from .allocators import Allocator
from .diagnosis import Diagnosis, diagnose, language_hints, own_malloc
from .errors import Failure
from .programs import resolve

_AT_SECURE = 23


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
    verdict = f"yes: hmalloc serves {name} under `hmalloc run -- {name}`"
    if (reason := diagnosis.facts.privileged_for_others):
        verdict = f"{verdict} for {'root' if os.getuid() == 0 else 'its owner'}; no for an ordinary user: {reason}"
    return Report(True, verdict, facts, diagnosis.hints)


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
        binary, secure = Path(f"/proc/{pid}/exe"), _runs_secure(pid)
    except psutil.NoSuchProcess as error:
        raise Failure(f"{pid}: no such process") from error
    except (psutil.AccessDenied, PermissionError) as error:
        raise Failure(f"{pid}: not allowed to look into this process; try with sudo") from error
    except (FileNotFoundError, ProcessLookupError) as error:
        raise Failure(f"{pid}: the process has ended, or is a thread of the kernel's") from error
    libraries = sorted({line.split(maxsplit=5)[5] for line in maps.splitlines() if ".so" in line})
    return _judge_process(f"{name} (process {pid})", _read_if_possible(binary, secure), libraries, environment, facts,
                          language_hints(Path(os.path.realpath(binary)), environment))


def _runs_secure(pid: int) -> bool:
    """Whether the kernel has told the loader to ignore the environment: the process gained rights when it began."""
    words = Path(f"/proc/{pid}/auxv").read_bytes()
    pairs = struct.iter_unpack("=QQ", words[:len(words) // 16 * 16])
    return any(key == _AT_SECURE and value for key, value in pairs)


def _judge_process(what: str, read: elf.ElfFacts | None, libraries: list[str], environment: dict, facts: list,
                   hints: list[str]) -> Report:
    mine = next((path for path in libraries if allocators.is_hmalloc(path)), None)
    preload = environment.get("LD_PRELOAD", "")
    options = [f"{name}={value}" for name, value in sorted(environment.items()) if name.startswith("HMALLOC_")]
    facts = [*facts, ("LD_PRELOAD", preload or "not set"), ("options", " ".join(options) or "all at their defaults")]
    if read and "hmalloc" in read.own_allocators:
        return Report(True, f"yes: hmalloc is linked into {what}", facts, hints)
    if mine:
        if mine.endswith("(deleted)"):
            hints.append("The library has been replaced on disk since; a restart picks up the new one.")
        facts = [("library", mine), *facts]
        if winner := _who_comes_first(read, mine, libraries, preload):
            return Report(False, f"no: hmalloc is loaded into {what}, but does not serve it: {winner}", facts, hints)
        if read and read.privileged_for_others:
            hints.append(f"Started by an ordinary user it gets no preload: {read.privileged_for_others}.")
        return Report(True, f"yes: hmalloc serves {what}", facts, hints)
    return Report(False, f"no: hmalloc does not serve {what}: {_why_absent(read, preload)}", facts,
                  hints + _other_allocators(libraries))


def _who_comes_first(read: elf.ElfFacts | None, mine: str, libraries: list[str], preload: str) -> str | None:
    """Whose malloc the loader finds before ours: the program's own, or that of a library preloaded before."""
    if read and (reason := own_malloc(read)):
        return reason
    before = re.split(r"[ :]+", preload)
    ours = next((at for at, entry in enumerate(before) if allocators.is_hmalloc(entry)), 0)
    names = {os.path.basename(entry) for entry in before[:ours] if entry}
    first = next((path for path in libraries if path != mine and os.path.basename(path) in names
                  and elf.exports_malloc(Path(path))), None)
    return f"{first} comes before it" if first else None


def _read_if_possible(binary: Path, secure: bool) -> elf.ElfFacts | None:
    """What the process's file says, and whether this process, not one of ours, lost its preloads."""
    try:
        facts = elf.read(binary)
    except Failure:
        return None
    reason = facts.privileged_for_others or "it gained rights when it was started"
    return replace(facts, privileged=reason if secure else None)


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
        return "the program uses musl, and this library glibc: build one for musl (docs/servers.md)"
    missing = next((entry for entry in entries if not os.path.exists(entry)), None)
    return f"{missing} does not exist" if missing else "the loader did not accept the library in LD_PRELOAD"


def _other_allocators(libraries: list[str]) -> list[str]:
    known = ("jemalloc", "mimalloc", "tcmalloc", "snmalloc", "rpmalloc")
    others = [path for path in libraries if any(name in os.path.basename(path) for name in known)
              or os.path.basename(os.path.dirname(path)) == "baselines"]
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
