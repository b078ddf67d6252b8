"""The baseline allocators by the names under which they are measured, and what they count beside the time."""

from collections.abc import Mapping

from .common import GLIBC, Cast, Metric, only

TODAY = "hmalloc"  # as it is now, no baseline
ONE_LOCK = "one_lock"
HOARD, HOARD_EIGHTH, HOARD_HALF = "hoard", "hoard-f8", "hoard-f2"  # the empty fraction: 1/4, 1/8, 1/2
VVMALLOC = tuple(f"vvmalloc-{approach}" for approach in (1, 2, 3, 4))
AR_MALLOC, AR_LOCKED = "ar_malloc", "ar_malloc-lock"
HMALLOC_PAPER, PAPER_EXPLICIT, PAPER_SHARED = "hmalloc_paper", "hmalloc_paper-explicit", "hmalloc_paper-all-shared"

ALL = (ONE_LOCK, HOARD, HOARD_EIGHTH, HOARD_HALF, *VVMALLOC, AR_MALLOC, AR_LOCKED, HMALLOC_PAPER, PAPER_EXPLICIT,
       PAPER_SHARED)

# One of each work, as published: who stands beside the subject of a figure.
ONE_OF_EACH = (GLIBC, ONE_LOCK, HOARD, VVMALLOC[3], AR_MALLOC, HMALLOC_PAPER, TODAY)


def beside(*names: str) -> Cast:
    return only(*names, *ONE_OF_EACH)


def all_but_baselines(*kept: str) -> Cast:
    return lambda name: name in kept or name not in ALL


# The Linux paper has Solaris beside glibc.
LINUX_CAST = all_but_baselines(ONE_LOCK)


def counter(name: str) -> str:
    """The metric in which a counter of a baseline is kept."""
    return f"counter_{name}"


def quotient(above: str, below: str) -> Metric:
    """None where one of them was not counted."""
    def metric(metrics: Mapping) -> float | None:
        return metrics[above] / metrics[below] if metrics.get(above) is not None and metrics.get(below) else None
    return metric
