"""What the page of the sharing map writes: amounts and ages as people read them, names without what is not text."""

import math
import re

from ..page.formats import significant
from .page_amounts import Age, Amount

FEW_SAMPLES = 10  # fewer are off by a third or more

_SIZES = ("bytes", "KB", "MB", "GB", "TB", "PB")
_TIMES = ((1e3, 1.0, "ns"), (1e6, 1e3, "µs"), (1e9, 1e6, "ms"), (math.inf, 1e9, "s"))
# Controls, halves of characters that stand for bytes without one, and marks that turn the direction of what follows.
_NO_TEXT = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(document):
    """The same document; in its texts each character that shows nothing, or that UTF-8 does not have, is a mark."""
    if isinstance(document, str):
        return _NO_TEXT.sub("\ufffd", document)
    if isinstance(document, dict):
        return {key: printable(value) for key, value in document.items()}
    return [printable(each) for each in document] if isinstance(document, list) else document


def size(value: float) -> str:
    """12.3 MB, no line ends before the unit."""
    unit = 0
    while round(abs(value)) >= 1024 and unit < len(_SIZES) - 1:
        value, unit = value / 1024, unit + 1
    return f"{_three_digits(value) if unit else format(value, ',.0f')}\u00a0{_SIZES[unit]}"


def _three_digits(value: float) -> str:
    """Rounded first: 9.999 is 10.0."""
    return significant(float(f"{value:.3g}") if abs(value) < 100 else value)


def count(value: float) -> str:
    """1,234, but 12.3 M: an estimate has no more digits."""
    return f"{_three_digits(value / 1e6)}\u00a0M" if round(value) >= 1_000_000 else f"{value:,.0f}"


def share(part: float, whole: float) -> str:
    """A per cent that is all or nothing only where it is."""
    if whole <= 0:
        return "–"
    percent = 100 * part / whole
    if 0 < percent < 0.1 or 99.9 < percent < 100:
        return "<\u00a00.1\u00a0%" if percent < 1 else ">\u00a099.9\u00a0%"
    return f"{percent:.{0 if percent in (0, 100) else 1}f}\u00a0%"


def span(nanoseconds: float) -> str:
    factor, unit = next((factor, unit) for limit, factor, unit in _TIMES if nanoseconds < limit)
    return f"{nanoseconds / factor:,.0f}\u00a0{unit}"


def age(shown: Age) -> str:
    """10–100 µs, but 100 µs–1 ms."""
    if not shown.from_ns:
        return f"under {span(shown.to_ns)}" if shown.to_ns else "any"
    if not shown.to_ns:
        return f"{span(shown.from_ns)} and more"
    low, high = span(shown.from_ns), span(shown.to_ns)
    (number, unit), other = low.split("\u00a0"), high.split("\u00a0")[1]
    return f"{number if unit == other else low}–{high}"


def spoken(amount: Amount) -> str:
    """In one line, for what is pointed at."""
    return f"{size(amount.bytes)} in {count(amount.objects)} blocks, {amount.samples:,} samples"
