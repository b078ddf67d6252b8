"""Where and how the campaign was measured: one line for the top of the page, rows for its end."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from ..bench.results import Results
from ..bench.store import OK, Run

_PLAIN = {True: "yes", False: "no", None: "not known"}


@dataclass(frozen=True)
class Failed:
    """Runs of one cell and allocator that ended for the same reason."""

    cell: str
    allocator: str
    status: str
    reason: str
    rounds: list[int]


@dataclass(frozen=True)
class Machine:
    line: list[str]
    date: str
    begun: str
    ended: str
    versions: list[str]
    facts: list[tuple[str, str]]
    failures: list[Failed]
    served: dict[str, int]  # runs that proved to be the allocator's


def describe(results: Results) -> Machine:
    environment = results.campaign.environment
    versions = [f"{row.name} {row.version}".strip() for row in results.drop_ins]
    facts = [(_words(key), _text(value)) for key, value in environment.items()]
    served = Counter(run.allocator for run in results.campaign.runs if run.status == OK)
    campaign = results.campaign
    return Machine(_line(results, environment), _date(campaign.started), _clock(campaign.started),
                   _clock(campaign.finished or ""), versions, facts, _failures(results.failures()), served)


def _line(results: Results, environment: dict) -> list[str]:
    campaign = results.campaign
    measured = len({run.round for run in campaign.runs})
    noisy = len(results.noisy_rounds)
    rounds = f"{measured} rounds" if measured != 1 else "1 round"
    if measured < campaign.rounds or campaign.finished is None:
        rounds += f" of {campaign.rounds} planned"
    known = [_text(environment.get("CPU") or ""), f"Linux {kernel}" if (kernel := environment.get("kernel")) else ""]
    return [*filter(None, known), _date(campaign.started), f"profile {campaign.profile}",
            f"{rounds}, {('all' if noisy == measured else noisy) if noisy else 'none'} of them noisy"]


def _date(stamp: str) -> str:
    try:
        return f"{datetime.fromisoformat(stamp):%-d %B %Y}"
    except ValueError:
        return stamp


def _clock(stamp: str) -> str:
    try:
        return f"{datetime.fromisoformat(stamp):%H:%M}"
    except ValueError:
        return stamp


def _words(key: str) -> str:
    return key.replace("_", " ")


def _text(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{_words(str(key))} {_text(inner)}" for key, inner in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(_text(inner) for inner in value)
    return _PLAIN.get(value, str(value)) if value is None or isinstance(value, bool) else str(value)


def _failures(runs: list[Run]) -> list[Failed]:
    found: dict[tuple, list[int]] = {}
    for run in runs:
        found.setdefault((run.cell, run.allocator, run.status, run.reason), []).append(run.round)
    return [Failed(*key, sorted(rounds)) for key, rounds in found.items()]
