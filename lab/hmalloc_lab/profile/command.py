"""hmalloc profile: runs a program, or reads the profile of one, and shows who allocates and who frees."""

import json
import os
import re
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from ..allocators import choose
from ..build_paths import BuildPaths
from ..errors import Failure
from ..report import check_writable
from . import reader, running
from .advice import advise
from .document import document
from .names import printable
from .sites import build
from .tables import show

RATE = "512K"
_SIZE = re.compile(r"([0-9]{1,18})([KMG]B?)?", re.IGNORECASE)


@dataclass(frozen=True)
class Wanted:
    rate: str = RATE
    top: int = 10
    skip: re.Pattern | None = None
    html: Path | None = None
    json: Path | None = None
    pprof: Path | None = None


def pattern(text: str) -> re.Pattern | None:
    try:
        return re.compile(text) if text else None
    except (re.error, OverflowError, RecursionError) as error:
        raise Failure(f"--skip {text}: not a regular expression: {error}") from error


def rate(text: str) -> str:
    found = _SIZE.fullmatch(text)
    units = {"": 0, "k": 10, "m": 20, "g": 30}
    if not found or not 0 < int(found[1]) << units[(found[2] or "").lower().rstrip("b")] < 1 << 63:
        raise Failure(f"--rate {text}: not a size (512K, 64K, 1M)")
    return text


def profile_run(command: list[str], wanted: Wanted, built: BuildPaths) -> int:
    """Its exit code is the program's."""
    _check(wanted)
    run = running.run(command, choose("hmalloc", built), wanted.rate)
    if run.profile is None:
        raise Failure(f"{command[0]} wrote no profile: {_why(run)}", run.code or 1)
    name = printable(os.path.basename(command[0]))
    failures = _write(wanted.pprof, lambda path: path.write_bytes(run.profile))
    _show(reader.parse(run.profile, f"the profile of {name}"), name, wanted, run.others, failures)
    return run.code


def profile_file(file: Path, wanted: Wanted) -> None:
    found = reader.read(file)
    _check(wanted, file)
    # The first mapping is the program's own code, but for programs that are loaded at a high address.
    names = [os.path.basename(each.file) for each in found.mappings if each.file.startswith("/")]
    _show(found, printable(names[0] if names else file.name), wanted, 0, [])


def _why(run: running.Run) -> str:
    why = f"signal {run.signal} ended it ({signal.strsignal(run.signal)})" if run.signal else \
        "it ended by _exit, or another program took its place"
    return f"{why}; {_processes(run.others)} did: name their program" if run.others else why


def _processes(others: int) -> str:
    return f"{others} more process{'es' if others > 1 else ''}"


def _check(wanted: Wanted, source: Path | None = None) -> None:
    """Now, and not when the program has run."""
    files = [path for path in (wanted.html, wanted.json, wanted.pprof) if path]
    for path in files:
        check_writable(path)
    taken = [path.resolve() for path in [source, *files] if path and (path.is_file() or not path.exists())]
    if twice := next((path for at, path in enumerate(taken) if path in taken[:at]), None):
        raise Failure(f"{printable(str(twice))}: named twice, and would be written over")


def _show(profile: reader.Profile, program: str, wanted: Wanted, others: int, failures: list[Failure]) -> None:
    sharing = build(profile, wanted.skip)
    given = advise(sharing)
    made = document(program, sharing, given)
    failures += [*_write(wanted.json, lambda path: path.write_text(json.dumps(made, indent=1) + "\n")),
                 *_write(wanted.html, lambda path: _page(made, path))]
    show(Console(highlight=False), program, sharing, given, wanted.top)
    if others:
        print(f"hmalloc: {_processes(others)} wrote a profile; this is of the one that was started", file=sys.stderr)
    for failure in failures:
        raise failure


def _page(made: dict, path: Path) -> None:
    from . import page  # the others need none of what it does

    page.write(made, path)


def _write(path: Path | None, write: Callable[[Path], object]) -> list[Failure]:
    """What went wrong; the tables are shown all the same."""
    try:
        if path:
            write(path)
    except OSError as error:
        return [Failure(f"{path}: {error.strerror}", 1)]
    except Failure as failure:
        return [failure]
    return []
