"""A few lines to copy out of the page: machine, date, allocators, and hmalloc's means with their intervals."""

from ..bench.results import Results
from ..bench.statistics import Mean
from .formats import counted, ordinal, ratio
from .machine import Machine
from .overview import OURS, Duels, Ranking


def summary(results: Results, machine: Machine, rankings: list[Ranking], duels: Duels) -> str:
    """Empty where hmalloc was not compared with anybody."""
    ranked = [ranking for ranking in rankings if OURS in ranking.means and len(ranking.means) > 1]
    if not ranked:
        return ""
    return "\n".join([*_head(results, machine), *map(_line, ranked), *_losses(duels),
                      "1.00 would be the best in every cell; [95 % intervals over the cells]."])


def _head(results: Results, machine: Machine) -> list[str]:
    facts = results.campaign.environment
    cpus = counted(int(facts["CPUs"]), "CPU") if facts.get("CPUs") else ""
    kernel = f"Linux {facts['kernel']}" if facts.get("kernel") else ""
    where = ", ".join(str(fact) for fact in (facts.get("CPU"), cpus, facts.get("memory"), kernel) if fact)
    rounds = counted(len({run.round for run in results.campaign.runs}), "round")
    others = counted(len(results.peers), "allocator")
    return [f"hmalloc against {others}, {machine.date}{f': {where}' if where else ''}",
            f"{', '.join(machine.versions)}; {rounds}, profile {results.campaign.profile}"]


def _line(ranking: Ranking) -> str:
    title = ranking.question.title.lower()
    if ranking.too_few:
        return f"{title}: too few rounds to tell"
    place = list(ranking.means).index(OURS) + 1
    best, mean = next(iter(ranking.means.items()))
    other = "" if best == OURS else f"; {best} {_interval(mean)}"
    mine = ranking.means[OURS]
    return (f"{title}: hmalloc {_interval(mine)} × the best of each of {counted(mine.cells, 'cell')}, "
            f"{ordinal(place)} of {len(ranking.means)}{other}")


def _interval(mean: Mean) -> str:
    return f"{ratio(mean.value)} [{ratio(mean.low)}, {ratio(mean.high)}]"


def _losses(duels: Duels) -> list[str]:
    told = duels.total - duels.too_few
    return [f"hmalloc loses {len(duels.losses)} of {counted(told, 'comparison')} with its peers and leads in "
            f"{len(duels.leads)}"] if told else []
