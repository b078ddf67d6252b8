"""One look per allocator, the same in every chart: a colour for light and for dark paper, a marker, a line.

hmalloc owns the strong red, its explicit forms the shades beside it.  The baselines are dashed, each family of them in a
hue of its own.  Neighbouring colours differ in lightness too, and
every line carries its own marker, so that nothing rests on hue alone.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from ..bench.results import Results
from ..bench.store import AllocatorRow


@dataclass(frozen=True)
class Look:
    light: str
    dark: str
    marker: str
    line: str = "solid"


_KNOWN = {
    "hmalloc": Look("#c4122f", "#ff6b7a", "circle"),
    "hmalloc-explicit": Look("#7d1044", "#ffa3c4", "diamond", "dash"),
    "hmalloc-all-shared": Look("#e5636f", "#c9404f", "x-thin-open", "dot"),
    "no-allocator": Look("#8b939d", "#7d8792", "line-ew-open", "dashdot"),
    "glibc": Look("#3d4550", "#d5dbe3", "square"),
    "mimalloc2": Look("#3f9fd8", "#74c3f2", "triangle-up"),
    "mimalloc3": Look("#0b5aa5", "#4b93e6", "triangle-down"),
    "snmalloc": Look("#00805f", "#2fbf98", "star"),
    "jemalloc": Look("#d98200", "#f5b342", "cross"),
    "rpmalloc": Look("#b0579b", "#e08fcb", "pentagon"),
    "tcmalloc": Look("#7d7412", "#c9bd45", "hexagon"),
    "gperftools": Look("#6a51b0", "#a793ea", "star-diamond"),
    "one_lock": Look("#5c4033", "#b99a84", "asterisk-open", "dash"),
    "hoard": Look("#2f6b12", "#8fce5e", "triangle-ne", "dash"),
    "hoard-f8": Look("#5e9e3e", "#b9e39a", "triangle-ne-open", "dot"),
    "hoard-f2": Look("#183c06", "#65a637", "triangle-se", "dot"),
    "vvmalloc-1": Look("#6fb3c8", "#a8e0f0", "octagon-open", "dash"),
    "vvmalloc-2": Look("#2d8ba8", "#6cc5de", "octagon", "dash"),
    "vvmalloc-3": Look("#1b6078", "#3fa0bf", "hexagon2", "dash"),
    "vvmalloc-4": Look("#083a4c", "#2b7f9c", "hexagram", "dash"),
    "ar_malloc": Look("#c26a00", "#e9a04c", "diamond-tall", "dash"),
    "ar_malloc-lock": Look("#7a4300", "#b5732a", "diamond-wide", "dash"),
    "ar_malloc-nocache": Look("#dba36a", "#f3c99b", "diamond-wide-open", "dot"),
    "hmalloc_paper": Look("#b5456b", "#f08fb0", "circle-open", "dash"),
    "hmalloc_paper-explicit": Look("#742049", "#d96a9d", "diamond-open", "dash"),
    "hmalloc_paper-all-shared": Look("#d98ba5", "#a34a6c", "cross-thin-open", "dot"),
}

# For allocators that the user gave, in their order.
_OTHERS = (Look("#8a4b2a", "#d2926d", "bowtie"), Look("#0f8b96", "#4fd0da", "hourglass"),
           Look("#5f7f1b", "#a5cc55", "triangle-left"), Look("#94306e", "#dd7fbb", "triangle-right"),
           Look("#444c9c", "#8d96e8", "square-cross"), Look("#977500", "#dcb93c", "circle-x"))


def looks(allocators: Iterable[AllocatorRow]) -> dict[str, Look]:
    found, others = {}, 0
    for row in allocators:
        if row.name in _KNOWN:
            found[row.name] = _KNOWN[row.name]
        else:
            found[row.name] = _OTHERS[others % len(_OTHERS)]
            others += 1
    return found


def described(results: Results) -> list[dict]:
    """The allocators with their looks, as the page's scripts know them."""
    found = looks(results.allocators.values())
    return [{"name": row.name, "kind": row.kind, "dropIn": row in results.drop_ins, **asdict(found[row.name])}
            for row in results.allocators.values()]
