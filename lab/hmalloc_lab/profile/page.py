"""The sharing map as one HTML page that needs nothing else: no server, no net, no other file."""

from pathlib import Path

from markupsafe import Markup

from ..page import parts
from . import page_sites, page_words
from .advice import RESERVATIONS
from .page_amounts import NOTHING, Amount, ages_of
from .page_matrix import Matrix, pairs

_STYLES = ("frame.css", "overview.css", "results.css", "cores.css", "narrow.css", "print.css", "profile.css")
_FILTERS = {"size": page_words.size, "count": page_words.count, "share": page_words.share, "span": page_words.span,
            "age": page_words.age, "spoken": page_words.spoken}


def write(document: dict, path: Path) -> None:
    parts.replace_file(path, render(document))


def render(document: dict) -> str:
    document = page_words.printable(document)
    script = parts.joined(("profile.js",))
    total = {name: Amount.read(each) for name, each in document["total"].items()}
    sites = page_sites.shown(document)
    return parts.environment(**_FILTERS).get_template("profile.html.j2").render(
        document=document,
        total=total,
        is_empty=all(each == NOTHING for each in total.values()),
        matrix=Matrix(document),
        pairs=pairs(document),
        sites=sites,
        left_out=page_sites.left_out(document, sites),
        has_site={site.place for site in sites},
        ages=ages_of(age for site in document["sites"] for age in site["ages"]),
        reservations=[text for kind, text in RESERVATIONS.items() if kind in {each["kind"] for each in document["advice"]}],
        few=page_words.FEW_SAMPLES,
        style=Markup(parts.joined(_STYLES)),
        script=Markup(script),
        policy=parts.policy([script]))
