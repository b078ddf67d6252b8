"""What the papers claim and what was found, as Markdown: figures as pictures beside it, tables in.  What cannot be told
here has a line each in a section of its own, with what it would take."""

from collections.abc import Iterable
from pathlib import Path

from ..bench.results import Results
from .figure import UNTOLD, Table
from .formats import number
from .papers import all_figures
from .verdicts import OUTCOMES, Shown, by_paper, counts, show, untold


def markdown(results: Results, folder: Path) -> str:
    """`folder`: where the pictures are, or will not be."""
    shown = [show(results, figure) for figure in all_figures()]
    found = counts(shown)
    campaign = results.campaign
    parts = ["# What the papers claim",
             f"Campaign `{campaign.profile}` of {campaign.started[:10]}; numbers and machine: [tables.md](tables.md).",
             ", ".join(f"{found[outcome]} {outcome}" for outcome in OUTCOMES) + "."]
    for paper, figures in by_paper(shown):
        parts += [f"## {paper}", *filter(None, [figures[0].figure.note])]
        for each in figures:
            parts += _figure(each, folder)
    if lines := list(map(_line, untold(shown))):
        here = campaign.environment.get("CPUs", "an unknown number of")
        parts += [f"## {UNTOLD.capitalize()}", f"Each with what it would take to tell; this machine has {here} CPUs.",
                  "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def _figure(shown: Shown, folder: Path) -> Iterable[str]:
    figure = shown.figure
    yield f"### {figure.label}: {figure.title}"
    yield f"The paper: {figure.claim}"
    yield f"**{shown.verdict.outcome.capitalize()}.** {shown.verdict.reason}"
    if figure.reading:
        yield figure.reading
    pictures = sorted(folder.glob(f"{figure.id}.svg")) + sorted(folder.glob(f"{figure.id}-[0-9].svg"))
    if pictures and shown.charts:
        yield "\n".join(f"![{figure.label}]({picture.name})" for picture in pictures)
    for table in shown.tables:
        yield _table(table)


def _line(shown: Shown) -> str:
    figure = shown.figure
    return f"- {figure.paper}, {figure.label}, {figure.title}: {shown.lack}"


def _table(table: Table) -> str:
    rows = [list(table.columns), ["---", *["--:"] * (len(table.columns) - 1)], *table.rows]
    lines = [f"| {' | '.join(map(_cell, row))} |" for row in rows]
    return "\n".join([*([f"{table.title}:", ""] if table.title else []), *lines])


def _cell(value: str | float | None) -> str:
    if value is None:
        return "–"
    return value.replace("|", "\\|") if isinstance(value, str) else number(value)
