"""The papers' figures, drawn and judged; one that fails says so and the others stand."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import groupby

from ..bench.results import Results
from .figure import CONFIRMED, NOT_CONFIRMED, UNTOLD, Chart, PaperFigure, Table, Verdict
from .formats import compact

OUTCOMES = (CONFIRMED, NOT_CONFIRMED, UNTOLD)


@dataclass(frozen=True)
class Shown:
    figure: PaperFigure
    charts: Sequence[Chart]
    tables: Sequence[Table]
    verdict: Verdict

    @property
    def drawn(self) -> bool:
        return bool(self.charts or self.tables)

    @property
    def is_told(self) -> bool:
        return self.verdict.outcome != UNTOLD

    @property
    def lack(self) -> str:
        """In a line why it cannot be told."""
        return f"takes {self.verdict.takes}" if self.verdict.takes else self.verdict.reason

    @property
    def is_broad(self) -> bool:
        """Too many columns to stand beside the text."""
        return any(len(table.columns) > 9 for table in self.tables)

    @property
    def paper(self) -> str:
        return self.figure.paper


def show(results: Results, figure: PaperFigure) -> Shown:
    try:
        drawn = figure.draw(results)
        verdict = figure.judge(results)
    except Exception as error:  # one figure's mistake must not cost the reader the page
        drawn, verdict = (), Verdict(UNTOLD, f"This figure could not be made: {type(error).__name__}: {error}")
    return Shown(figure, [part for part in drawn if isinstance(part, Chart) and any(s.points for s in part.series)],
                 [part for part in drawn if isinstance(part, Table) and part.rows], verdict)


def by_paper(shown: Sequence[Shown]) -> list[tuple[str, list[Shown]]]:
    """What was told."""
    told = [each for each in shown if each.is_told]
    return [(paper, list(group)) for paper, group in groupby(told, key=lambda each: each.paper)]


def untold(shown: Sequence[Shown]) -> list[Shown]:
    return [each for each in shown if not each.is_told]


def counts(shown: Sequence[Shown]) -> dict[str, int]:
    return {outcome: sum(each.verdict.outcome == outcome for each in shown) for outcome in OUTCOMES}


def chart_data(chart: Chart) -> dict:
    described = asdict(chart)
    described["series"] = [
        {"name": series.name, "dashed": series.dashed,
         "points": [[point.x if isinstance(point.x, str) else compact(point.x), compact(point.y), compact(point.low),
                     compact(point.high)] for point in series.points]} for series in chart.series]
    return described
