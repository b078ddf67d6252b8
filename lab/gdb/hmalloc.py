"""Commands for gdb, of a program or a core file that it has before it:

    (gdb) source lab/gdb/hmalloc.py
    (gdb) hmalloc block EXPRESSION     what an address is, and what lies around it
    (gdb) hmalloc heap [OPTIONS]       what lies in the heap
    (gdb) hmalloc leaks                which blocks nothing refers to

Each asks `hmalloc inspect`, which needs nothing of gdb's Python."""

import re
import subprocess
import tempfile
from pathlib import Path

import gdb

_LAB = Path(__file__).resolve().parents[1]
# In the source tree, and where it is installed.
_LAUNCHER = next((path for path in (_LAB.parent / "hmalloc", _LAB.parents[2] / "bin/hmalloc") if path.is_file()), None)


def _target() -> str:
    """The number of the process, or the core file."""
    target = gdb.execute("info target", to_string=True)
    if core := re.search(r"Local core dump file:\s*`(.*)', file type", target):
        return core[1]
    process = gdb.selected_inferior()
    if not process.pid or "remote" in target.lower():
        raise gdb.GdbError("hmalloc: there is no process or core file of this machine (run, attach or core-file)")
    return str(process.pid)


def _inspect(*arguments: str) -> None:
    if _LAUNCHER is None:
        raise gdb.GdbError(f"hmalloc: there is no launcher beside {_LAB}")
    done = subprocess.run([_LAUNCHER, "inspect", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False)
    gdb.write(done.stdout)
    if done.returncode != 0:
        raise gdb.GdbError(done.stderr.strip())


class Hmalloc(gdb.Command):
    """What lies in the heap of a program that runs on hmalloc."""

    def __init__(self) -> None:
        super().__init__("hmalloc", gdb.COMMAND_DATA, prefix=True)


class Block(gdb.Command):
    """hmalloc block EXPRESSION: says what this address is, and what lies around it."""

    def __init__(self) -> None:
        super().__init__("hmalloc block", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument: str, from_terminal: bool) -> None:
        if not argument:
            raise gdb.GdbError("hmalloc block: which address?")
        _inspect(_target(), "--block", hex(int(gdb.parse_and_eval(argument)) % (1 << 64)))


class Heap(gdb.Command):
    """hmalloc heap [OPTIONS]: what lies in the heap, with the options of hmalloc inspect (--top, --json, --picture)."""

    def __init__(self) -> None:
        super().__init__("hmalloc heap", gdb.COMMAND_DATA)

    def invoke(self, argument: str, from_terminal: bool) -> None:
        _inspect(_target(), *gdb.string_to_argv(argument))


class Leaks(gdb.Command):
    """hmalloc leaks: which blocks nothing refers to.  Of a process, by way of a core file that is removed again."""

    def __init__(self) -> None:
        super().__init__("hmalloc leaks", gdb.COMMAND_DATA)

    def invoke(self, argument: str, from_terminal: bool) -> None:
        target = _target()
        if not target.isdecimal():
            _inspect(target, "--leaks", *gdb.string_to_argv(argument))
            return
        with tempfile.TemporaryDirectory() as folder:
            gdb.execute(f"generate-core-file {folder}/core", to_string=True)
            _inspect(f"{folder}/core", "--leaks", *gdb.string_to_argv(argument))


Hmalloc()
Block()
Heap()
Leaks()
