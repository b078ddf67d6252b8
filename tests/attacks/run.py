#!/usr/bin/env python3
"""What an attacker gets on the default, the checked and the hardened library: `run.py`, `run.py double_free unsafe_unlink`.

--tags: on the hardened library with memory tags alone, where the processor has them.
--table: prints a table of them, the system's malloc and whatever libraries are named (NAME=PATH.so) instead of comparing.
"""
import argparse
import dataclasses
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

LIBRARIES = {"default": "libhmalloc.so", "checked": "libhmalloc-checked.so", "hardened": "libhmalloc-hardened.so"}
TIMES = 3  # the hardened library draws places
GOT = 10  # attacks.c
# What may come of it: "got" what the attacker wanted, "nothing", "ended" by the library with a message, or a "fault" at the
# access.  In the default, the checked and the hardened library.
EXPECTED = {
    "tcache_poisoning": ("nothing", "nothing", "ended"),
    "free_list_poisoning": ("nothing", "nothing", "ended"),
    "overflow_poisoning": ("nothing", "nothing", "nothing"),  # where words are left zero nothing is written
    "overflow_poisoning_hidden": ("nothing", "nothing", "nothing"),
    "double_free": ("got", "ended", "ended"),
    "double_free_unmarked": ("got", "ended", "ended"),
    "double_free_far": ("ended", "ended", "ended"),
    "double_free_reused": ("got", "got", "ended"),
    "double_free_by_two_threads": ("ended", "ended", "ended"),
    "house_of_spirit": ("ended", "ended", "ended"),
    "fake_block_inside": ("ended", "ended", "ended"),
    "overlapping_blocks": ("nothing", "nothing", "nothing ended"),
    "poison_null_byte": ("nothing", "nothing", "nothing ended"),
    "unsafe_unlink": ("nothing", "nothing", "nothing ended"),
    "house_of_muney": ("nothing", "nothing", "fault"),
    "house_of_force": ("nothing", "nothing", "nothing ended"),
    "overflow_into_neighbour": ("got", "got", "ended"),
    "overflow_of_a_large_block": ("got", "got", "fault"),
    "type_confusion": ("got", "got", "nothing"),
    "type_confusion_by_spray": ("got", "got", "nothing"),
    "cross_cache": ("got", "got", "got nothing"),  # after 20,000 frees the block serves again
    "stale_large_block": ("got", "got", "fault"),
    "uninitialised_memory": ("got", "got", "nothing"),
    "read_after_free": ("got", "got", "nothing"),
}


# With tags, where the hardened library ends otherwise without.
WITH_TAGS = dict.fromkeys((
    "tcache_poisoning", "free_list_poisoning", "overflow_poisoning", "overflow_poisoning_hidden", "double_free_unmarked",
    "unsafe_unlink", "house_of_force", "overflow_into_neighbour", "type_confusion", "type_confusion_by_spray", "read_after_free"),
    "fault") | {"cross_cache": "fault got nothing"}  # in one case of 13 the block serves again with the same tag
EMULATOR: list[str] = []


@dataclasses.dataclass(frozen=True)
class Ending:
    kind: str
    said: str  # the last line, without those that say more


def attack(program: Path, name: str, library: Path | str, more: dict[str, str]) -> Ending:
    preload = {"LD_PRELOAD": str(library)} if library else {}
    command = [*EMULATOR, *(["-E", f"LD_PRELOAD={library}"] if EMULATOR and library else []), program, name]
    try:
        run = subprocess.run(command, env=os.environ | more | ({} if EMULATOR else preload), capture_output=True, text=True, timeout=300, check=False)
    except subprocess.TimeoutExpired:
        return Ending("hangs", "")
    kind = {0: "nothing", GOT: "got", -signal.SIGABRT: "ended", -signal.SIGSEGV: "fault", -signal.SIGBUS: "fault",
            -signal.SIGILL: "ended", -signal.SIGTRAP: "ended"}.get(run.returncode, f"status {run.returncode}")
    # Without what is known of the block, and the word of an emulator of processes.
    said = [line for line in run.stderr.splitlines() if not line.startswith(("  ", "qemu: "))]
    return Ending(kind, (said or run.stdout.splitlines() or [""])[-1])


def endings(program: Path, name: str, library: Path | str, more: dict[str, str] | None = None) -> list[Ending]:
    return [attack(program, name, library, more or {}) for _ in range(TIMES)]


def compare(program: Path, build: Path, names: list[str], tags: bool) -> int:
    wrong = 0
    for name in names:
        found = {kind: (build / library, expected, {})
                 for (kind, library), expected in zip(LIBRARIES.items(), EXPECTED[name], strict=True)}
        if tags:
            library, expected, _ = found["hardened"]
            found = {"with tags": (library, WITH_TAGS.get(name, expected), {"HMALLOC_TAGS": "1"})}
        for kind, (library, expected, more) in found.items():
            for ending in endings(program, name, library, more):
                line_is_ours = ending.kind != "ended" or ending.said.startswith("hmalloc: ")
                if ending.kind not in expected.split() or not line_is_ours:
                    wrong += 1
                    print(f"failed {name}, {kind}: expected {expected}; {ending.kind} {ending.said}")
    libraries = "the hardened library with tags" if tags else f"{len(LIBRARIES)} libraries"
    print(f"{len(names)} attacks on {libraries}, {TIMES} times each: {wrong} ended otherwise than expected")
    return 1 if wrong else 0


def table(program: Path, libraries: dict[str, Path | str], names: list[str],
          environments: dict[str, dict[str, str]] | None = None) -> str:
    """In Markdown.  What came of several tries is joined; the last row counts the attacks that got something."""
    gains = dict.fromkeys(libraries, 0)
    lines = ["| attack | " + " | ".join(libraries) + " |", "|---|" + "---|" * len(libraries)]
    for name in names:
        row = []
        for kind, library in libraries.items():
            kinds = sorted({ending.kind for ending in endings(program, name, library, (environments or {}).get(kind))})
            gains[kind] += "got" in kinds
            row.append(" or ".join(f"**{each}**" if each == "got" else each for each in kinds))
        lines.append(f"| `{name}` | " + " | ".join(row) + " |")
    lines.append("| got something | " + " | ".join(f"{count} of {len(names)}" for count in gains.values()) + " |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="attacks, all without")
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--program", type=Path)
    parser.add_argument("--tags", action="store_true")
    parser.add_argument("--emulator", default="", help="the command that runs programs of another architecture")
    parser.add_argument("--table", nargs="*", metavar="NAME=PATH")
    options = parser.parse_args()
    program = options.program or options.build / "tests" / "attacks" / "attacks"
    if unknown := [name for name in options.names if name not in EXPECTED]:
        parser.error(f"no attack {', '.join(unknown)}; there are {', '.join(EXPECTED)}")
    EMULATOR[:] = shlex.split(options.emulator)
    known = subprocess.run([*EMULATOR, program], capture_output=True, text=True, check=True).stdout.split()
    if set(known) != set(EXPECTED):
        parser.error(f"{program} has other attacks than this: {', '.join(sorted(set(known) ^ set(EXPECTED)))}")
    names = options.names or list(EXPECTED)
    if options.table is None:
        return compare(program, options.build, names, options.tags)
    ours = {kind: options.build / library for kind, library in LIBRARIES.items()}
    others = dict(text.partition("=")[::2] for text in options.table)
    print(table(program, ours | {"glibc": ""} | others, names))
    return 0


if __name__ == "__main__":
    sys.exit(main())
