"""The memory of a process or of a core file, as far as it can be read.  Nothing is ever written."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np


class Unreadable(Exception):
    """There is nothing at this address, or the file lacks it."""

    def __init__(self, address: int) -> None:
        super().__init__(f"nothing can be read at {address:#x}")
        self.address = address


def printable(name: str) -> str:
    """On one line of any terminal, and in XML: threads and files may have any bytes as their names."""
    return "".join(each if each.isprintable() else "?" for each in name)


@dataclass(frozen=True)
class Mapping:
    start: int
    end: int
    rights: str
    """As the system writes them: rw-p."""
    path: str = ""
    offset: int = 0

    def __contains__(self, address: int) -> bool:
        return self.start <= address < self.end


@dataclass(frozen=True)
class Thread:
    number: int
    name: str
    stack: int
    """The stack pointer."""
    pointer: int
    """The thread pointer, from which its variables are found."""
    registers: bytes


class Memory(ABC):
    title: str
    """What is read, for a person."""
    stands_still: bool
    """Whether nothing changes now."""
    mappings: list[Mapping]
    threads: list[Thread]
    """Of what stands still."""

    def has_ended(self) -> bool:
        """What is read later means nothing."""
        return False

    @abstractmethod
    def read(self, address: int, size: int) -> bytes:
        """All of it, or Unreadable."""

    def touched(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """What of this the program may have written: all of it, unless the system says more."""
        yield start, end

    def thread(self, number: int) -> str:
        """Its name and number, by the number that it has for itself."""
        name = next((each.name for each in self.threads if each.number == number), "")
        return f"{name} ({number})".lstrip()

    def word(self, address: int) -> int:
        return int.from_bytes(self.read(address, 8), "little")

    def words(self, address: int, count: int) -> np.ndarray:
        return np.frombuffer(self.read(address, 8 * count), dtype="<u8")

    def mapping_of(self, address: int) -> Mapping | None:
        return next((each for each in self.mappings if address in each), None)
