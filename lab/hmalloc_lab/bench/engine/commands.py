"""hmalloc bench engine."""

from pathlib import Path
from typing import Annotated

import typer

from ...errors import Failure
from ..help import Help

PROFILE = "engine"
_BELOW = 1


def engine_command(
        context: typer.Context,
        wants_help: Help = False,
        parts: Annotated[str, typer.Option("--only")] = "",
        names: Annotated[str, typer.Option("--allocators")] = "",
        given: Annotated[list[str] | None, typer.Option("--allocator")] = None,
        no_peers: Annotated[bool, typer.Option("--no-peers")] = False,
        rounds: Annotated[int | None, typer.Option("--rounds", min=1, max=10_000)] = None,
        times: Annotated[int, typer.Option("--times", min=1, max=1000)] = 1,
        seed: Annotated[int, typer.Option("--seed")] = 1,
        db: Annotated[Path | None, typer.Option("--db")] = None,
        out: Annotated[Path | None, typer.Option("--out")] = None,
        check: Annotated[bool, typer.Option("--check")] = False,
        go_on: Annotated[bool, typer.Option("--resume")] = False) -> None:
    from .. import participants, session
    from ..results import Results
    from . import cells

    built = context.obj
    db = db or built.state / "bench" / "engine.db"
    if go_on:
        if parts or names or given or no_peers or rounds or times != 1:
            raise Failure("--resume goes on with the campaign as it was begun: without choosing anything anew")
        number, code = session.go_on(built, db, PROFILE)
    else:
        wanted = _parts(parts, cells.PARTS, cells.USUAL)
        rows = participants.choose(participants.everybody(built, not no_peers, given), names)
        _require(rows, {cells.SYSTEM, cells.EXPLICIT_HMALLOC})
        number, code = session.begin(built, db, PROFILE, cells.chosen(wanted, times), rows, seed, rounds,
                                     {"parts": wanted})
    raise typer.Exit(finish(Results.read(db, number), out or db.with_suffix(".md"), check) or code)


def _parts(text: str, known: tuple[str, ...], usual: tuple[str, ...]) -> list[str]:
    wanted = [part for part in text.split(",") if part]
    for part in wanted:
        if part not in known:
            raise Failure(f"--only {part}: no such part; there are {', '.join(known)}")
    return [part for part in known if part in (wanted or usual)]


def require_known(parts: str) -> None:
    from . import cells

    _parts(parts, cells.PARTS, cells.USUAL)


def _require(rows: list, names: set[str]) -> None:
    if missing := names - {row.name for row in rows}:
        raise Failure(f"--allocators: {' and '.join(sorted(missing))} take part always")


def show(results) -> None:
    from . import table

    print(table.markdown(results), end="")


def finish(results, out: Path | None, check: bool = False) -> int:
    """Prints the tables and writes them; with check the exit code says whether a floor was missed."""
    from . import table, targets

    text = table.markdown(results)
    print(text, end="", flush=True)
    if out:
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(text, encoding="utf-8")
        except OSError as error:
            raise Failure(f"{out}: {error.strerror}", 1) from error
    failed = targets.failures(targets.judged(results)) if check else []
    if failed:
        raise Failure(f"below the floor: {'; '.join(failed)}", _BELOW)
    return 0
