"""Reads x86-64 instructions (objdump's text)."""
import re

from access import Access

MEMORY = re.compile(r"(?P<segment>%[fg]s:)?(?P<offset>-?0x[0-9a-f]+)?\((?P<base>%\w+)?(?:,(?P<index>%\w+),(?P<scale>\d))?\)")
SUFFIXES = {"b": 1, "w": 2, "l": 4, "q": 8}
# Read and compute, or only compare.
READS = re.compile(r"(cmp|test|add|or|and|xor|sub|imul|bt|cmov\w+?|adc|sbb)[bwlq]?$")
NEITHER = ("lea", "prefetch", "nop", "call", "jmp", "push", "pop", "endbr", "notrack", "data16", "cs", "bnd")
LEGACY = {"a": "rax", "b": "rbx", "c": "rcx", "d": "rdx"}


def register(name):
    """(64-bit name, bytes)"""
    name = name.lstrip("%")
    if match := re.match(r"r(\d+)([bwd]?)$", name):
        return f"r{match[1]}", {"b": 1, "w": 2, "d": 4, "": 8}[match[2]]
    if match := re.match(r"([er]?)([abcd])x$", name):
        return LEGACY[match[2]], {"": 2, "e": 4, "r": 8}[match[1]]
    if match := re.match(r"([abcd])l$", name):
        return LEGACY[match[1]], 1
    if match := re.match(r"([er]?)(si|di|bp|sp|ip)(l?)$", name):
        return f"r{match[2]}", 1 if match[3] else {"": 2, "e": 4, "r": 8}[match[1]]
    return re.sub(r"mm(\d)$", r"mm0\1", name), 16  # of vectors


def split(operands):
    return [part.strip() for part in re.findall(r"(?:[^,(]|\([^)]*\))+", operands)]


def address_of(text, comment, registers):
    match = MEMORY.match(text)
    if match["segment"]:
        return None  # the thread's own
    if match["base"] == "%rip":
        return int(re.match(r"\s*([0-9a-f]+)", comment)[1], 16)
    address = int(match["offset"] or "0", 16)
    for part, scale in ((match["base"], 1), (match["index"], int(match["scale"] or 1))):
        if part:
            address += registers[register(part)[0]] * scale
    return address & (1 << 64) - 1


def value_of(text, registers, size):
    if text.startswith("$"):
        value = int(text[1:], 16)
    else:
        value = registers.get(register(text)[0])
    return None if value is None else value & (1 << 8 * size) - 1


def size_of(name, operands):
    sizes = [register(o)[1] for o in operands if o.startswith("%") and not MEMORY.match(o)]
    if match := re.match(r"mov[sz]([bwl])[wlq]$", name):
        return SUFFIXES[match[1]]
    return sizes[0] if sizes else SUFFIXES.get(name[-1], 16)


def accesses(name, locked, operands, registers, size):
    last = bool(MEMORY.match(operands[-1]))
    if name.startswith("xchg"):
        source = operands[0] if last else operands[1]
        return [Access("swap", value=value_of(source, registers, size))]
    if name.startswith("cmpxchg") and locked:
        expected = registers["rax"] & (1 << 8 * size) - 1
        return [Access("cas", value=value_of(operands[0], registers, size), expected=expected)]
    if locked or name.startswith(("movss", "movsd", "movd", "movh", "movl", "vmov")) and size > 8:
        return [Access("unknown")]
    if name.startswith("mov"):
        return [Access("store", value=value_of(operands[0], registers, size)) if last else Access("load")]
    if re.match(r"(cmp|test|bt)[bwlq]?$", name) or (READS.match(name) and not last):
        return [Access("load")]
    return [Access("unknown")]


def decode(text, registers):
    """(bytes, address, access) of each access of an instruction."""
    text, _, comment = text.partition("#")
    words = re.sub(r"<[^>]*>", "", text).split(None, 1)
    locked = words[0] == "lock"
    if locked:
        words = words[1].split(None, 1)
    if words[0] in ("mfence", "sfence", "lfence"):
        return [(0, 0, Access("fence", name=words[0].upper()))]
    if len(words) < 2 or words[0].startswith(NEITHER):
        return []
    operands = split(words[1].strip())
    memory = [operand for operand in operands if MEMORY.match(operand)]
    if not memory or (address := address_of(memory[0], comment, registers)) is None:
        return []
    size = size_of(words[0], operands)
    return [(size, address, access) for access in accesses(words[0], locked, operands, registers, size)]


class Writer:
    """A thread for herd7.  Registers hold what they need from the start."""
    ARCHITECTURE = "X86_64"
    POINTERS = ("rdi", "rsi", "rdx", "rcx", "rbx")
    VALUES = tuple(f"r{n}" for n in range(8, 16))

    def __init__(self, thread):
        self.thread, self.lines, self.starts = thread, [], []
        self.reads, self.conditions, self.addresses = [], [], {}
        self.pointers, self.values = list(self.POINTERS), list(self.VALUES)

    def register(self, start=None, pool=None):
        name = (self.values if pool is None else pool).pop(0)
        self.starts.append(f"uint64_t {self.thread}:{name};" if start is None else f"{self.thread}:{name}={start};")
        return name

    def address(self, access):
        if access.word not in self.addresses:
            self.addresses[access.word] = self.register(access.word, self.pointers)
        return f"{access.offset or ''}(%{self.addresses[access.word]})"

    @staticmethod
    def sized(name, size):
        return f"%{name}" + {1: "b", 2: "w", 4: "d", 8: ""}[size]

    def constant(self, value, size):
        return self.sized(self.register(f"{value:#x}"), size) if value >> 31 else f"${value}"

    def add(self, access):
        if access.kind == "fence":
            self.lines.append(access.name.lower())
            return
        memory, size, suffix = self.address(access), access.size, {n: s for s, n in SUFFIXES.items()}[access.size]
        if access.kind == "store":
            self.lines.append(f"mov{suffix} {self.constant(access.value, size)},{memory}")
            return
        target = self.register(f"{access.value:#x}" if access.kind == "swap" else None)
        if access.kind == "load":
            self.lines.append(f"mov{suffix} {memory},{self.sized(target, size)}")
        elif access.kind == "swap":
            self.lines.append(f"xchg{suffix} {self.sized(target, size)},{memory}")
        else:  # herd7 reads the operands of this one the other way round
            value = self.sized(self.register(f"{access.value:#x}"), size)
            self.lines += [f"movq {self.constant(access.expected, 8)},%rax",
                           f"lock cmpxchg{suffix} {memory},{value}", f"movq %rax,%{target}"]
        self.reads.append((access.word, f"{self.thread}:{target}"))
