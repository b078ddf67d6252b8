"""How old the allocators are that we are compared with, as far as their releases say when they were made."""

import re

# Of the allocators' own release notes; "before": when Debian packaged it, where the release has no date.
_RELEASED = {
    ("gperftools", "2.10"): "before 2022-06", ("gperftools", "2.18.1"): "before 2026-03",
    ("glibc", "2.36"): "2022-08", ("glibc", "2.41"): "2025-01",
    ("jemalloc", "5.3.0"): "2022-05", ("jemalloc", "5.3.1"): "2026-04",
    ("mimalloc2", "2.0.9"): "2022-12", ("mimalloc2", "2.5.2"): "2026-09",
    ("mimalloc3", "3.6.0"): "2026-10",
    ("rpmalloc", "2.0.1"): "before 2026-09",
    ("tcmalloc", "0.1.14"): "2025-06",
}
# The newest that were released when this was written, in November 2026; google/tcmalloc and snmalloc number none.
_NEWEST = {"gperftools": "2.18.1", "jemalloc": "5.3.1", "mimalloc2": "2.5.2", "mimalloc3": "3.6.0", "rpmalloc": "2.0.1"}
_NUMBER = re.compile(r"\d+(?:\.\d+)+")


def dated(name: str, version: str) -> str:
    """The version with its age, and with what its project has released since."""
    found = _NUMBER.search(version)
    number = found[0] if found else ""
    released = _RELEASED.get((name, number))
    since = _NEWEST.get(name, number)
    return (f"{version}, {released if released else 'age unknown'}"
            + (f", upstream is at {since}" if number and _older(number, since) else ""))


def _older(number: str, than: str) -> bool:
    return [int(each) for each in number.split(".")] < [int(each) for each in than.split(".")]
