"""Ways to read the text of a report."""

import html
import re
from dataclasses import replace

from hmalloc_lab.bench.results import Results


def without(results: Results, **changes) -> Results:
    return Results(replace(results.campaign, **changes))


def section(text: str, name: str) -> str:
    found = re.search(rf'<section id="{name}">.*?</section>', text, re.S)
    assert found, name
    return found[0]


def words(markup: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", markup)).split())
