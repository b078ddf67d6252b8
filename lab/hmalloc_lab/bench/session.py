"""A campaign from its beginning, or from where it was interrupted, to its end."""

import shlex
import sys
from pathlib import Path

from rich.console import Console

from ..build_paths import BuildPaths
from ..errors import Failure
from ..progress import Progress
from . import campaign, environment, participants, selection, traces, trial
from .catalogue import Cell
from .store import AllocatorRow, Store

_INTERRUPTED = 130


def begin(built: BuildPaths, db: Path, profile: str, cells: list[Cell], rows: list[AllocatorRow], seed: int,
          rounds: int | None, more: dict | None = None) -> tuple[int, int]:
    """The campaign's number, and the exit code.  more: of its environment."""
    console = _console()
    with Store(db, create=True) as kept, campaign.alone(db.parent):
        cells, files = selection.possible(built, cells, console)
        settings = campaign.SETTINGS[profile]
        facts = environment.describe() | {"traces": _checksums(files)} | (more or {})
        if rounds is None and settings.budget_s:
            facts[campaign.BUDGET] = settings.budget_s
        command = shlex.join(["hmalloc", "bench", *sys.argv[sys.argv.index("bench") + 1:]])
        number = kept.begin(trial.now(), profile, command, seed, rounds or settings.rounds, facts, cells, rows)
        return number, _run(built, kept, number, files, console)


def go_on(built: BuildPaths, db: Path, profile: str, reference: str = "") -> tuple[int, int]:
    """With the last campaign, of that profile, that has not come to its end."""
    console = _console()
    with Store(db) as kept, campaign.alone(db.parent):
        number = kept.unfinished(profile)
        if number is None:
            raise Failure(f"{db}: no {profile + ' ' if profile else ''}campaign in it is unfinished")
        begun = kept.load(number)
        participants.require_unchanged(begun.allocators)
        require_measured(begun.allocators, reference)
        files, missing = traces.provide(built, begun.cells)
        if missing or _checksums(files) != begun.environment["traces"]:
            raise Failure(f"the traces in {built.state / 'bench' / 'traces'} have changed since the campaign began: "
                          "it cannot go on, begin a new one")
        console.print(f"going on with campaign {number}: {begun.profile}, begun {begun.started[:16].replace('T', ' ')}",
                      markup=False)
        return number, _run(built, kept, number, files, console)


def require_measured(rows: list[AllocatorRow], reference: str) -> None:
    if reference and reference not in {row.name for row in rows}:
        raise Failure(f"--against {reference}: not among those measured: {', '.join(row.name for row in rows)}")


def database(built: BuildPaths, db: Path | None) -> Path:
    return db or built.state / "bench" / "lab.db"


def _run(built: BuildPaths, kept: Store, number: int, files: dict[str, Path], console: Console) -> int:
    try:
        with Progress(console, "warming up") as progress:
            campaign.Runner(built, kept, number, progress, files).run()
    except KeyboardInterrupt:
        option = "" if kept.path == database(built, None) else f" with --db {kept.path}"
        console.print(f"interrupted: what was measured is in {kept.path}; hmalloc bench resume goes on{option}",
                      markup=False, soft_wrap=True)
        return _INTERRUPTED
    return 0


def _checksums(files: dict[str, Path]) -> dict[str, str]:
    return {name: participants.checksum(file) for name, file in files.items()}


def _console() -> Console:
    return Console(stderr=True, highlight=False)
