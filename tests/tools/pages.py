"""What the tests of the report's text share: a small campaign, and ways to read a page."""

import base64
import gzip
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from fabricate import fabricate
from hmalloc_lab.bench.results import Results
from hmalloc_lab.page import page


class Parsed(HTMLParser):
    """Tags, ids, attributes that could load something, and the text by id of the nearest element that has one."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags, self.ids, self.addresses, self.scripts, self.meta = Counter(), [], [], [], []
        self._script = False
        self.text = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags[tag] += 1
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.addresses += [attributes[key] for key in ("src", "href", "srcset", "action", "data", "poster")
                           if key in attributes]
        self.meta += [attributes] if tag == "meta" else []
        self._script = tag == "script"
        if self._script:
            self.scripts.append([attributes.get("id"), ""])

    def handle_endtag(self, tag):
        self._script = False

    def handle_data(self, data):
        if self._script:
            self.scripts[-1][1] += data
        else:
            self.text.append(data)


@pytest.fixture(scope="module")
def quick(tmp_path_factory) -> Results:
    return Results.read(fabricate(tmp_path_factory.mktemp("quick") / "lab.db", "quick", rounds=6))


@pytest.fixture(scope="module")
def paper(results) -> str:
    """The page of the profile paper."""
    return page.render(results)


def without(results: Results, **changes) -> Results:
    return Results(replace(results.campaign, **changes))


def section(text: str, name: str) -> str:
    found = re.search(rf'<section id="{name}">.*?</section>', text, re.S)
    assert found, name
    return found[0]


def unpacked(parsed: Parsed, name: str) -> str:
    return gzip.decompress(base64.b64decode(dict(parsed.scripts)[name])).decode()


def words(markup: str) -> str:
    return " ".join(" ".join(Parsed(markup).text).split())
