"""What is run.  A cell is a program on one of the configurations of simulations.py, with options that differ from the
default; all cells of a configuration are run one right after the other."""

from collections.abc import Iterator
from dataclasses import replace

from ..catalogue import EXPLICIT, NO_ALLOCATOR, Cell
from ..simulations import BARE, CONFIGURATIONS, ENGINES

EXPLICIT_HMALLOC = "hmalloc-explicit"  # how simulations are run unless somebody else is asked for
SYSTEM = "glibc"

PARTS = ("bare", "threads", "allocators", "options", "engines")
USUAL = PARTS[:-1]  # the engines of others are slow, and have to be built
_LIMIT_S = 120.0

STANDARD = ("A", "B", "C")
BARE_CONFIGURATIONS = (*STANDARD, "E", "1M", "ties", "pareto")
ALLOCATED = (*STANDARD, "mixed", "pcs", "airport")  # where allocators are compared
COMPARED = ("A", "B")  # with the engines of others
_THREADED = ("nexosim",)


def model(config: str, threads: int = 1, everybody: bool = False, **options: int | str) -> Cell:
    """everybody: run by all allocators, not by explicit hmalloc alone."""
    workload = config if config in ("pcs", "airport") else "phold"
    return Cell(workload, "simulation", {"config": config, "threads": threads, **options},
                apis=(EXPLICIT, NO_ALLOCATOR), only=() if everybody else (EXPLICIT_HMALLOC,), limit_s=_LIMIT_S)


def bare(config: str) -> Cell:
    return Cell(BARE, "simulation", {"config": config}, only=(SYSTEM,), limit_s=_LIMIT_S)


def engine(name: str, config: str, threads: int = 1) -> Cell:
    """PHOLD on the engine of others of that name."""
    return Cell(name, "simulation", {"config": config} | ({"threads": threads} if threads > 1 else {}), only=(SYSTEM,),
                limit_s=3 * _LIMIT_S)


def engines() -> Iterator[tuple[str, int]]:
    """By name and number of threads."""
    for name in ENGINES:
        for threads in (1, 2) if name in _THREADED else (1,):
            yield name, threads


def chosen(parts: tuple[str, ...], times: int = 1) -> list[Cell]:
    """times: so many times as long as the configurations say."""
    found: dict[str, Cell] = {}
    for part in parts:
        for cell in _OF_PART[part]():
            known = found.get(cell.name)
            # Whoever is asked by all is not asked by explicit hmalloc once more.
            if known is None or known.only:
                found[cell.name] = cell
    return [_lengthened(cell, times) for cell in found.values()]


def _lengthened(cell: Cell, times: int) -> Cell:
    end = CONFIGURATIONS[str(cell.point["config"])]["end"]
    return cell if times == 1 else replace(cell, repeat={"end": end * times}, limit_s=_LIMIT_S * times)


def _against_bare() -> Iterator[Cell]:
    for config in BARE_CONFIGURATIONS:
        yield bare(config)
        yield model(config)
    yield model("B", generator="philox")


def _threads() -> Iterator[Cell]:
    for config in STANDARD:
        yield bare(config)
        for threads in (1, 2, 8):
            yield model(config, threads)
        yield model(config, 8, capped=1)
    yield model("B", ranks=2)


def _allocators() -> Iterator[Cell]:
    for config in ALLOCATED:
        for threads in (1, 2):
            yield model(config, threads, everybody=True)


def _options() -> Iterator[Cell]:
    for config in STANDARD:
        yield bare(config)
        yield model(config)
        yield model(config, queue="heap")
        for blocks in ("dense", "lines"):
            yield model(config, blocks=blocks)
    yield model("airport", 2)
    yield model("airport", 2, sync="neighbours")


def _engines() -> Iterator[Cell]:
    for config in COMPARED:
        yield bare(config)
        for threads in (1, 2):
            yield model(config, threads)
        for name, threads in engines():
            yield engine(name, config, threads)


_OF_PART = {"bare": _against_bare, "threads": _threads, "allocators": _allocators, "options": _options,
            "engines": _engines}
