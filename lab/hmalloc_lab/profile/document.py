"""A map as a document: for programs that read JSON, and for the page."""

from dataclasses import asdict

from .advice import Advice
from .names import shorten
from .sites import Map, Site

SCHEMA = "hmalloc-sharing-map"
VERSION = 1


def document(program: str, sharing: Map, given: list[Advice]) -> dict:
    return {
        "schema": SCHEMA, "version": VERSION,
        "program": program, "period": sharing.period, "missing": sharing.missing,
        "total": {name: asdict(amount) for name, amount in sharing.total.items()},
        "threads": [asdict(thread) for thread in sharing.threads],
        "matrix": [{"allocated_by": by, "freed_by": freer, "amount": asdict(amount)}
                   for (by, freer), amount in sorted(sharing.matrix.items())],
        "sites": [_site(site) for site in sharing.sites],
        "advice": [asdict(each) for each in given],
    }


def _site(site: Site) -> dict:
    frame = site.frame
    return {
        "function": shorten(frame.function) if frame.function else None,
        "file": frame.file, "line": frame.line, "path": frame.path, "object": frame.object, "address": f"{frame.address:#x}",
        "stack": site.callers,
        "allocated": asdict(site.allocated), "held": asdict(site.held), "freed": asdict(site.freed),
        "handed_over": asdict(site.handed_over),
        "block_bytes": site.block_bytes,
        "ages": [{"from_ns": age, "to_ns": age * 10 or 1000, "amount": asdict(amount)}
                 for age, amount in sorted(site.ages.items())],
        "freed_at": [{"place": place, "by_other": by_other, "amount": asdict(amount)}
                     for (place, by_other), amount in heaviest(site)],
    }


def heaviest(site: Site) -> list:
    """Where its blocks are freed, the place first that frees most bytes."""
    return sorted(site.freed_at.items(), key=lambda item: (-item[1].bytes, item[0]))
