"""hmalloc bench cores."""

from pathlib import Path
from typing import Annotated

import typer

from ...errors import Failure
from ..help import Help

PROFILE = "cores"
DATABASE = "cores.db"


def cores_command(
        context: typer.Context,
        wants_help: Help = False,
        cores: Annotated[str, typer.Option("--cores")] = "",
        patterns: Annotated[str, typer.Option("--patterns")] = "",
        operations: Annotated[int | None, typer.Option("--operations", min=64, max=1_000_000)] = None,
        grain: Annotated[int | None, typer.Option("--grain", min=1, max=128)] = None,
        names: Annotated[str, typer.Option("--allocators")] = "",
        given: Annotated[list[str] | None, typer.Option("--allocator")] = None,
        no_peers: Annotated[bool, typer.Option("--no-peers")] = False,
        db: Annotated[Path | None, typer.Option("--db")] = None,
        out: Annotated[Path | None, typer.Option("--out")] = None,
        report: Annotated[Path | None, typer.Option("--report")] = None,
        go_on: Annotated[bool, typer.Option("--resume")] = False) -> None:
    from .. import participants, session
    from ..results import Results
    from . import cells

    built = context.obj
    db = db or built.state / "bench" / DATABASE
    if go_on:
        if cores or patterns or operations or grain or names or given or no_peers:
            raise Failure("--resume goes on with the campaign as it was begun: without choosing anything anew")
        number, code = session.go_on(built, db, PROFILE)
    else:
        operations, grain = operations or cells.OPERATIONS, grain or cells.GRAIN
        if operations < grain:
            raise Failure(f"--operations {operations}: fewer than the {grain} of one turn")
        plan = cells.chosen(_patterns(patterns), _counts(cores), operations, grain)
        rows = [row for row in participants.choose(participants.everybody(built, not no_peers, given), names)
                if row.kind not in ("explicit", "no-allocator")]
        if not rows:
            raise Failure(f"--allocators {names}: none of these can be preloaded")
        if unfit := [row.library for row in rows if "," in row.library]:
            raise Failure(f"{unfit[0]}: cannot be preloaded under the simulator, its path has a comma")
        number, code = session.begin(built, db, PROFILE, plan, rows, seed=0, rounds=1)
    raise typer.Exit(finish(Results.read(db, number), out or db.with_suffix(".md"), report or db.with_suffix(".html"))
                     or code)


def _patterns(text: str) -> list[str]:
    from . import cells

    wanted = [word for word in text.split(",") if word]
    for word in wanted:
        if word not in cells.PATTERNS:
            raise Failure(f"--patterns {word}: no such pattern; there are {', '.join(cells.PATTERNS)}")
    return [pattern for pattern in cells.PATTERNS if not wanted or pattern in wanted]


def _counts(text: str) -> list[int]:
    from . import cells

    counts = []
    for word in filter(None, text.split(",")):
        if not word.isdecimal() or not 1 <= int(word) <= cells.MOST_CORES:
            raise Failure(f"--cores {text}: expected numbers from 1 to {cells.MOST_CORES} with commas between them")
        counts.append(int(word))
    return sorted(set(counts)) or list(cells.CORES)


def show(results) -> None:
    from . import table

    print(table.markdown(results), end="")


def finish(results, out: Path | None, report: Path | None = None) -> int:
    """Prints who moves how many lines on the most cores, and writes that with every number of cores behind it, as a table
    and as a page."""
    from . import table

    print(table.summary(results), flush=True)
    if out:
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(table.markdown(results), encoding="utf-8")
        except OSError as error:
            raise Failure(f"{out}: {error.strerror}", 1) from error
        print(f"\nEvery row: {out}")
    if not any(run.status == "ok" for run in results.campaign.runs):
        return 1
    if report:
        from ...page import cores as page

        page.write(results, report)
        print(f"Report: {report}")
    return 0
