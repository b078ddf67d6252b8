"""Finds what a command line really starts: along PATH, through `#!` lines, down to an ELF file."""

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from .errors import NOT_EXECUTABLE, NOT_FOUND, Failure

# An interpreter may be a script itself, as often as the kernel allows.
_MOST_INTERPRETERS = 5


@dataclass(frozen=True)
class Program:
    """What the user named, and the binary that the kernel loads for it."""

    name: str
    path: Path
    binary: Path
    scripts: list[Path] = field(default_factory=list)


def find(name: str) -> Path:
    """The file that a shell would start for this name; a Failure with the shell's exit codes otherwise.

    Absolute: pathlib takes the `./` of `./prog` away, and whoever starts or opens a bare `prog` gets another one from
    PATH.  Not normalised any further, for `link/../prog` is not `prog` where `link` is a symbolic link."""
    found = shutil.which(name)
    if found:
        return Path(found).absolute()
    if "/" not in name or not os.path.exists(name):
        raise Failure(f"{name}: program not found", NOT_FOUND)
    if os.path.isdir(name):
        raise Failure(f"{name}: is a directory", NOT_EXECUTABLE)
    raise Failure(f"{name}: not executable", NOT_EXECUTABLE)


def resolve(name: str) -> Program:
    path = find(name)
    binary, scripts = path, []
    while len(scripts) < _MOST_INTERPRETERS and (interpreter := _interpreter(binary)):
        scripts.append(binary)
        binary = find(interpreter)
    return Program(name=name, path=path, binary=binary, scripts=scripts)


def _interpreter(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            first = file.readline(256)
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}", NOT_EXECUTABLE) from error
    if first.startswith(b"\x7fELF"):
        return None
    if not first.startswith(b"#!"):
        # No `#!` and no ELF: execvp and the shells hand such a file to /bin/sh.
        return "/bin/sh"
    words = first[2:].decode(errors="replace").split()
    if not words:
        raise Failure(f"{path}: its first line names no interpreter", NOT_EXECUTABLE)
    if os.path.basename(words[0]) != "env":
        # The kernel does not search PATH: `#!sh` is ./sh.
        return os.path.join(os.curdir, words[0])
    # `#!/usr/bin/env -S NAME=VALUE python3 -u`: the first word that is neither an option nor an assignment.
    options = iter(words[1:])
    for word in options:
        if word in ("-u", "--unset", "-C", "--chdir"):
            next(options, None)
        elif not word.startswith("-") and "=" not in word:
            return word
    return os.path.join(os.curdir, words[0])
