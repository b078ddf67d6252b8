"""The gauges and counters of hm_stats (hmalloc.h), as the library counts them (src/introspect/stats.cc), from outside."""

from .census import PAGE, Census
from .heap import FREE, Snapshot


def gauges(snapshot: Snapshot, census: Census) -> dict[str, int]:
    rows, counters = snapshot.layout, snapshot.counters
    huge = sum(-(-each.size // PAGE) * PAGE for each in snapshot.huge)
    cached_runs = sum(run.length for run in snapshot.cached_runs)
    in_use = sum(each.length for each in snapshot.superblocks if each.count(FREE) < len(each.states))
    metadata = (len(snapshot.chunks) * rows["chunk.bytes"] // rows["slice.bytes"] * rows["slice.descriptor"]
                + counters["extent_pieces"] * rows["slab.bytes"] + len(snapshot.heaps) * rows["heap.descriptor"]
                + snapshot.own_places * rows["own.place"]
                + sum(len(each.states) for each in snapshot.superblocks))
    stranded = sum(heap.cached_bytes for heap in snapshot.heaps if heap.stranded)  # the library cannot know of these
    active = in_use + census.large_bytes + huge + cached_runs
    peak = max(active, counters["most_slices"] * rows["slice.bytes"] + counters["most_huge"])
    return {
        "allocated": census.small.live_bytes + stranded + census.large_bytes + huge,
        "cached": census.cached_bytes - stranded,
        "active": active,
        "resident": census.small.bytes + census.large_bytes + cached_runs + metadata + census.free_dirty + huge
        + census.kept_bytes,
        "retained": max(snapshot.mapped - active - metadata, 0),
        "mapped": snapshot.mapped,
        "metadata": metadata,
        "peak_active": peak,
        "bound": (peak + counters["most_huge"]) // 4 + rows["bound.process"]
        + len(snapshot.heaps) * (counters["cache_bytes"] + rows["bound.heap"]) + snapshot.own_heaps * rows["bound.own"],
        "purged": counters["purged"],
        "cross_thread_frees": counters["foreign_frees"] + sum(heap.foreign_frees for heap in snapshot.heaps),
        "refills": sum(heap.refills for heap in snapshot.heaps),
        "flushes": sum(heap.flushes for heap in snapshot.heaps),
        "os_calls": counters["os_calls"],
        "heaps": len(snapshot.heaps),
        "live_heaps": sum(heap.live for heap in snapshot.heaps),
        "large_blocks": census.large_blocks,
        "large_bytes": census.large_bytes,
    }


def document(number: int, program: str, snapshot: Snapshot, census: Census) -> dict:
    """As docs/stats.schema.json says."""
    return {
        "schema": 1, "version": snapshot.layout.library, "pid": number, "program": program, **gauges(snapshot, census),
        "classes": [{"size": size, "superblocks": count.superblocks, "held_blocks": count.live + count.cached,
                     "cached_blocks": count.cached} for size, count in sorted(census.classes.items())],
        "threads": [{"heap": heap.number, "live": heap.live, "cached": heap.cached_bytes, "refills": heap.refills,
                     "flushes": heap.flushes, "cross_thread_frees": heap.foreign_frees}
                    for heap in sorted(snapshot.heaps, key=lambda heap: -heap.number)],
    }
