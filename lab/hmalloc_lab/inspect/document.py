"""A snapshot as a document, for programs that read JSON, and as a list of its blocks."""

from collections.abc import Iterator
from dataclasses import asdict

from .census import Census, Count
from .heap import CACHED, FREE, LIVE, SAMPLED, Snapshot
from .leaks import Leaks

SCHEMA = "hmalloc-inspect"
VERSION = 1
_NAMES = {LIVE: "live", SAMPLED: "sampled", CACHED: "cached"}


def document(snapshot: Snapshot, census: Census, leaks: Leaks | None) -> dict:
    return {
        "schema": SCHEMA, "version": VERSION,
        "title": snapshot.title, "library": snapshot.layout.library,
        "exact": snapshot.exact, "changing": snapshot.changing,
        "live_blocks": census.live_blocks, "live_bytes": census.live_bytes, "cached_bytes": census.cached_bytes,
        "large_blocks": census.large_blocks, "large_bytes": census.large_bytes,
        "huge_blocks": census.huge_blocks, "huge_bytes": census.huge_bytes, "kept_bytes": census.kept_bytes,
        "free_resident_bytes": census.free_dirty, "free_given_back_bytes": census.free_clean,
        "metadata_bytes": census.metadata,
        "classes": [{"size": size, **_count(count)} for size, count in sorted(census.classes.items())],
        "heaps": [{"heap": heap.number, "live": heap.live, "thread": heap.thread or None, "refills": heap.refills,
                   "flushes": heap.flushes, "cross_thread_frees": heap.foreign_frees, "cached_blocks": heap.cached,
                   "cached_bytes": heap.cached_bytes, "superblocks": _count(census.owners.get(heap.number, Count()))}
                  for heap in snapshot.heaps],
        "leaks": asdict(leaks) if leaks else None,
    }


def _count(count: Count) -> dict:
    return {"superblocks": count.superblocks, "live_blocks": count.live, "live_bytes": count.live_bytes,
            "sampled_blocks": count.sampled, "cached_blocks": count.cached, "free_blocks": count.free,
            "superblock_bytes": count.bytes, "pages_in_use": count.pages}


def blocks(snapshot: Snapshot) -> Iterator[str]:
    """Lines of CSV: each block that is not free, by address."""
    yield "address,size,state,heap\n"
    rows = [(run.start, run.length, "live", "") for run in snapshot.runs]
    rows += [(run.start, run.length, "cached", "") for run in snapshot.cached_runs]
    rows += [(each.start, each.size, "live", "") for each in snapshot.huge]
    for each in snapshot.superblocks:
        owner = "" if each.owner is None else str(each.owner)
        rows += [(each.start + at * each.size, each.size, _NAMES[state], owner)
                 for at, state in enumerate(each.states) if state != FREE]
    for address, size, state, owner in sorted(rows):
        yield f"{address:#x},{size},{state},{owner}\n"
