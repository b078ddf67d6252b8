"""Numbers as people read them; the script of the page shows them in the same way."""

import math

from ..bench.catalogue import UNITS


def significant(value: float) -> str:
    """Three digits: 1,234 · 123 · 12.0 · 1.23 · 0.0123"""
    if not math.isfinite(value):
        return "–"
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.{2 - math.floor(math.log10(abs(value)))}f}"


def number(value: float) -> str:
    """A count is a whole number."""
    return f"{value:,.0f}" if float(value).is_integer() else significant(value)


def ratio(value: float) -> str:
    """Two decimals up to 10, then fewer: nobody reads 12.34 x."""
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def times(value: float) -> str:
    """No line ends between the number and its sign."""
    return f"{ratio(value)}\u00a0×"


def quantity(value: float, metric: str) -> str:
    """A value of a metric with its unit."""
    unit = UNITS.get(metric, "")
    if unit == "ns":
        for limit, factor, name in ((1e3, 1, "ns"), (1e6, 1e3, "µs"), (1e9, 1e6, "ms"), (float("inf"), 1e9, "s")):
            if abs(value) < limit:
                return f"{significant(value / factor)} {name}"
    if unit == "KB" and abs(value) >= 1024:
        return f"{significant(value / 1024)} MB"
    return f"{significant(value)} {unit}" if unit else number(value)


def compact(value: float | None, digits: int = 4) -> float | int | None:
    """For the data block: four significant digits are more than a pixel or a reader can tell apart."""
    if value is None or not math.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() else short


def counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number:,} {what}s"


def ordinal(number: int) -> str:
    return f"{number}{'th' if 10 <= number % 100 <= 20 else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
