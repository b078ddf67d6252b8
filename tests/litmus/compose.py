"""Litmus tests for herd7 from scenarios and traces."""
import dataclasses
import itertools
import re

import aarch64
import x86_64
from scenarios import SCENARIOS

WRITERS = {"aarch64": aarch64.Writer, "x86_64": x86_64.Writer}
READS = ("load", "ldx", "swap", "cas")
MAPPED = re.compile(r"0x[1-9a-f]\w{8,11}$")  # an address; a row of states has more digits


@dataclasses.dataclass(frozen=True)
class Litmus:
    name: str
    scenario: str
    fault: str     # "" for the right one
    text: str


def window(traces, name):
    accesses = traces[name.removesuffix("...")]
    if not name.endswith("..."):
        return accesses
    end = next(i for i, access in enumerate(accesses) if access.kind in ("cas", "swap", "stx"))
    return accesses[:end + 1]


def numbered(threads):
    """Addresses that are stored become 1, 2 and so on: where the system puts memory is not the test's business."""
    numbers = {}

    def plain(access):
        if access.value is None or not MAPPED.match(f"{access.value:#x}"):
            return access
        return dataclasses.replace(access, value=numbers.setdefault(access.value, len(numbers) + 1))
    return [[plain(access) for access in thread] for thread in threads]


def matters(access, later, number, scenario):
    """Not, of what was traced: accesses to words that the scenario does not name, and plain reads that `wrong` does not
    ask for.  It must stand without what they order."""
    if access.kind == "fence":
        return True
    if access.word not in scenario.words:
        return False
    asked = f"{number}:{access.word}=" in scenario.wrong and not any(a.word == access.word and a.kind in READS for a in later)
    return access.kind != "load" or access.acquire or asked


def threads_of(scenario, traces):
    threads = []
    for number, parts in enumerate(scenario.threads):
        whole = [access for part in parts for access in (window(traces, part) if isinstance(part, str) else [part])]
        threads.append([a for i, a in enumerate(whole) if matters(a, whole[i + 1:], number, scenario)])
    return numbered(threads)


def condition(scenario, writers):
    """`wrong` with registers in place of reads, and all exclusive pairs successful."""
    def register(match):
        return [name for word, name in writers[int(match[1])].reads if word == match[2]][-1] + "="
    text = re.sub(r"\b(\d):([a-z]+)=", register, scenario.wrong)
    pairs = [c for writer in writers for c in writer.conditions]
    return " /\\ ".join([*pairs, f"({text})"]) if pairs else text


def table(columns):
    widths = [max(map(len, column)) for column in columns]
    rows = itertools.zip_longest(*columns, fillvalue="")
    return [" " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " ;" for row in rows]


def litmus_text(scenario, threads, machine, name, note):
    writers = [WRITERS[machine](number) for number in range(len(threads))]
    for writer, thread in zip(writers, threads):
        for access in thread:
            writer.add(access)
    types = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t"}
    start = [f"{types[size]} {word}={value:#x};" for word, (size, value) in scenario.words.items()]
    columns = [[f"P{number}", *writer.lines] for number, writer in enumerate(writers)]
    return "\n".join([f"{writers[0].ARCHITECTURE} {name}", f'"{note}"', "Variant=mixed", "{", " ".join(start),
                      *(" ".join(writer.starts) for writer in writers), "}", *table(columns),
                      f"exists ({condition(scenario, writers)})", ""])


def compose(traces, machine, variant):
    """All tests of one machine and compiler; a fault that changes nothing there is left out."""
    tests = []
    for scenario in SCENARIOS:
        right = threads_of(scenario, traces)
        note = f"hand-over {scenario.row}: {scenario.says}"
        versions = {"": right, **{fault: change(right) for fault, change in scenario.faults.items()}}
        seen = set()
        for fault, threads in versions.items():
            name = f"{variant}.{scenario.name}" + (f".{fault}" if fault else "")
            body = litmus_text(scenario, threads, machine, "", "")
            if body in seen:
                continue  # on x86 a release or an acquire is a plain access: there is nothing to drop
            seen.add(body)
            title = re.sub(r"\W", "_", name)
            tests.append(Litmus(name, scenario.name, fault, litmus_text(scenario, threads, machine, title, note)))
    return tests
