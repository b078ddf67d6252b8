"""The command line of the tools that need Python; the launcher `hmalloc` passes its arguments on to here."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from . import report
from .allocators import choose, choose_several, told_apart
from .bench import commands as bench
from .build_paths import BuildPaths
from .compare import Plan, compare
from .diagnosis import diagnose
from .doctor import examine_process, examine_program
from .errors import USAGE, Failure
from .job import Job
from .output import LostOutput, flush_standard_output, guard_standard_output
from .profile import command as profiles
from .programs import resolve
from .progress import Progress

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, no_args_is_help=False)
_HELP = Path(__file__).resolve().parent.parent / "help"
_ONLY_READ = "--only-read"
_COMMAND_LINE = {"ignore_unknown_options": False, "allow_interspersed_args": False, "help_option_names": []}


def _show_help(context: typer.Context, wanted: bool) -> None:
    if wanted:
        print((_HELP / f"{context.info_name}.txt").read_text(), end="")
        raise typer.Exit()


# The launcher shows the same texts, without Python.
Help = Annotated[bool, typer.Option("-h", "--help", is_eager=True, callback=_show_help)]
Command = Annotated[list[str] | None, typer.Argument()]


@app.callback()
def start(context: typer.Context,
          library: Annotated[Path | None, typer.Option(hidden=True)] = None,
          measurer: Annotated[Path | None, typer.Option(hidden=True)] = None) -> None:
    context.obj = BuildPaths(library, measurer)


@app.command("compare", context_settings=_COMMAND_LINE)
def compare_command(
        context: typer.Context,
        command: Command = None,
        wants_help: Help = False,
        rounds: Annotated[int, typer.Option("-n", "--runs", min=1, max=100_000)] = 10,
        stop_after: Annotated[str, typer.Option("--for")] = "",
        load: Annotated[str, typer.Option("--load")] = "",
        names: Annotated[list[str] | None, typer.Option("--allocator")] = None,
        reference: Annotated[str, typer.Option("--against")] = "system",
        input_file: Annotated[Path | None, typer.Option("--input")] = None,
        show_output: Annotated[bool, typer.Option("--show-output")] = False,
        json_file: Annotated[Path | None, typer.Option("--json", readable=False)] = None) -> None:
    built: BuildPaths = context.obj
    if not command:
        print("hmalloc: no program named, so this is the example: a log in a pipeline of threads", file=sys.stderr)
        command = [str(built.example)]
    if input_file and (input_file.is_dir() or not os.access(input_file, os.R_OK)):
        raise Failure(f"{input_file}: cannot be read")
    if json_file:
        report.check_writable(json_file)  # now, and not when all has been measured
    base, *candidates = told_apart([choose(reference, built), *choose_several(names or ["hmalloc"], built)])
    if stop_after and load:
        raise Failure("--for and --load exclude each other: the server is stopped when the load is done")
    job = Job(command, built.measurer, _duration(stop_after), load, input_file, show_output)
    program = resolve(command[0])
    plan = Plan(job, base, [(each, diagnose(program, each)) for each in candidates], rounds)
    opening = f"comparing: {rounds} round{'s' if rounds > 1 else ''}"
    with Progress(Console(stderr=True, highlight=False), opening, with_bar=not show_output) as progress:
        comparison = compare(plan, progress.counted(plan.steps))
    report.show_comparison(Console(highlight=False), comparison, job, plan.candidates[0][1].hints)
    if json_file:
        report.write_json(json_file, comparison, command)
    raise typer.Exit(0 if comparison.same_behaviour else 1)


@app.command("doctor", context_settings=_COMMAND_LINE)
def doctor_command(context: typer.Context, command: Command = None, wants_help: Help = False) -> None:
    if not command:
        raise Failure("doctor: which program? (hmalloc doctor --help)")
    if command[0].isdecimal() and len(command) == 1:
        found = examine_process(int(command[0]))
    else:
        found = examine_program(command[0], choose("hmalloc", context.obj))
    report.show_doctor(Console(highlight=False), found)
    raise typer.Exit(0 if found.served else 1)


@app.command("profile", context_settings=_COMMAND_LINE)
def profile_command(
        context: typer.Context,
        command: Command = None,
        wants_help: Help = False,
        rate: Annotated[str, typer.Option("--rate")] = "",
        top: Annotated[int, typer.Option("--top", min=1, max=1_000_000)] = 10,
        skip: Annotated[str, typer.Option("--skip")] = "",
        html_file: Annotated[Path | None, typer.Option("--html", readable=False)] = None,
        json_file: Annotated[Path | None, typer.Option("--json", readable=False)] = None,
        pprof_file: Annotated[Path | None, typer.Option("--pprof", readable=False)] = None,
        from_file: Annotated[Path | None, typer.Option("--from", readable=False)] = None) -> None:
    wanted = profiles.Wanted(profiles.rate(rate or profiles.RATE), top, profiles.pattern(skip), html_file, json_file,
                             pprof_file)
    if from_file and (command or rate or pprof_file):
        raise Failure("profile: --from reads what is there: no program, --rate or --pprof (hmalloc profile --help)")
    if from_file:
        profiles.profile_file(from_file, wanted)
        raise typer.Exit(0)
    if not command:
        raise Failure("profile: which program? (hmalloc profile --help)")
    raise typer.Exit(profiles.profile_run(command, wanted, context.obj))


@app.command("pdes", context_settings=_COMMAND_LINE)
def pdes_command(
        command: Command = None,
        live: Annotated[bool, typer.Option("--live")] = False,
        page: Annotated[Path | None, typer.Option("--html", readable=False)] = None,
        name: Annotated[str, typer.Option("--name")] = "") -> None:
    from . import watch  # it takes a while to load the page's library, which the others do not need

    if not command:
        raise Failure("pdes: which model? (hmalloc pdes --help)")
    raise typer.Exit(watch.run(Console(stderr=True, highlight=False), command, name, live, page))


@app.command("inspect", context_settings={**_COMMAND_LINE, "allow_interspersed_args": True})
def inspect_command(
        what: Annotated[str, typer.Argument()] = "",
        wants_help: Help = False,
        stop: Annotated[bool, typer.Option("--stop")] = False,
        leaks: Annotated[bool, typer.Option("--leaks")] = False,
        block: Annotated[str, typer.Option("--block")] = "",
        every: Annotated[str, typer.Option("--every")] = "",
        diff: Annotated[bool, typer.Option("--diff")] = False,
        top: Annotated[int, typer.Option("--top", min=1, max=1_000_000)] = 16,
        json_file: Annotated[Path | None, typer.Option("--json", readable=False)] = None,
        blocks_file: Annotated[Path | None, typer.Option("--blocks", readable=False)] = None,
        picture_file: Annotated[Path | None, typer.Option("--picture", readable=False)] = None) -> None:
    from .inspect import command  # it takes a while to load numpy, which the others do not need

    if not what:
        raise Failure("inspect: which process, or which core file? (hmalloc inspect --help)")
    if diff and not every:
        raise Failure("inspect: --diff compares with the look before: say --every how long")
    if every and (leaks or block or json_file or blocks_file or picture_file):
        raise Failure("inspect: --every shows tables; no --leaks, --block or file")
    command.inspect(what, command.Wanted(stop, leaks, command.address(block), _duration(every, "--every"), diff, top,
                                         json_file, blocks_file, picture_file))


@app.command("top", context_settings=_COMMAND_LINE)
def top_command(
        what: Annotated[str, typer.Argument()] = "",
        wants_help: Help = False,
        every: Annotated[str, typer.Option("--every")] = "1s") -> None:
    from .inspect import top  # as above

    if not what:
        raise Failure("top: which process? (hmalloc top --help)")
    top.watch(what, _duration(every, "--every"))


@app.command("stats", context_settings={**_COMMAND_LINE, "allow_interspersed_args": True})
def stats_command(
        what: Annotated[str, typer.Argument()] = "",
        wants_help: Help = False,
        as_json: Annotated[bool, typer.Option("--json")] = False,
        openmetrics: Annotated[bool, typer.Option("--openmetrics")] = False,
        watch: Annotated[str, typer.Option("--watch")] = "") -> None:
    from .inspect import statistics  # as above

    if not what:
        raise Failure("stats: which process? (hmalloc stats --help)")
    if as_json and openmetrics:
        raise Failure("stats: --json or --openmetrics, not both")
    statistics.show(what, "json" if as_json else "openmetrics" if openmetrics else "", _duration(watch, "--watch"))


@app.command("export", context_settings={**_COMMAND_LINE, "allow_interspersed_args": True})
def export_command(
        what: Annotated[list[str] | None, typer.Argument()] = None,
        wants_help: Help = False,
        listen: Annotated[str, typer.Option("--listen")] = "") -> None:
    from .inspect import statistics  # as above

    if not what:
        raise Failure("export: which processes? (hmalloc export --help)")
    statistics.export(what, listen or statistics.ADDRESS)


app.add_typer(bench.app, name="bench")


def _duration(text: str, option: str = "--for") -> float:
    """Seconds in `10`, `10s`, `500ms`, `2m`; 0 for the empty string."""
    if not text:
        return 0.0
    for suffix, factor in (("ms", 0.001), ("s", 1.0), ("m", 60.0), ("", 1.0)):
        if text.endswith(suffix):
            try:
                seconds = float(text.removesuffix(suffix)) * factor
            except ValueError:
                break
            if 0.01 <= seconds <= 86400:
                return seconds
            break
    raise Failure(f"{option} {text}: not a length of time (10s, 500ms, 2m)")


def main() -> None:
    guard_standard_output()
    try:
        code = _run()
        flush_standard_output()
    except LostOutput as lost:
        code = lost.code if lost.reader_left else _complain(f"standard output: {lost}", lost.code)
    sys.exit(code)


def _run() -> int | None:
    try:
        if sys.argv[1:2] == [_ONLY_READ]:
            return _read(sys.argv[2:])
        return app(standalone_mode=False)
    except Failure as failure:
        return _complain(str(failure), failure.code)
    except typer.TyperException as error:
        name = _command_of(error.ctx) or _command_on_line()
        return _complain(f"{name}: {error.format_message()} (hmalloc {name} --help)", USAGE)
    except (KeyboardInterrupt, typer.Abort):
        return _complain("interrupted", 130)


def _read(words: list[str]) -> int:
    """Whether the words of a command line can be understood: the launcher asks before it builds anything for them."""
    command, context, name = typer.main.get_command(app), None, "hmalloc"
    while hasattr(command, "commands"):
        context = command.make_context(name, words, parent=context)
        name, command, words = command.resolve_command(context, [*context._protected_args, *context.args])
    context = command.make_context(name, words, parent=context)
    if context.parent.info_name == "bench":
        bench.require_known(name, context.params)
    return 0


def _command_of(context: typer.Context | None) -> str:
    """`compare`, `bench quick`: the words of the command line, without the launcher's."""
    words = []
    while context and context.parent:
        words.insert(0, context.info_name)
        context = context.parent
    return " ".join(words)


def _command_on_line() -> str:
    """The same where the error does not say where it comes from; in front of it stands what the launcher says."""
    command, words = typer.main.get_command(app), []
    for word in sys.argv[1:]:
        found = getattr(command, "commands", {}).get(word)
        if found:
            command = found
            words.append(word)
        elif words:
            break
    return " ".join(words)


def _complain(message: str, code: int) -> int:
    print(f"hmalloc: {message}", file=sys.stderr)
    return code
