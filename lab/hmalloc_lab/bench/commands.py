"""hmalloc bench: what the user asks for, and how the laboratory's parts are put together for it."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ..build_paths import BuildPaths
from ..errors import Failure
from . import baselines, catalogue
from .cores import commands as cores
from .engine import commands as engine
from .help import Help
from .help import show as show_help
from .mixes import commands as mixes

# The parts are imported where they are used: `compare` and `doctor` do without the laboratory's packages.

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, no_args_is_help=False)
_SETTINGS = {"help_option_names": []}

Db = Annotated[Path | None, typer.Option("--db")]
Against = Annotated[str, typer.Option("--against")]
Names = Annotated[str, typer.Option("--allocators")]


@app.callback(invoke_without_command=True, context_settings=_SETTINGS)
def bench(context: typer.Context, wants_help: Help = False) -> None:
    if context.invoked_subcommand is None:
        show_help(True)


_PROFILES = (*catalogue.PROFILES, baselines.PROFILE)
_WITH_BASELINES = ("full", baselines.PROFILE)


def _cells(profile: str) -> list[catalogue.Cell]:
    return baselines.cells() if profile == baselines.PROFILE else catalogue.cells(profile) + catalogue.apart(profile)


def require_known(profile: str, options: dict) -> None:
    """What does not need anything built to be known as wrong."""
    if profile in _PROFILES:
        from . import selection

        selection.choose(_cells(profile), options["workloads"], options["families"])
    if profile == engine.PROFILE:
        engine.require_known(options["parts"])


# ---- Measuring. -----------------------------------------------------------------------------------------------------


def _add_profile(profile: str) -> None:
    @app.command(profile, context_settings=_SETTINGS)
    def command(
            context: typer.Context, wants_help: Help = False,
            workloads: Annotated[str, typer.Option("--workloads")] = "",
            families: Annotated[str, typer.Option("--families")] = "",
            names: Names = "",
            given: Annotated[list[str] | None, typer.Option("--allocator")] = None,
            no_peers: Annotated[bool, typer.Option("--no-peers")] = False,
            with_baselines: Annotated[bool, typer.Option("--baselines")] = False,
            rounds: Annotated[int | None, typer.Option("--rounds", min=1, max=10_000)] = None,
            seed: Annotated[int, typer.Option("--seed")] = 1,
            db: Db = None, reference: Against = "",
            report: Annotated[Path | None, typer.Option("--report")] = None,
            go_on: Annotated[bool, typer.Option("--resume")] = False) -> None:
        from . import participants, selection, session

        built: BuildPaths = context.obj
        db = session.database(built, db)
        if go_on:
            if workloads or families or names or given or no_peers or with_baselines or rounds:
                raise Failure("--resume goes on with the campaign as it was begun: without choosing anything anew")
            raise typer.Exit(_resume(built, db, profile, reference, report))
        cells = selection.choose(_cells(profile), workloads, families)
        with_baselines |= not names and profile in _WITH_BASELINES
        rows = participants.choose(participants.everybody(built, not no_peers, given), names, with_baselines,
                                 baselines.USUAL if profile == baselines.PROFILE else ())
        session.require_measured(rows, reference)
        number, code = session.begin(built, db, profile, cells, rows, seed, rounds)
        raise typer.Exit(_finish(db, number, reference, report, code))


for _profile in _PROFILES:
    _add_profile(_profile)
app.command(engine.PROFILE, context_settings=_SETTINGS)(engine.engine_command)
app.command(mixes.PROFILE, context_settings=_SETTINGS)(mixes.mixes_command)
app.command(cores.PROFILE, context_settings=_SETTINGS)(cores.cores_command)
_WITH_OWN_TABLES = {engine.PROFILE: engine, mixes.PROFILE: mixes, cores.PROFILE: cores}


@app.command("resume", context_settings=_SETTINGS)
def resume_command(context: typer.Context, wants_help: Help = False, db: Db = None, reference: Against = "",
                   report: Annotated[Path | None, typer.Option("--report")] = None) -> None:
    raise typer.Exit(_resume(context.obj, _database(context.obj, db), "", reference, report))


def _resume(built: BuildPaths, db: Path, profile: str, reference: str, report: Path | None) -> int:
    from . import session

    number, code = session.go_on(built, db, profile, reference)
    return _finish(db, number, reference, report, code)


def _finish(db: Path, number: int, reference: str, report: Path | None, code: int) -> int:
    from . import summary
    from .results import Results

    results, path = Results.read(db, number), report or db.with_suffix(".html")
    if own := _WITH_OWN_TABLES.get(results.campaign.profile):
        return own.finish(results, None, *([path] if own is cores else [])) or code
    summary.show(_console(), results, reference or None)
    if not any(run.status == "ok" for run in results.campaign.runs):
        return code or 1
    _write_page(results, path, db)
    _console().print(f"Report: {path}", soft_wrap=True)
    return code


def _write_page(results, path: Path, db: Path, names: str = "") -> None:
    """What was simulated has a page of its own; the others show it where it lies beside their database."""
    from ..page import cores as simulated
    from ..page import page

    if results.campaign.profile == cores.PROFILE:
        simulated.write(results, path)
    else:
        page.write(results, path, simulated.beside(db, names))


# ---- Looking at what was measured. ----------------------------------------------------------------------------------


def _results(context: typer.Context, db: Path | None, names: str):
    from .results import Results

    results, wanted = Results.read(_database(context.obj, db)), _named(names)
    return results.among(wanted) if wanted else results


def _named(names: str) -> list[str]:
    """Of a list with commas between; a comma too many names nobody."""
    return [name for name in names.split(",") if name]


@app.command("show", context_settings=_SETTINGS)
def show_command(context: typer.Context, wants_help: Help = False, db: Db = None, names: Names = "",
                 reference: Against = "") -> None:
    from . import summary

    results = _results(context, db, names)
    if own := _WITH_OWN_TABLES.get(results.campaign.profile):
        own.show(results)
    else:
        summary.show(_console(), results, reference or None)


@app.command("report", context_settings=_SETTINGS)
def report_command(context: typer.Context, wants_help: Help = False, db: Db = None, names: Names = "",
                   out: Annotated[Path | None, typer.Option("--out")] = None) -> None:
    results, database = _results(context, db, names), _database(context.obj, db)
    path = out or database.with_suffix(".html")
    _write_page(results, path, database, names)
    _console().print(f"Report: {path}", soft_wrap=True)


@app.command("export", context_settings=_SETTINGS)
def export_command(context: typer.Context, out: Annotated[Path, typer.Option("--out")], wants_help: Help = False,
                   db: Db = None, names: Names = "",
                   formats: Annotated[str, typer.Option("--formats")] = "md,svg,png") -> None:
    import tempfile

    from ..page import claims, export
    from . import tables
    from .cores import table
    from .programs import report as programs

    results, wanted = _results(context, db, names), formats.split(",")
    pictures = [each for each in wanted if each != "md"]
    if pictures:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "report.html"
            _write_page(results, path, _database(context.obj, db), names)
            export.export(path, out, pictures)
    if "md" in wanted:
        try:
            out.mkdir(parents=True, exist_ok=True)
            if results.campaign.profile == cores.PROFILE:
                (out / "tables.md").write_text(table.markdown(results), encoding="utf-8")
            else:
                (out / "tables.md").write_text("\n\n".join([tables.markdown(results).rstrip("\n"),
                                                           *programs.markdown(results)]) + "\n", encoding="utf-8")
                (out / "claims.md").write_text(claims.markdown(results, out), encoding="utf-8")
        except OSError as error:
            raise Failure(f"{error.filename or out}: {error.strerror}", 1) from error
    _console().print(f"Written into {out}", soft_wrap=True)


@app.command("plot", context_settings=_SETTINGS)
def plot_command(series: Path, wants_help: Help = False,
                 out: Annotated[Path | None, typer.Option("-o", "--out")] = None,
                 summary: Annotated[Path | None, typer.Option("--summary")] = None) -> None:
    from ..page import simulation

    path = out or series.with_suffix(".html")
    simulation.write(simulation.read(series), series.stem, path, simulation.read_summary(summary) if summary else None)
    _console().print(f"Plots: {path}", soft_wrap=True)


@app.command("compare", context_settings=_SETTINGS)
def compare_command(
        old: Path, new: Annotated[Path | None, typer.Argument()] = None, wants_help: Help = False,
        names: Names = "",
        between: Annotated[str, typer.Option("--between")] = "",
        threshold: Annotated[float, typer.Option("--threshold", min=0.1, max=1000)] = 5.0) -> None:
    from . import compare
    from .results import Results

    if (new is None) != bool(between):
        raise Failure("compare: give two databases, or one and --between OLD,NEW (hmalloc bench --help)")
    if new is None:
        first, comma, second = between.partition(",")
        if not comma or not first or not second:
            raise Failure(f"--between {between}: two allocators are meant, OLD,NEW")
        raise typer.Exit(compare.compare_within(_console(), Results.read(old), first, second, threshold / 100))
    chosen = _named(names) or None
    raise typer.Exit(compare.compare(_console(), Results.read(old), Results.read(new), chosen, threshold / 100))


@app.command("list", context_settings=_SETTINGS)
def list_command(context: typer.Context, profile: Annotated[str, typer.Argument()] = "quick",
                 wants_help: Help = False) -> None:
    from . import participants

    if profile not in _PROFILES:
        raise Failure(f"no profile {profile}: {', '.join(_PROFILES)}")
    console = _console()
    console.print("Allocators")
    for row in participants.everybody(context.obj):
        console.print(f"  {row.name:24} {row.kind:12} {row.version}", markup=False, soft_wrap=True)
    family = ""
    for cell in _cells(profile):
        if cell.family != family:
            family = cell.family
            console.print(f"Cells of {profile}: {family}")
        console.print(f"  {cell.name}", markup=False, soft_wrap=True)


# ---- Small things. --------------------------------------------------------------------------------------------------


def _database(built: BuildPaths, db: Path | None) -> Path:
    from . import session

    return session.database(built, db)


def _console() -> Console:
    return Console(highlight=False)
