"""A few lines to copy out of the page: machine, date, allocators, and hmalloc's means with their intervals."""

from ..bench.results import Results
from ..bench.statistics import FEWEST, Mean
from .formats import counted, ordinal, ratio
from .machine import Machine
from .overview import OURS, Duels, Ranking, best_of


def summary(results: Results, machine: Machine, rankings: list[Ranking], duels: Duels) -> str:
    """Empty where hmalloc was not compared with anybody."""
    ranked = [ranking for ranking in rankings if OURS in ranking.means and len(ranking.means) > 1]
    if not ranked:
        return ""
    return "\n".join([*_head(results, machine), *map(_line, ranked), *_losses(duels),
                      "1.00: the best in every cell; [95 % interval over the cells]",
                      *["(smallest to largest of fewer than five cells)"] * any(map(_few_cells, ranked))])


def _head(results: Results, machine: Machine) -> list[str]:
    facts = results.campaign.environment
    cpus = counted(int(facts["CPUs"]), "CPU") if facts.get("CPUs") else ""
    kernel = f"Linux {facts['kernel']}" if facts.get("kernel") else ""
    where = ", ".join(str(fact) for fact in (facts.get("CPU"), cpus, facts.get("memory"), kernel) if fact)
    *_, profile, rounds = machine.line
    others = counted(len(results.peers), "allocator")
    return [f"hmalloc against {others}, {machine.date}{f': {where}' if where else ''}",
            f"{', '.join(machine.versions)}; {profile}, {rounds}"]


def _line(ranking: Ranking) -> str:
    title = ranking.question.title.lower()
    if ranking.too_few:
        return f"{title}: too few rounds to tell"
    place = list(ranking.means).index(OURS) + 1
    other = next(name for name in ranking.means if name != OURS)
    named = f"{'next' if place == 1 else 'first'} {other} {_interval(ranking.means[other])}"
    mine = ranking.means[OURS]
    return f"{title}: hmalloc {_interval(mine)} × {best_of(mine)}: {ordinal(place)} of {len(ranking.means)}, {named}"


def _interval(mean: Mean) -> str:
    low, high = ratio(mean.low), ratio(mean.high)
    return f"{ratio(mean.value)} {f'[{low}, {high}]' if mean.cells >= FEWEST else f'({low} to {high})'}"


def _few_cells(ranking: Ranking) -> bool:
    return not ranking.too_few and min(mean.cells for mean in ranking.means.values()) < FEWEST


def _losses(duels: Duels) -> list[str]:
    told = duels.total - duels.too_few
    return [f"hmalloc loses {len(duels.losses)} of {counted(told, 'comparison')} with its peers and leads in "
            f"{len(duels.leads)}"] if told else []
