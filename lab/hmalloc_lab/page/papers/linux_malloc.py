"""The Linux paper's Tables 1 to 4 and Fig. 1 to 11 (Lever and Boreham).

There is one machine here for the paper's three.  It stands for the two Linux machines where it has their number of
CPUs; Solaris, whose heap had one lock, takes an allocator of that kind.
"""

import math
import statistics

from ...bench.catalogue import Cell
from ...bench.results import Results
from ...bench.statistics import FEWEST, Ratio, paired_ratio
from ..figure import Point, Series, Table
from .measures import (
    GLIBC,
    ONE_LOCK,
    Cells,
    alone,
    cells,
    cpus,
    joined,
    measured_in,
    median_of,
    percent,
    values_of,
    with_threads,
)
from .pictures import LINUX_CAST, grid, lines, of_each, size_chart, size_curves, table
from .predicates import (
    Check,
    Clause,
    ends,
    exactly,
    from_to,
    held,
    lies,
    most_to_one_thread,
    on_cpus,
    related,
    span,
    to_one_thread,
)
from .wording import of_paper

_DUAL = "This machine, two of its CPUs in use, stands for the paper's dual Pentium Pro; glibc today for glibc 2.0."
_QUAD = "This machine stands for the paper's four Xeons; glibc today for glibc 2.1."
_SOLARIS = "A heap behind one lock stands for that of Solaris 2.6, this machine for its two UltraSPARCs."
_linux = of_paper("Linux malloc (2000)", "glibc today for glibc 2.1.")

# ---- Benchmark 1: workers. ------------------------------------------------------------------------------------------

_SECONDS = "worker_s_mean"
_WORKER = {"metric": _SECONDS, "crowded": True}


def _workers(size: int, mode: str = "threads", **point: int) -> Cells:
    return cells("linux-workers", size=size, mode=mode, **point)


_TWO = joined(_workers(512, "processes", threads=2), _workers(512, "threads", threads=2))
_THREE = _workers(8192, threads=3)


def _share(cell: Cell, count: int) -> float:
    """Of a CPU's time, that the cell's threads ask of each."""
    return max(1.0, cell.threads / count)


def _expected(results: Results, among: list[Cell]) -> list[Series]:
    """One thread's time of glibc, shared by the CPUs: m * t/n from the point where there are more threads than CPUs."""
    return [Series("expected", [Point(cell.threads, base * _share(cell, cpus(results))) for cell in among], dashed=True)
            for one in alone(among) if cpus(results) and (base := median_of(results, one, GLIBC, _SECONDS)) is not None]


def _runs(results: Results, among: list[Cell]) -> list[Table]:
    """Each round's time."""
    times = {who: values_of(results, among[0], who, _SECONDS) for who in measured_in(results, among[:1], LINUX_CAST)}
    rounds = sorted({number for values in times.values() for number in values})
    return table(["run", *times], [[number, *(times[who].get(number) for who in times)] for number in rounds],
                 "Seconds of a worker")


_TABLE = grid("two workers", of_each(_SECONDS, LINUX_CAST), "Seconds of a worker",
              label=lambda cell: cell.point["mode"])
_TIME = lines("seconds of a worker", _SECONDS, LINUX_CAST)
_TIME_AND_EXPECTED = lines("seconds of a worker", _SECONDS, LINUX_CAST, extra=_expected)


def _as_threads(who: str, **limits: float) -> Clause:
    return related(who, ends, "time as threads over time as processes", at=lambda *_: "for two workers",
                   metric=_SECONDS, **limits)


def _beyond_the_cpus(results: Results, among: list[Cell]) -> list[tuple[Cell, Cell]]:
    """All against one thread, where some have more threads than CPUs."""
    beyond = cpus(results) and any(cell.threads > cpus(results) for cell in among)
    return to_one_thread(results, among) if beyond else []


def _busy(results: Results, among: list[Cell]) -> list[tuple[Cell, Cell]]:
    """Of those with at least as many threads as CPUs, all against the first."""
    busy = [cell for cell in among if cell.threads >= cpus(results) > 0]
    return [(cell, busy[0]) for cell in busy[1:]]


def _sporadic(results: Results, among: list[Cell], name: str) -> list[Check]:
    """Some runs, but fewer than half, are over 10 % above the median, of at least ten that nobody disturbed."""
    found = [value for cell in among[:1] for number, value in values_of(results, cell, name, _SECONDS).items()
             if number not in results.noisy_rounds]
    slow = sum(value > 1.1 * statistics.median(found) for value in found)
    rounds = FEWEST if len(found) >= 10 else 0
    return [Check(f"of {len(found)}", exactly(slow, rounds), 1, math.ceil(len(found) / 2) - 1, "{:.0f}".format)
            for _ in among[:1]]


# ---- Benchmark 2: page faults of successors. ------------------------------------------------------------------------

_FAULTS = "faults_since_start"


def _rounds(cell: Cell) -> int:
    return int(cell.point["rounds"])


def _successors(threads: int, fewest: int = 1, most: int = 8) -> Cells:
    of = cells("linux-successors", lambda cell: fewest <= _rounds(cell) <= most, threads=threads)
    return lambda results: sorted(of(results), key=_rounds)


def _predicted(cell: Cell) -> float:
    """The paper's lower bound (section 5.2) for 10,000 objects of 40 bytes a thread."""
    return 14 + 1.1 * cell.threads * _rounds(cell) + 127.6 * cell.threads


def _spread(faults: list[float]) -> Ratio | None:
    """Largest less smallest as a share of the smallest."""
    return exactly(max(faults) / min(faults) - 1, len(faults)) if faults and min(faults) > 0 else None


def _spreads(**limits: float) -> Clause:
    asked = f"at least {percent(limits['least'])}" if "least" in limits else f"at most {percent(limits['most'])}"
    return lies(GLIBC, "spread of the page faults over the runs", _FAULTS, show=percent, number=_spread, asked=asked,
                at=lambda cell: f"with {_rounds(cell)} round{'s' * (_rounds(cell) > 1)}", **limits)


def _less_than_with_three(results: Results, among: list[Cell], name: str) -> list[Check]:
    """On average over the numbers of rounds."""
    means = []
    for each in (among, others := _successors(3)(results)):
        spreads = [_spread(list(values_of(results, cell, name, _FAULTS).values())) for cell in each]
        told = spreads and all(spread and spread.rounds >= FEWEST for spread in spreads)
        means.append(statistics.mean(spread.median for spread in spreads) if told else None)
    if not others:
        return []
    at = f"{with_threads(among[0])} against {percent(means[1] or 0)} {with_threads(others[0])}"
    return [Check(at, None if None in means else exactly(means[0]), 0, math.nextafter(means[1] or 0, -1), percent)]


def _grow_as_predicted(tolerance: float) -> Clause:
    return related(GLIBC, ends, "growth of the page faults",
                   f"at most {percent(tolerance)} above the predictor's growth",
                   most=lambda cell, base, _: (1 + tolerance) * _predicted(cell) / _predicted(base),
                   at=lambda cell, base: f"from {_rounds(base)} to {_rounds(cell)} rounds", metric=_FAULTS,
                   crowded=True)


_FAULT_CHART = lines(
    "minor page faults", _FAULTS, LINUX_CAST, x="rounds",
    point=lambda x, faults: Point(x, statistics.mean(faults), min(faults), max(faults)), extra=lambda _, among: [
        Series("predictor", [Point(_rounds(cell), _predicted(cell)) for cell in among], dashed=True)])


# ---- Benchmark 3: false sharing by object size. ---------------------------------------------------------------------


def _objects(threads: int) -> Cells:
    return joined(*(cells("linux-false-sharing", threads=threads, aligned=way) for way in (0, 1)))


def _penalty(least: float) -> Clause:
    """The slowest size but one, so that one disturbance does not count, over the median of aligned objects."""
    def build(results: Results, among: list[Cell], name: str) -> list[Check]:
        normal, aligned = (size_curves(results, among, name, way) for way in (0, 1))
        slowest = {number: sorted(curve.values())[-2:][0] for number, curve in normal.items()}
        usual = {number: statistics.median(curve.values()) for number, curve in aligned.items()}
        return [Check(with_threads(cell), paired_ratio(slowest, usual), least) for cell in among[:1]]
    return held((GLIBC,), build, "{0}, time of the slowest sizes over aligned objects", span(least))


# ---- Rows. ----------------------------------------------------------------------------------------------------------

_OVER_ONE, _GROWTH = "time over that with one thread", "growth of the time"

FIGURES = [
    _linux("Table 1", _TWO, _TABLE, _as_threads(GLIBC, most=1.15), note=_DUAL),
    _linux("Table 2", _TWO, _TABLE, _as_threads(ONE_LOCK, least=5), note=_SOLARIS),
    _linux("Table 3", _TWO, _TABLE, on_cpus(4, _as_threads(GLIBC, most=1.25)), note=_QUAD),
    _linux("Fig. 1", _workers(8192), _TIME_AND_EXPECTED, related(
        GLIBC, _beyond_the_cpus, _OVER_ONE, "at most 20 % above the threads for each CPU",
        most=lambda cell, _, count: 1.2 * _share(cell, count), **_WORKER), note=_DUAL),
    _linux("Fig. 2", _workers(4100), _TIME, related(
        GLIBC, _busy, _GROWTH, "as the threads, within 25 %", lambda cell, base, _: 0.75 * cell.threads / base.threads,
        lambda cell, base, _: 1.25 * cell.threads / base.threads, from_to, **_WORKER), note=_DUAL),
    _linux("Fig. 3", _workers(8192), _TIME_AND_EXPECTED, on_cpus(1, related(
        ONE_LOCK, most_to_one_thread, _OVER_ONE, "at least 2 times the threads for each CPU",
        lambda cell, _, count: 2 * _share(cell, count), **_WORKER)), note=_SOLARIS),
    _linux("Fig. 4", _workers(8192), _TIME_AND_EXPECTED,
           on_cpus(4, related(GLIBC, to_one_thread, _OVER_ONE, most=1.25, metric=_SECONDS)),
           # One thread more than CPUs, against as many.
           on_cpus(4, related(GLIBC, lambda results, among: [
               (over, full) for full in among for over in among if full.threads == cpus(results) == over.threads - 1],
               _GROWTH, least=1.1, at=from_to, **_WORKER)), note=_QUAD),
    _linux("Table 4", _THREE, _runs, held((GLIBC,), _sporadic, "{0}, undisturbed runs over 10 % above the median",
                                          "some, but fewer than half"), note=_QUAD),
    _linux("Fig. 5", _successors(1), _FAULT_CHART, _grow_as_predicted(0.05), _spreads(most=0.05)),
    _linux("Fig. 6", _successors(3), _FAULT_CHART, _spreads(least=0.25)),
    _linux("Fig. 7", _successors(7), _FAULT_CHART, _spreads(most=0.18), held(
        (GLIBC,), _less_than_with_three, "{0}, mean spread", "less", crowded=True)),
    _linux("Fig. 8", _successors(7, 9, 1000), _FAULT_CHART, on_cpus(2, _grow_as_predicted(0.1))),
    _linux("Fig. 9", _objects(2), size_chart, _penalty(2)),
    _linux("Fig. 10", _objects(3), size_chart, _penalty(1.5)),
    _linux("Fig. 11", _objects(4), size_chart, _penalty(2)),
]
