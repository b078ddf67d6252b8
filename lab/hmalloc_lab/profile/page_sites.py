"""The places that allocate, as the page lists them."""

from dataclasses import dataclass
from pathlib import PurePosixPath

from .page_amounts import NOTHING, Age, Amount, ages_of

MOST_OF_EACH_ORDER = 250
MOST_PLACES = 12  # where the blocks of one site are freed


@dataclass(frozen=True)
class Site:
    place: int  # in the document
    name: str
    where: str
    path: str  # of the file, as long as it is known
    found: dict
    amounts: dict[str, Amount]
    ages: list[Age]
    freed_at: list[tuple[str, bool, Amount]]
    freed_elsewhere: tuple[int, Amount]  # places left out


def shown(document: dict) -> list[Site]:
    """In the document's order.  Of very many the first in each order that the reader can choose, and those advised."""
    sites = document["sites"]
    chosen = {each["site"] for each in document["advice"]}
    for order in ("handed_over", "allocated", "held"):
        ranked = sorted(range(len(sites)), key=lambda place: -sites[place][order]["bytes"])
        chosen.update(ranked[:MOST_OF_EACH_ORDER])
    return [_site(place, found) for place, found in enumerate(sites) if place in chosen]


def left_out(document: dict, sites: list[Site]) -> tuple[int, Amount]:
    """How many, and what they allocated."""
    listed = {site.place for site in sites}
    rest = [Amount.read(found["allocated"]) for place, found in enumerate(document["sites"]) if place not in listed]
    return len(rest), sum(rest, NOTHING)


def _site(place: int, found: dict) -> Site:
    freed_at = [(each["place"], each["by_other"], Amount.read(each["amount"])) for each in found["freed_at"]]
    rest = freed_at[MOST_PLACES:]
    return Site(place, found["function"] or found["address"], _where(found), found.get("path") or found["file"] or "", found,
                {name: Amount.read(found[name]) for name in ("allocated", "held", "freed", "handed_over")},
                ages_of(found["ages"]), freed_at[:MOST_PLACES], (len(rest), sum((each[2] for each in rest), NOTHING)))


def _where(found: dict) -> str:
    """The file's last name and the line; where there is no debug information, the program or library."""
    if not found["file"]:
        return f"in {found['object']}" if found["object"] else ""
    name = PurePosixPath(found["file"]).name
    return f"{name}:{found['line']}" if found["line"] else name
