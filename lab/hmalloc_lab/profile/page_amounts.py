"""Sums of what the samples stand for."""

from collections.abc import Iterable
from dataclasses import dataclass

_LAST_CLASS_NS = 10 ** 12  # of those that the library tells apart: it has no end


@dataclass(frozen=True)
class Amount:
    objects: float = 0.0
    bytes: float = 0.0
    samples: int = 0

    @classmethod
    def read(cls, found: dict) -> "Amount":
        return cls(found["objects"], found["bytes"], found["samples"])

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(self.objects + other.objects, self.bytes + other.bytes, self.samples + other.samples)


NOTHING = Amount()


@dataclass(frozen=True)
class Age:
    """How many blocks were freed at that age."""
    from_ns: float
    to_ns: float | None
    amount: Amount
    part: float  # of all blocks whose age is known


def ages_of(found: Iterable[dict]) -> list[Age]:
    """Classes from the youngest that has blocks to the oldest, with those between them that have none."""
    classes: dict[float, Amount] = {}
    upper: dict[float, float | None] = {}
    for age in found:
        classes[age["from_ns"]] = classes.get(age["from_ns"], NOTHING) + Amount.read(age["amount"])
        upper[age["from_ns"]] = age["to_ns"] if age["from_ns"] < _LAST_CLASS_NS else None
    served = [start for start, amount in classes.items() if amount != NOTHING]
    if not served:
        return []
    youngest, oldest = min(served), max(served)
    start = youngest
    while start < oldest:
        start = upper.setdefault(start, max(start * 10, 1000)) or oldest
        classes.setdefault(start, NOTHING)
        upper.setdefault(start, start * 10)
    whole = sum(amount.objects for amount in classes.values()) or 1
    return [Age(start, upper[start], classes[start], classes[start].objects / whole)
            for start in sorted(classes) if youngest <= start <= oldest]
