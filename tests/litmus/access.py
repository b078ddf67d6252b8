"""One access to memory that other threads look at, of whatever machine."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Access:
    """kind: load, store, swap, cas, ldx and stx (an exclusive pair), fence; unknown: one that nobody has translated yet."""
    kind: str
    word: str = ""
    offset: int = 0
    size: int = 8
    acquire: str = ""    # A; Q for one that may pass an earlier release (LDAPR)
    release: bool = False
    value: int | None = None     # what it writes
    expected: int | None = None  # of a cas
    name: str = ""               # of a fence
