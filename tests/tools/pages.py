"""Ways to read the text of a report, or of any page: tests/launcher reads with them, too."""

import html
import re
from dataclasses import replace


def without(results, **changes):
    return type(results)(replace(results.campaign, **changes))


def section(text: str, name: str) -> str:
    found = re.search(rf'<section id="{name}">.*?</section>', text, re.S)
    assert found, name
    return found[0]


def words(markup: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", markup)).split())
