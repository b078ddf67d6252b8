"""Benchmark 2 of the Linux paper, `linux-successors`: its picture and clauses."""

import math
import statistics

from ...bench.catalogue import Cell
from ...bench.results import Results
from ...bench.statistics import FEWEST
from ..figure import Chart, Point, Series
from .baselines import LINUX_CAST
from .clauses import Pair, related
from .common import Cells, Draw, cells, measured_in, percent, with_threads
from .judging import Amount, Clause, Finding, missing, weighed

FAULTS = "faults_since_start"


def successors(threads: int, fewest: int = 1, most: int = 8) -> Cells:
    of = cells("linux-successors", lambda cell: fewest <= _rounds(cell) <= most, threads=threads)
    return lambda results: sorted(of(results), key=_rounds)


def _rounds(cell: Cell) -> int:
    return int(cell.point["rounds"])


def predicted(cell: Cell) -> float:
    """The paper's lower bound (section 5.2) for 10,000 objects of 40 bytes a thread."""
    return 14 + 1.1 * cell.threads * _rounds(cell) + 127.6 * cell.threads


def fault_chart(of: Cells) -> Draw:
    """Mean, smallest and largest of the rounds for each allocator, and the paper's predictor."""
    def draw(results: Results) -> list[Chart]:
        among = of(results)
        found = []
        for who in measured_in(results, among, LINUX_CAST):
            each = [(_rounds(cell), list(values.values())) for cell in among
                    if (values := results.values(cell, who, FAULTS))]
            points = [Point(x, statistics.mean(faults), min(faults), max(faults)) for x, faults in each]
            if points:
                found.append(Series(who, points))
        line = Series("predictor", [Point(_rounds(cell), predicted(cell)) for cell in among], dashed=True)
        return [Chart("lines", "rounds", "minor page faults", [*found, line])] if found else []
    return draw


def grows_as_predicted(who: str, of: Cells, tolerance: float) -> Clause:
    def pairs(_: Results, among: list[Cell]) -> list[Pair]:
        return [Pair(f"from {_rounds(among[0])} to {_rounds(among[-1])} rounds", among[-1], among[0],
                     most=(1 + tolerance) * predicted(among[-1]) / predicted(among[0]))] if len(among) > 1 else []
    return related(who, of, pairs, "growth of the page faults",
                   f"at most {percent(tolerance)} above the predictor's growth", FAULTS, crowded=True)


def _spreads(results: Results, who: str, among: list[Cell]) -> list[tuple[Cell, float | None]]:
    """Largest less smallest as a share of the smallest, over the rounds of each cell."""
    found = []
    for cell in among:
        faults = results.values(cell, who, FAULTS).values()
        enough = len(faults) >= FEWEST and min(faults) > 0
        found.append((cell, max(faults) / min(faults) - 1 if enough else None))
    return found


def fault_spread(who: str, of: Cells, least: float = 0.0, most: float = math.inf) -> Clause:
    def clause(results: Results) -> Finding:
        if gap := missing(results, among := of(results), among, who):
            return Finding(None, gap)
        shares = [Amount(f"with {_rounds(cell)} round{'s' * (_rounds(cell) > 1)}", spread, least, most)
                  for cell, spread in _spreads(results, who, among)]
        asked = f"at least {percent(least)}" if least else f"at most {percent(most)}"
        return weighed(f"{who}, spread of the page faults over the runs", shares, asked)
    return clause


def less_spread(who: str, of: Cells, than: Cells) -> Clause:
    """On average over the numbers of rounds."""
    def clause(results: Results) -> Finding:
        if gap := missing(results, mine := of(results), theirs := than(results), who):
            return Finding(None, gap)
        means = []
        for among in (mine, theirs):
            spreads = [spread for _, spread in _spreads(results, who, among)]
            means.append(None if None in spreads else statistics.mean(spreads))
        if None in means:
            return Finding(None, "Too few rounds for a spread.")
        return Finding(means[0] < means[1],
                       f"On average {percent(means[0])} {with_threads(mine[0])}, {percent(means[1])} "
                       f"{with_threads(theirs[0])} (asked: less).")
    return clause
