"""Reads AArch64 instructions (objdump's text) and writes them for herd7."""
import re

from access import Access

SIMPLE = re.compile(r"(?P<way>ld|st)(?P<order>u|a|ap|ax|x|l|lx)?r(?P<size>s?[bhw])?$")
ATOMIC = re.compile(r"(?P<kind>swp|cas)(?P<acquire>a?)(?P<release>l?)(?P<size>[bh]?)$")
BYTES = {"b": 1, "h": 2, "sb": 1, "sh": 2, "sw": 4}
VALUES = {"wzr": 0, "xzr": 0}


def value_of(register, registers, size):
    if register in VALUES:
        return VALUES[register]
    value = registers.get(f"{'x' if register[0] in 'wx' else 'q'}{int(register[1:]):02}")
    return None if value is None else value & (1 << 8 * size) - 1


def pointer(name, registers):
    return registers["sp"] if name == "sp" else registers[f"x{int(name[1:]):02}"]


def address_of(operand, registers):
    """Of what stands in brackets."""
    inside, after = re.match(r"\[([^\]]*)\]!?(.*)", operand).groups()
    base, *rest = [part.strip() for part in inside.split(",")]
    address = pointer(base, registers)
    if rest and rest[0].startswith("#"):
        address += int(rest[0][1:], 0)
    elif rest:
        index = registers[f"x{int(rest[0][1:]):02}"]
        how = rest[1] if len(rest) > 1 else ""
        if rest[0][0] == "w":
            index &= 0xffffffff
            if how.startswith("sxtw") and index >> 31:
                index -= 1 << 32
        shift = re.search(r"#(\d+)", how)
        address += index << int(shift[1]) if shift else index
    return address & (1 << 64) - 1


def size_of(register, suffix):
    return BYTES.get(suffix) or {"w": 4, "x": 8, "b": 1, "h": 2, "s": 4, "d": 8, "q": 16}[register[0]]


def decode_simple(match, operands, registers, memory):
    load, order = match["way"] == "ld", (match["order"] or "").replace("u", "")
    register = operands[0] if load or "x" not in order else operands[1]  # first the status
    size = size_of(register, match["size"])
    kind = {True: ("ldx", "load"), False: ("stx", "store")}[load]["x" not in order]
    if load:
        return [(size, memory, Access(kind, acquire={"a": "A", "ax": "A", "ap": "Q"}.get(order, "")))]
    return [(size, memory, Access(kind, release=order.startswith("l"), value=value_of(register, registers, size)))]


def decode(text, registers):
    """(bytes, address, access) of each access of an instruction."""
    name, _, rest = text.split("//")[0].split(" <")[0].partition("\t")
    name, rest = name.strip(), rest.strip()
    if name in ("dmb", "dsb"):
        return [(0, 0, Access("fence", name=f"{name.upper()} {rest.upper()}"))]
    if "[" not in rest or name.startswith("prf"):
        return []
    operands, memory = [part.strip() for part in rest.split("[")[0].split(",") if part.strip()], rest[rest.index("["):]
    memory = address_of(memory, registers)
    if match := SIMPLE.match(name):
        return decode_simple(match, operands, registers, memory)
    if match := ATOMIC.match(name):
        size = size_of(operands[0], match["size"])
        first, second = (value_of(register, registers, size) for register in operands[:2])
        kind = "swap" if match["kind"] == "swp" else "cas"
        return [(size, memory, Access(kind, acquire=match["acquire"].upper(), release=bool(match["release"]),
                                      value=first if kind == "swap" else second, expected=None if kind == "swap" else first))]
    if name in ("ldp", "stp"):
        size = size_of(operands[0], "")
        values = [None if name == "ldp" else value_of(register, registers, size) for register in operands[:2]]
        kind = "load" if name == "ldp" else "store"
        return [(size, memory + i * size, Access(kind, value=values[i])) for i in range(2)]
    return [(16, memory, Access("unknown"))]


class Writer:
    """A thread for herd7.  Registers hold what they need from the start."""
    ARCHITECTURE = "AArch64"

    def __init__(self, thread):
        self.thread, self.lines, self.starts = thread, [], []
        self.reads, self.conditions, self.addresses, self.free = [], [], {}, 0

    def register(self, start=None):
        name = f"X{self.free}"
        self.free += 1
        self.starts.append(f"uint64_t {self.thread}:{name};" if start is None else f"{self.thread}:{name}={start};")
        return name

    def address(self, access):
        where = access.word, access.offset
        if (access.word, 0) not in self.addresses:
            self.addresses[access.word, 0] = self.register(access.word)
        if where not in self.addresses:
            self.addresses[where] = name = self.register()
            self.lines.append(f"ADD {name},{self.addresses[access.word, 0]},#{access.offset}")
        return f"[{self.addresses[where]}]"

    def result(self, access, name):
        self.reads.append((access.word, f"{self.thread}:{name}"))

    def add(self, access):
        if access.kind == "fence":
            self.lines.append(access.name)
            return
        memory, size = self.address(access), {1: "B", 2: "H"}.get(access.size, "")
        sized = (lambda name: name) if access.size == 8 else (lambda name: "W" + name[1:])
        order = access.acquire + ("L" if access.release else "")
        value = self.register(f"{access.value:#x}") if access.value is not None else None
        if access.kind == "cas":
            target = self.register(f"{access.expected:#x}")
            self.lines.append(f"CAS{order}{size} {sized(target)},{sized(value)},{memory}")
        elif access.kind == "stx":
            status = self.register()
            self.lines.append(f"ST{order}XR{size} W{status[1:]},{sized(value)},{memory}")
            self.conditions.append(f"{self.thread}:{status}=0")
            return
        elif access.kind == "store":
            self.lines.append(f"ST{order}R{size} {sized(value)},{memory}")
            return
        else:
            target = self.register()
            load = {"": "LDR", "A": "LDAR", "Q": "LDAPR"}[access.acquire] if access.kind == "load" else f"LD{order}XR"
            self.lines.append(f"SWP{order}{size} {sized(value)},{sized(target)},{memory}" if access.kind == "swap" else
                              f"{load}{size} {sized(target)},{memory}")
        self.result(access, target)
