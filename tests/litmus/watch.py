"""What the compiler made of a hand-over: the accesses of its functions to the words that they share, in their order.

probes.cc is linked with the sources it asks about and run under qemu-user, one instruction at a time.  From the registers
before each instruction and from its disassembly follow the address, the size, the value and the order of its access.
"""
import dataclasses
import os
import pathlib
import re
import subprocess

import aarch64
import x86_64

SOURCES = ("base/lock", "base/process", "base/address_map", "core/superblock",
           "large/extent_table", "api/allocator", "core/small_heap")
# As the library is compiled (CMakeLists.txt, HM_SUBSET); the rest of it stays away, for no window reaches it.
FLAGS = ("-std=gnu++20 -O2 -fPIC -fno-exceptions -fno-rtti -fno-threadsafe-statics -ftls-model=initial-exec "
         "-fvisibility=hidden -fno-builtin-malloc -fno-plt -fno-semantic-interposition -DHM_LIBC_CALLS").split()
LINK = ("-static", "-Wl,--unresolved-symbols=ignore-all")
HERE = pathlib.Path(__file__).resolve().parent


class UnknownValue(Exception):
    """A store of what the log does not have."""


@dataclasses.dataclass(frozen=True)
class Target:
    name: str
    machine: str   # aarch64 or x86_64
    compiler: tuple
    cpu: str       # of qemu: without LSE the helpers of libgcc take exclusive pairs, with it one instruction


def run(command, **how):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **how)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stdout[-1000:]}{done.stderr[-3000:]}")
    return done.stdout


def made_of(target):
    """The files that an object was compiled from; none if there is no object."""
    depends = target.with_suffix(".d")
    if not target.exists() or not depends.exists():
        return []
    return depends.read_text().replace("\\\n", " ").split(":", 1)[1].split()


def is_current(target):
    names = made_of(target) and [*made_of(target), __file__]  # the flags stand here
    return bool(names) and all(os.path.exists(n) and os.path.getmtime(n) <= target.stat().st_mtime for n in names)


@dataclasses.dataclass(frozen=True)
class Change:
    """A tree with one changed file, which goes before the tree of all; and where the objects of that one lie."""
    tree: pathlib.Path
    file: str
    objects: pathlib.Path


def object_of(source, compiler, root, work, change):
    """The object of a source, compiled if there is none; of an unchanged one that of the unchanged tree."""
    if change:
        kept = change.objects / f"{source.stem}.o"
        if not any(name.endswith(change.file) for name in made_of(kept)):
            return kept
        source = changed if (changed := change.tree / source.relative_to(root)).exists() else source
    target = work / f"{source.stem}.o"
    access = ["-fno-access-control", "-fno-optimize-sibling-calls"] if source == HERE / "probes.cc" else []
    trees = [*([change.tree] if change else []), root]
    if not is_current(target):
        run([*compiler, *FLAGS, *access, *(f"-I{tree}/{room}" for tree in trees for room in ("src", "include")), "-MMD", "-c",
             source, "-o", target])
    return target


def build(compiler, root, work, change):
    work.mkdir(parents=True, exist_ok=True)
    sources = [HERE / "probes.cc", *(root / "src" / f"{name}.cc" for name in SOURCES)]
    run([*compiler, *LINK, *(object_of(source, compiler, root, work, change) for source in sources), "-o", work / "probes"])
    return work / "probes"


def symbols(program):
    """name -> (address, size)"""
    table = {}
    for line in run(["nm", "-S", program]).splitlines():
        parts = line.split()
        if len(parts) == 4 and parts[2] in "tTwW":
            table[parts[3]] = int(parts[0], 16), int(parts[1], 16)
    return table


def disassembly(program, machine):
    tool = "aarch64-linux-gnu-objdump" if machine == "aarch64" else "objdump"
    lines = run([tool, "-d", "--no-show-raw-insn", "-w", program]).splitlines()
    found = (re.match(r"\s*([0-9a-f]+):\s+(.+?)\s*$", line) for line in lines)
    return {int(match[1], 16): match[2] for match in found if match}


def ranges(table):
    """What to watch: our functions, and the atomics that the compiler's own library has."""
    own = [place for name, place in table.items() if re.match(r"window_|main$|_ZNK?2hm|_ZN12_GLOBAL", name)]
    helpers = [place for name, place in table.items() if name.startswith("__aarch64_")]
    first, last = min(a for a, _ in own), max(a + n for a, n in own)
    return ",".join(f"{a:#x}..{b - 1:#x}" for a, b in [(first, last), *((a, a + n) for a, n in helpers if n)])


def execute(program, target, table, log, vectors):
    """The windows' names and words as the program says them; and its log."""
    emulator = f"qemu-{target.machine}"
    step = "-one-insn-per-tb" if "one-insn-per-tb" in run([emulator, "-h"]) else "-singlestep"
    said = run([emulator, "-cpu", target.cpu, step, "-d", f"cpu,nochain{',fpu' if vectors else ''}", "-D", log,
                "-dfilter", ranges(table), program], timeout=300)
    windows = []
    for line in said.splitlines():
        what, name, *place = line.split()
        if what == "window":
            windows.append((name, []))
        else:
            windows[-1][1].append((name, int(place[0], 16), int(place[1])))
    return windows


def steps(log):
    """(address of an instruction that was run, the text of the registers before it)"""
    for text in re.split(r"^(?= PC=|RAX=)", log.read_text(), flags=re.M)[1:]:
        yield int(re.search(r"\b(?:PC|RIP)=([0-9a-f]{16})", text)[1], 16), text


def registers_of(text):
    found = re.findall(r"\b([A-Z][A-Z0-9]{1,4}) ?=([0-9a-f]{16}(?:[: ]?[0-9a-f]{16})?)\b", text)
    return {name.lower(): int(re.sub("[: ]", "", value), 16) for name, value in found}


def split_windows(table, code, log):
    """The steps of each window, in the order of the program: from its entry until it returns to where it was called."""
    entries = {place[0] for name, place in table.items() if name.startswith("window_")}
    stub, length = table["_ZN2hm11system_callElllllll"]  # of the probes
    after = dict(zip(sorted(code), sorted(code)[1:]))
    here, back, before = None, None, None
    for pc, text in steps(log):
        if here is not None and pc == back:
            yield here
            here = None
        if here is None and pc in entries:
            here, back = [], after[before]
        if here is not None and not stub <= pc < stub + length:
            here.append((pc, text))
        before = pc


def placed(words, address, size, access):
    """The access as one to a word of the window, or None.  Of a wide store, of a vector say, the part that is the word's."""
    for name, start, length in words:
        if start <= address and address + size <= start + length:
            return dataclasses.replace(access, word=name, offset=address - start, size=size)
        if address <= start and start + length <= address + size and access.kind == "store" and not access.release:
            if access.value is None:
                raise UnknownValue(name)
            value = access.value >> 8 * (start - address) & (1 << 8 * length) - 1
            return dataclasses.replace(access, word=name, size=length, value=value)
        if address < start + length and start < address + size:
            raise RuntimeError(f"{size} bytes at {address:#x} reach over the edge of {name}")
    return None


def collapsed(accesses):
    """Without the rounds of a loop that waits: of plain reads in a row the last."""
    kept = []
    for access in accesses:
        if kept and access == kept[-1] and access.kind == "load":
            continue
        kept.append(access)
    return kept


def accesses_of(window, target, code):
    """What the steps of a window do to its words."""
    name, words, here = window
    decode = {"aarch64": aarch64.decode, "x86_64": x86_64.decode}[target.machine]
    found = []
    for pc, text in here:
        if "[" not in code[pc] and "(" not in code[pc] and not re.match("dmb|dsb|[msl]fence", code[pc]):
            continue
        for size, address, access in decode(code[pc], registers_of(text)):
            found.append(access if access.kind == "fence" else placed(words, address, size, access))
            if found[-1] and found[-1].kind == "unknown":
                raise RuntimeError(f"{name}: no translation yet of: {code[pc]}")
    return collapsed([access for access in found if access])


def trace(target, root, work, vectors=False, change=None):
    """Window -> its accesses.  vectors: with their registers, which makes the log ten times as long."""
    program = build(target.compiler, root, work, change)
    table, code = symbols(program), disassembly(program, target.machine)
    log = work / f"{target.name}.log"
    windows = execute(program, target, table, log, vectors)
    split = split_windows(table, code, log)
    try:
        return {name: accesses_of((name, words, here), target, code)
                for (name, words), here in zip(windows, split, strict=True)}
    except UnknownValue:
        if vectors:
            raise
        return trace(target, root, work, True, change)
    finally:
        log.unlink(missing_ok=True)
