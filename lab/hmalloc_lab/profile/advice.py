"""What a program can do with hmalloc's own functions, where the profile has the evidence for it."""

import re
from dataclasses import dataclass

from .names import shorten
from .sites import Map, Site

# Instructions that a block costs less; tests/launcher/test_advice.py counts them in a program.
LOCAL_SAVES = 34   # hm_local_alloc and hm_local_free_sized inline, for a pair of malloc and free
SHARED_SAVES = 13  # hm_cache_alloc inline, for malloc
_FEWEST_SAMPLES = 100
_SHARED_FROM = 0.95
_LOCAL_MOST_BYTES = 4096   # HM_LOCAL_MAX: a larger one takes the general path
_CACHE_MOST_BYTES = 32768  # above, there is no cache of blocks
_FINER_FROM = 4096         # a class more to each doubling
# What a profile does not know, by the kind of advice.
RESERVATIONS = {
    "local": "hm_local_alloc clears nothing and aligns to 16 bytes; a place may ask for more (calloc, aligned_alloc).",
    "shared": "No cache has a handle while a profile runs: a place that uses one already is named all the same."}
# Nobody changes them for a program's sake.
_OF_THE_SYSTEM = re.compile(r"(lib(c|m|dl|rt|pthread|resolv|gcc_s|stdc\+\+|c\+\+(abi)?)|ld-[\w-]+)[-.].*")


@dataclass(frozen=True)
class Advice:
    kind: str  # local or shared
    site: int
    samples: int
    of: int
    blocks: float
    saves_instructions: float
    text: str


def advise(sharing: Map) -> list[Advice]:
    """The ones first that save most."""
    given = [found for at, site in enumerate(sharing.sites) if (found := _for_site(at, site))]
    return sorted(given, key=lambda each: -each.saves_instructions)


def _for_site(at: int, site: Site) -> Advice | None:
    samples = site.freed.samples
    if samples < _FEWEST_SAMPLES or site.takes_advice or not site.frame.function:
        return None
    if _OF_THE_SYSTEM.fullmatch(site.frame.object):
        return None
    if site.kept.samples == samples and _are_at_most(site, _LOCAL_MOST_BYTES):
        return _advice("local", at, site, samples, LOCAL_SAVES, "freed by its own thread",
                       "hm_local_alloc and hm_local_free_sized")
    if site.handed_over.samples >= _SHARED_FROM * samples and _are_of_one_class(site):
        return _advice("shared", at, site, site.handed_over.samples, SHARED_SAVES, "freed by another thread",
                       "hm_cache_of and hm_cache_alloc (or, without a handle and as it is, hm_shared_alloc)")
    return None


def _advice(kind: str, at: int, site: Site, samples: int, saves: int, evidence: str, functions: str) -> Advice:
    blocks = site.freed.objects
    frame = site.frame
    where = f"{frame.file}:{frame.line}" if frame.file else frame.object
    text = (f"{where} ({shorten(frame.function)}): {evidence} in {samples} of {site.freed.samples} samples: {functions}, "
            f"about {saves} instructions less for each of {_rounded(blocks)} blocks")
    return Advice(kind, at, samples, site.freed.samples, blocks, saves * blocks, text)


def _rounded(count: float) -> str:
    return f"{count:.0f}" if count < 1e5 else f"{count:.1e}".replace("e+0", "e")


def _are_at_most(site: Site, most: int) -> bool:
    return all(size <= most * objects for objects, size in site.lives)


def _are_of_one_class(site: Site) -> bool:
    """Blocks of one size have it in the mean of every kind of life, but for the rounding of the two estimates."""
    size = min(_CLASSES, key=lambda each: abs(each - site.freed.bytes / max(site.freed.objects, 1)))
    return all(abs(held - objects * size) <= 0.5 * size + 0.5 for objects, held in site.lives)


def _classes() -> list[int]:
    """The sizes of small blocks, as src/base/size_classes.h has them."""
    sizes, base = list(range(16, 129, 16)), 128
    while base < _CACHE_MOST_BYTES:
        if base >= _FINER_FROM:
            sizes.append(base + base // 8)
        sizes += [base + base // 4 * quarter for quarter in range(1, 5)]
        base *= 2
    return [size for size in sizes if size <= _CACHE_MOST_BYTES]


_CLASSES = _classes()
