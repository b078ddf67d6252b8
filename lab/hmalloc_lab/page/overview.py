"""The first screen: who is fast, who is lean, and where hmalloc loses."""

from dataclasses import dataclass, replace
from statistics import median_low

from ..bench import statistics
from ..bench.catalogue import Cell
from ..bench.results import Results
from ..bench.statistics import Mean, Ratio
from .formats import counted, ordinal, times
from .questions import MEMORY, QUESTIONS, Question, cells_asked

OURS = "hmalloc"
_TOO_FEW = "too few rounds"


@dataclass(frozen=True)
class Ranking:
    """Drop-in allocators by the geometric mean of their ratios to the best of each cell, the best first."""

    question: Question
    means: dict[str, Mean]
    rounds: int  # that at least half of the cells have

    @property
    def too_few(self) -> bool:
        """A leader by chance is no leader."""
        return self.rounds < statistics.FEWEST

    @property
    def most(self) -> float:
        """The bars' full length; who is beyond has a torn bar."""
        values = sorted(mean.value for mean in self.means.values())
        return min(values[-1], 2.5 * values[len(values) // 2])

    @property
    def cells(self) -> int:
        return max((mean.cells for mean in self.means.values()), default=0)

    @property
    def leader(self) -> str:
        if self.means and self.too_few:
            return _TOO_FEW
        return next(iter(self.means), "not measured") if len(self.means) != 1 else "no comparison"

    @property
    def sentence(self) -> str:
        if not self.means:
            return "No cell was measured that answers this."
        if self.too_few:
            return f"{counted(self.rounds, 'round')} of most cells: a leader is named from {statistics.FEWEST} on."
        (first, best), (second, next_best) = self._foremost()
        if second is None:
            return f"{first} was measured alone: there is nobody to compare it with."
        text = f"Its {self.question.subject} is {times(best.value)} {best_of(best)}."
        if first == OURS or OURS not in self.means:
            close = ": too close to call" if best.high >= next_best.value else ""
            return f"{text} Next is {second} with {times(next_best.value)}{close}."
        place = list(self.means).index(OURS) + 1
        return f"{text} {OURS} is {ordinal(place)} of {len(self.means)} with {times(self.means[OURS].value)}."

    def _foremost(self) -> list[tuple]:
        return [*self.means.items(), (None, None)][:2]


def best_of(mean: Mean) -> str:
    return f"the best of each of {mean.cells} cells, on average" if mean.cells > 1 else "the best in one cell"


def spread(mean: Mean) -> str:
    """What its low and high are."""
    return "95 % interval" if mean.cells >= statistics.FEWEST else "smallest and largest"


@dataclass(frozen=True)
class Duel:
    """hmalloc and one of its peers in one cell; ratio: hmalloc's value over the peer's."""

    cell: Cell
    question: Question
    metric: str
    peer: str
    ratio: Ratio
    ours: float
    theirs: float


@dataclass(frozen=True)
class Duels:
    losses: list[Duel]   # some peer is distinguishably better: the one farthest ahead; the worst first
    leads: list[Duel]    # better than every peer, distinguishably so than the nearest; the clearest first
    undecided: int       # nobody is distinguishably better, hmalloc neither
    too_few: int         # too few rounds for an interval

    @property
    def total(self) -> int:
        return len(self.losses) + len(self.leads) + self.undecided + self.too_few

    @property
    def headline(self) -> str:
        if not self.total:
            return "not known"
        return _TOO_FEW if self.total == self.too_few else f"{len(self.losses)} of {self.total - self.too_few}"

    @property
    def sentence(self) -> str:
        if not self.total:
            return "hmalloc and a peer were not measured in the same cell."
        if self.too_few == self.total:
            return f"A difference is told from noise from {statistics.FEWEST} rounds on."
        rest = f"It leads in {len(self.leads)}; the others cannot be told apart."
        if not self.losses:
            return f"comparisons of a cell's time, memory or tail. {rest}"
        worst = self.losses[0]
        return (f"comparisons of a cell's time, memory or tail. {rest} "
                f"At worst {times(worst.ratio.median)} {worst.peer}, in {worst.cell.name}.")


def rankings(results: Results) -> list[Ranking]:
    return [_ranking(results, question) for question in QUESTIONS]


def _ranking(results: Results, question: Question) -> Ranking:
    asked = cells_asked(statistics.together(results.campaign.cells), question)
    cells = [replace(cell, metric=metric) for cell, metric in asked]
    if question is MEMORY:
        means = statistics.memory_means(results)
    else:
        means = statistics.means_over(results, cells)
    ordered = sorted(((name, mean) for name, mean in means.items() if mean.cells), key=lambda item: item[1].value)
    return Ranking(question, dict(ordered), _rounds(results, cells))


def _rounds(results: Results, cells: list[Cell]) -> int:
    """That at least half of the cells have, each with the allocator that has most of them."""
    each = [max((len(results.values(cell, who.name)) for who in results.drop_ins), default=0) for cell in cells]
    return median_low(measured) if (measured := [rounds for rounds in each if rounds]) else 0


def scatter(fast: Ranking, lean: Ranking) -> list[dict]:
    """Time against memory; who has only one of them is not in the picture."""
    return [{"name": name, "x": mean.value, "y": lean.means[name].value,
             "dx": [mean.low, mean.high], "dy": [lean.means[name].low, lean.means[name].high]}
            for name, mean in fast.means.items() if name in lean.means]


def duels(results: Results) -> Duels:
    losses, leads, undecided, too_few = [], [], 0, 0
    for question in QUESTIONS:
        for cell, metric in cells_asked(results.campaign.cells, question):
            against = _against_peers(results, cell, question, metric)
            decided = [duel for duel in against if duel.ratio.verdict != statistics.TOO_FEW]
            worse = [duel for duel in decided if duel.ratio.verdict in statistics.WORSE]
            if not against:
                continue
            nearest = max(against, key=lambda duel: duel.ratio.median)
            if not decided:
                too_few += 1
            elif worse:
                losses.append(max(worse, key=lambda duel: duel.ratio.median))
            elif nearest.ratio.verdict in statistics.BETTER:
                leads.append(nearest)
            else:
                undecided += 1
    return Duels(sorted(losses, key=lambda duel: -duel.ratio.median), sorted(leads, key=lambda duel: duel.ratio.median),
                 undecided, too_few)


def _against_peers(results: Results, cell: Cell, question: Question, metric: str) -> list[Duel]:
    ours = results.median(cell, OURS, metric)
    found = []
    for peer in results.peers if ours is not None else ():
        theirs = results.median(cell, peer.name, metric)
        compared = statistics.ratio(results, cell, OURS, peer.name, metric) if theirs is not None else None
        if compared is not None:
            found.append(Duel(cell, question, metric, peer.name, compared, ours, theirs))
    return found
