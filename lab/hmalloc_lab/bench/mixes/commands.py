"""hmalloc bench mixes."""

import secrets
from pathlib import Path
from typing import Annotated

import typer

from ...errors import Failure
from ..help import Help

PROFILE = "mixes"
_SEEDS = 1_000_000  # of those that are drawn: short enough to be typed again
_MIXES = 10
_MOST_THREADS = 1024


def mixes_command(
        context: typer.Context,
        wants_help: Help = False,
        mixes: Annotated[int | None, typer.Option("--mixes", min=1, max=1000)] = None,
        threads: Annotated[str, typer.Option("--threads")] = "",
        steps: Annotated[int | None, typer.Option("--steps", min=100_000, max=100_000_000)] = None,
        names: Annotated[str, typer.Option("--allocators")] = "",
        given: Annotated[list[str] | None, typer.Option("--allocator")] = None,
        no_peers: Annotated[bool, typer.Option("--no-peers")] = False,
        rounds: Annotated[int | None, typer.Option("--rounds", min=1, max=10_000)] = None,
        seed: Annotated[int | None, typer.Option("--seed", min=0, max=2**31)] = None,
        db: Annotated[Path | None, typer.Option("--db")] = None,
        out: Annotated[Path | None, typer.Option("--out")] = None,
        go_on: Annotated[bool, typer.Option("--resume")] = False) -> None:
    from .. import participants, session
    from ..results import Results
    from . import cells

    built = context.obj
    db = db or built.state / "bench" / "mixes.db"
    if go_on:
        if mixes or threads or steps or names or given or no_peers or rounds or seed is not None:
            raise Failure("--resume goes on with the campaign as it was begun: without choosing anything anew")
        number, code = session.go_on(built, db, PROFILE)
    else:
        counts = _counts(threads)
        if steps and steps < 1000 * max(counts, default=max(cells.SEVERAL)):
            raise Failure(f"--steps {steps}: fewer than 1000 for each thread")
        rows = [row for row in participants.choose(participants.everybody(built, not no_peers, given), names)
                if row.kind not in ("explicit", "no-allocator")]
        if not rows:
            raise Failure(f"--allocators {names}: none of these can be preloaded")
        seed = secrets.randbelow(_SEEDS) if seed is None else seed
        typer.echo(f"hmalloc: seed {seed}; with --seed {seed} the same mixes are drawn again", err=True)
        number, code = session.begin(built, db, PROFILE, cells.drawn(seed, mixes or _MIXES, counts, steps), rows, seed,
                                     rounds)
    raise typer.Exit(finish(Results.read(db, number), out or db.with_suffix(".md")) or code)


def _counts(text: str) -> list[int]:
    counts = []
    for word in filter(None, text.split(",")):
        if not word.isdecimal() or not 1 <= int(word) <= _MOST_THREADS:
            raise Failure(f"--threads {text}: expected numbers from 1 to {_MOST_THREADS} with commas between them")
        counts.append(int(word))
    return list(dict.fromkeys(counts))


def show(results) -> None:
    from . import table

    print(table.markdown(results), end="")


def finish(results, out: Path | None) -> int:
    """Prints who is fast and who is lean, and writes that with every row behind it."""
    from . import table

    print(table.summary(results), flush=True)
    if out:
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(table.markdown(results), encoding="utf-8")
        except OSError as error:
            raise Failure(f"{out}: {error.strerror}", 1) from error
        print(f"\nEvery row: {out}")
    return 0 if any(run.status == "ok" for run in results.campaign.runs) else 1
