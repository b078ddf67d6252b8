"""Fixtures of the tests that open the report in a real browser; `browser` and `visit` are for any page."""

from pathlib import Path

import pytest
from hmalloc_lab.page import export
from hmalloc_lab.page import page as report
from playwright.sync_api import expect, sync_playwright

PATIENCE_MS = 60_000
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def written(quick, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    report.write(quick, path)
    return path


@pytest.fixture(scope="module")
def browser():
    """No browser is a failure, not a skip: the launcher installs one."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(**export.browser_options())
        yield browser
        browser.close()


@pytest.fixture
def visit(browser):
    """Opens a page; at the end of the test the console must have stayed empty and nothing else have been asked for."""
    said, asked, contexts = [], [], []

    def open(address: str, **options):
        context = browser.new_context(**{"viewport": {"width": 1400, "height": 900}, "color_scheme": "light",
                                         "reduced_motion": "reduce", **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: said.append(f"error: {error}"))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(address)
        return page

    yield open
    for context in contexts:
        context.close()
    assert not said
    assert all(address.startswith(("data:", "blob:", "file:")) for address in asked)
    assert len([address for address in asked if address.startswith("file:")]) == len(contexts)


@pytest.fixture
def show(visit, written):
    """Opens a report."""

    def open(anchor: str = "", path: Path = written, **options):
        page = visit(path.as_uri() + anchor, **options)
        page.wait_for_selector("#heat table, #heat-none:not([hidden])", state="attached")
        return page

    return open


def columns(page) -> list[str]:
    """The allocators of the table of cells."""
    return page.locator("#heat thead th").all_inner_texts()[1:]


def rows(page) -> list[str]:
    """Its cells."""
    return page.locator("#heat [data-row]").evaluate_all("rows => rows.map(row => row.dataset.row)")


def draw_all(page) -> None:
    """All plots, also those that are folded away."""
    page.evaluate("""for (const details of document.querySelectorAll('details')) details.open = true;
                     for (const [plot] of plots) if (plot.checkVisibility()) draw(plot)""")
