"""Pictures of a written page for README and docs: every figure as SVG and PNG, first screen and heat map, where
there is one, as PNG."""

import base64
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote_to_bytes

from ..errors import NOT_FOUND, Failure

FORMATS = ("svg", "png")
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def browser_path() -> str:
    for name in _BROWSERS:
        if found := shutil.which(name):
            return found
    raise Failure(f"pictures need a browser: none of {', '.join(_BROWSERS)} is installed", NOT_FOUND)


def browser_options() -> dict:
    """Chromium refuses its sandbox to root."""
    return {"executable_path": browser_path(), "args": ["--no-sandbox"] if os.geteuid() == 0 else []}


def export(page_path: Path, folder: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """The files written, named after the figures: hmalloc-fig-11-a.svg."""
    if unknown := set(formats) - set(FORMATS):
        raise Failure(f"{sorted(unknown)[0]}: not a format of pictures ({', '.join(FORMATS)})")
    if not page_path.is_file():
        raise Failure(f"{page_path}: no such page")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _opened(page_path) as page:
            return list(_write_all(page, folder, formats))
    except OSError as error:
        raise Failure(f"{error.filename or folder}: {error.strerror}", 1) from error


@contextmanager
def _opened(page_path: Path) -> Iterator:
    # Here, because a terminal summary must not wait for the import.
    from playwright.sync_api import Error, sync_playwright

    options = browser_options()
    try:
        with sync_playwright() as driver:
            browser = driver.chromium.launch(**options)
            page = browser.new_page(viewport={"width": 1440, "height": 1000}, device_scale_factor=2,
                                    color_scheme="light", reduced_motion="reduce")
            page.goto(page_path.resolve().as_uri())
            page.evaluate("started")
            yield page
            browser.close()
    except Error as error:
        raise Failure(f"{page_path}: the browser failed: {str(error).splitlines()[0]}", 1) from error


def _write_all(page, folder: Path, formats: Sequence[str]) -> Iterator[Path]:
    for name, plot in page.evaluate("pictureNames()"):
        for format in formats:
            path = folder / f"{name}.{format}"
            address = page.evaluate("([id, format]) => picture(id, format)", [plot, format])
            path.write_bytes(_content(address))
            yield path
    if "png" in formats:
        page.screenshot(path=folder / "report.png")
        yield folder / "report.png"
        if page.locator("#heat").count():
            page.locator("#heat").screenshot(path=folder / "heatmap.png")
            yield folder / "heatmap.png"


def _content(address: str) -> bytes:
    """Of a data: address."""
    head, _, body = address.partition(",")
    return base64.b64decode(body) if head.endswith(";base64") else unquote_to_bytes(body)
