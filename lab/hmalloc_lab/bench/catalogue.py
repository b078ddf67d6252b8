"""What is measured.  A cell is one program of bench/workloads or pdes/models at one point of its parameters; how often
it repeats its work there depends on the profile and is no part of its name.

  quick  a look, under two minutes: few cells, short
  paper  the papers' sizes and mixes; what only repeats is cut to fractions of a second, and the largest populations
  full   the papers' own repetitions and more threads: a night

A fourth profile, of cells of these, is in baselines.py.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from .programs.table import PROGRAMS
from .recordings import TRACES

Point = dict[str, int | float | str]

PROFILES = ("quick", "paper", "full")

# The explicit ways to call hmalloc: another executable, WORKLOAD-API, of the same source.
EXPLICIT = "explicit"      # local and shared memory as the program knows them
ALL_SHARED = "all-shared"  # everything shared: the reference of the HMalloc paper
NO_ALLOCATOR = "no-allocator"  # no allocator at all; of simulations: the engine's own free list


@dataclass(frozen=True)
class Cell:
    workload: str
    family: str                             # local | shared | false sharing | mixed | large | memory | latency | replay |
                                            # servers | simulation | mixes | programs
    point: Point = field(hash=False)        # arguments that say what it is
    repeat: Point = field(default_factory=dict, hash=False, compare=False)  # arguments that say how much of it
    metric: str = "ns_per_op"               # what the tables compare; smaller is better
    apis: tuple[str, ...] = ()
    only: tuple[str, ...] = ()              # allocators that run it; empty: all that can
    variants: tuple[str, ...] = ()          # of baselines: who runs it as well
    counts_peak: bool = True                # whether its peak memory enters the memory mean
    most_rounds: int = 1000
    limit_s: float = 60.0                   # after that it counts as hung

    @property
    def name(self) -> str:
        return " ".join([self.workload, *(f"{key}={value}" for key, value in self.point.items())])

    @property
    def threads(self) -> int:
        return int(self.point.get("threads", 1))

    @property
    def is_study(self) -> bool:
        """It explains others and is no part of means and verdicts: the arenas, for two allocators alone have them and
        the better of two has no merit; and an allocator's share of a server's time."""
        return "arenas" in self.point or "share" in self.point

    @property
    def group(self) -> str:
        """Cells that are compared with each other are run one right after the other."""
        return str(self.point.get("config", self.name))

    @property
    def arguments(self) -> list[str]:
        """`arenas` is not the program's business: it is put into the allocator's environment."""
        words = []
        for key, value in {**self.point, **self.repeat}.items():
            if key != "arenas":
                words += [f"--{key}", str(value)]
        return words


# What a metric is called in tables.  All of them: smaller is better.
UNITS = {
    "ns_per_op": "ns", "seconds": "s", "wall_s": "s", "cpu_s": "s",
    "minor_faults": "faults", "footprint": "resident/live", "kb_per_thread": "KB/thread", "end_ratio": "end/start",
    "allocator_share": "% of user time", "drift_rss_kb": "end/start",
    "rss_kb": "KB", "vm_hwm_kb": "KB", "vm_peak_kb": "KB",
    "latency_p50_ns": "ns", "latency_p99_ns": "ns", "latency_p999_ns": "ns", "latency_p9999_ns": "ns",
}

PATTERNS = ("once", "fifo", "lifo", "random", "replace")

# A run that takes longer counts as hung, whatever the cell allows.
_LONGEST_RUN_S = {"quick": 10.0, "paper": 120.0, "full": 7200.0}


def cells(profile: str) -> list[Cell]:
    """Every cell of a profile, in the order of the report."""
    longest = _LONGEST_RUN_S[profile]
    found = [replace(cell, limit_s=min(cell.limit_s, longest), variants=_variants(cell))
             for cell in _cells(_Scale(profile))]
    assert len({cell.name for cell in found}) == len(found), "two cells of one name"
    return found


# Measured only if they are asked for, and no part of the means over all cells.
APART = ("programs",)


def apart(profile: str) -> list[Cell]:
    """Whole programs that nobody here wrote; a look has no time for them."""
    return [Cell(name, "programs", program.point, metric="cpu_s", limit_s=120)
            for name, program in PROGRAMS.items()] if profile in ("paper", "full") else []


def _variants(cell: Cell) -> tuple[str, ...]:
    """Hoard's Tables 5 and 6: a single thread's superblocks come back from the global heap to the same heap.  And
    ar_malloc's arenas without the caches that keep most calls away from them."""
    if "arenas" in cell.point:
        return ("ar_malloc-nocache",)
    of = {"threadtest": {"size": 8}, "shbench": {}, "larson": {"max": 100}, "barnes-hut": {}}.get(cell.workload)
    wanted = of is not None and cell.threads > 1 and "latency" not in cell.point and of.items() <= cell.point.items()
    return ("hoard-f8", "hoard-f2") if wanted else ()


class _Scale:
    """Chooses by profile."""

    def __init__(self, profile: str) -> None:
        self._index = PROFILES.index(profile)
        self.threads = self((1, 2), (1, 2, 4, 8), (1, 2, 4, 8, 16))

    def __call__(self, quick, paper, full):
        return (quick, paper, full)[self._index]


def _cells(of: _Scale) -> Iterator[Cell]:
    yield from _local(of)
    yield from _large_and_mixed(of)
    yield from _shared(of)
    yield from _false_sharing(of)
    yield from _linux(of)
    yield from _latency(of)
    yield from _memory(of)
    yield from _replay(of)
    yield from _servers(of)
    yield from _simulation(of)


def _local(of: _Scale) -> Iterator[Cell]:
    for pattern in of(("once", "random"), PATTERNS, PATTERNS):
        for size in of((64,), (16, 64, 256), (16, 32, 48, 64, 96, 128, 256, 512)):
            yield Cell("pairs", "local", {"pattern": pattern, "size": size}, {"seconds": of(0.04, 0.08, 0.12)},
                       apis=(EXPLICIT, ALL_SHARED))
    for size in of((64,), (64, 8), (64, 8)):  # HMalloc's and Hoard's
        for threads in of.threads:
            yield Cell("threadtest", "local", {"size": size, "threads": threads},
                       {"objects": 100_000, "rounds": of(10, 40, 5000)}, apis=(EXPLICIT, ALL_SHARED), limit_s=900)
    for threads in of.threads:
        yield Cell("linux-scalability", "local", {"size": 512, "threads": threads},
                   {"objects": of(50_000, 200_000, 1_000_000)}, apis=(EXPLICIT, ALL_SHARED), limit_s=900)
    for threads in of.threads:
        yield Cell("shbench", "local", {"threads": threads}, {"iterations": of(500, 4000, 2_000_000)},
                   apis=(EXPLICIT, ALL_SHARED), limit_s=900)
    for threads in of.threads:
        yield Cell("ar-random", "local", {"threads": threads}, {"steps": of(1_000_000, 6_000_000, 20_000_000)},
                   apis=(EXPLICIT, ALL_SHARED), limit_s=900)
    for arenas in of((), (1, 2, 4, 8), (1, 2, 4, 8, 16)):
        for threads in of.threads:
            yield Cell("ar-random", "local", {"threads": threads, "arenas": arenas},
                       {"steps": of(1_000_000, 4_000_000, 20_000_000)}, limit_s=900)
    for threads in of.threads:
        yield Cell("barnes-hut", "local", {"threads": threads},
                   {"bodies": of(4_000, 16_384, 32_768), "steps": of(1, 2, 20)},
                   apis=(EXPLICIT, ALL_SHARED), limit_s=900)


def _large_and_mixed(of: _Scale) -> Iterator[Cell]:
    for threads in of.threads:
        yield Cell("largetest", "large", {"threads": threads}, {"iterations": of(3_000, 20_000, 1_000_000)},
                   apis=(EXPLICIT, ALL_SHARED), limit_s=900)
    for largest, weight in of(((3072, 5),), ((3072, 5), (16_384, 1)), ((3072, 5), (16_384, 1))):  # KB
        for threads in of.threads:
            yield Cell("buffers", "large", {"max": largest, "threads": threads},
                       {"replacements": weight * of(200, 1000, 20_000)}, limit_s=900)
    for largest, live in of(((65_536, 500),), ((65_536, 500), (1 << 20, 100)), ((65_536, 500), (1 << 20, 100))):
        for threads in of.threads:
            yield Cell("churn", "mixed", {"max": largest, "threads": threads},
                       {"live": live, "steps": of(20_000, 200_000, 2_000_000)}, apis=(EXPLICIT, ALL_SHARED), limit_s=900)
    for workload, weight in ((1, 4), (2, 1), (3, 2)):  # small calls are faster
        for threads in of.threads:
            yield Cell("vvmalloc", "local" if workload == 1 else "large" if workload == 2 else "mixed",
                       {"workload": workload, "threads": threads}, {"repeats": weight * of(2, 10, 50)},
                       apis=(EXPLICIT, ALL_SHARED), limit_s=900)
    for threads in of((), (1, 2, 4, 8, 16), (1, 2, 4, 8, 16)):
        yield Cell("unequal", "mixed", {"threads": threads}, {"repeats": of(0, 5, 50)}, apis=(EXPLICIT, ALL_SHARED),
                   limit_s=900)


def _shared(of: _Scale) -> Iterator[Cell]:
    for size in of((64,), (16, 64, 256), (16, 64, 256)):
        yield Cell("ring", "shared", {"size": size}, {"seconds": of(0.1, 0.15, 0.5), "pin": 1},
                   apis=(EXPLICIT, NO_ALLOCATOR))
    for shape in ("symmetric", "asymmetric"):
        for size in of((64,), (32, 64, 256), (32, 64, 256)):
            for threads in of((2,), (2, 8), (2, 4, 8, 16)):
                yield Cell("exchange", "shared", {"shape": shape, "size": size, "threads": threads},
                           {"seconds": of(0.1, 0.15, 0.5), "pin": 1}, apis=(EXPLICIT,))
    for threads in of((2,), (2, 3, 4, 8), (2, 3, 4, 8, 12, 16)):  # one of them produces
        yield Cell("producer-consumer", "shared", {"size": 8, "threads": threads},
                   {"rounds": of(200, 1000, 1_000_000)}, apis=(EXPLICIT,), limit_s=900)
    for smallest, largest in of(((8, 512),), ((8, 512), (10, 100)), ((8, 512), (10, 100))):  # HMalloc's and Hoard's
        for threads in of.threads:
            yield Cell("larson", "shared", {"min": smallest, "max": largest, "threads": threads},
                       {"slots": 10_000, "seconds": of(0.1, 0.25, 10)}, apis=(EXPLICIT,), limit_s=120)


def _false_sharing(of: _Scale) -> Iterator[Cell]:
    for threads in of.threads:
        yield Cell("active-false", "false sharing", {"size": 8, "threads": threads},
                   {"pairs": of(500, 2_000, 200_000), "writes": 20_000}, apis=(EXPLICIT, ALL_SHARED), limit_s=900)
    for threads in of.threads:
        yield Cell("passive-false", "false sharing", {"size": 8, "threads": threads},
                   {"rounds": of(200, 2_000, 10_000_000), "writes": of(20_000, 20_000, 8)},
                   apis=(EXPLICIT, ALL_SHARED), limit_s=900)
    for threads in of((2,), (2, 3, 4), (2, 3, 4)):
        for aligned in (0, 1):
            # One run goes through the sizes 3 to 52 and reports each: field `series`, [[size, ns per write], ...].
            yield Cell("linux-false-sharing", "false sharing", {"threads": threads, "aligned": aligned},
                       {"writes": of(500_000, 4_000_000, 100_000_000)}, limit_s=900)


def _linux(of: _Scale) -> Iterator[Cell]:
    for size in of((512,), (512, 8192, 4100), (512, 8192, 4100)):
        for workers in of((2,), (1, 2, 3, 4, 5), (1, 2, 3, 4, 5, 6)) if size != 4100 else of((), (8, 16), (8, 16, 32, 64)):
            for mode in ("threads", "processes"):
                if size == 512 or mode == "threads":
                    yield Cell("linux-workers", "local", {"mode": mode, "size": size, "threads": workers},
                               {"pairs": of(1_000_000, 2_000_000, 10_000_000)}, apis=(), limit_s=900)
    for threads in of((3,), (1, 3, 7), (1, 3, 7)):
        for rounds in of((4,), (1, 2, 4, 8), (1, 2, 3, 4, 5, 6, 7, 8)):
            yield Cell("linux-successors", "memory", {"threads": threads, "rounds": rounds}, {"objects": 10_000},
                       metric="minor_faults", counts_peak=False)
    for rounds in of((), (16, 40), (10, 20, 30, 40)):  # Figure 8: seven threads for longer
        yield Cell("linux-successors", "memory", {"threads": 7, "rounds": rounds}, {"objects": 10_000},
                   metric="minor_faults", counts_peak=False)


def _latency(of: _Scale) -> Iterator[Cell]:
    """The same programs with a clock around a sample of the calls; too disturbed for throughput."""
    for workload, point, repeat in (
            ("threadtest", {"size": 64, "threads": 2}, {"objects": 100_000, "rounds": of(10, 40, 500)}),
            ("producer-consumer", {"size": 8, "threads": 2}, {"rounds": of(200, 1000, 100_000)}),
            ("exchange", {"shape": "symmetric", "size": 64, "threads": 2}, {"seconds": of(0.1, 0.3, 2), "pin": 1}),
            ("larson", {"min": 8, "max": 512, "threads": 2}, {"slots": 10_000, "seconds": of(0.1, 0.3, 10)})):
        apis = (EXPLICIT, ALL_SHARED) if workload == "threadtest" else (EXPLICIT,)
        yield Cell(workload, "latency", {**point, "latency": 1}, repeat, metric="latency_p999_ns", apis=apis,
                   counts_peak=False, limit_s=900)


def _memory(of: _Scale) -> Iterator[Cell]:
    yield Cell("footprint", "memory", {"threads": 4}, {"steps": of(400_000, 3_000_000, 6_000_000)}, metric="footprint",
               apis=(EXPLICIT,), most_rounds=5)
    yield Cell("idle", "memory", {"threads": 1000}, metric="kb_per_thread", most_rounds=5, counts_peak=False)
    yield Cell("nothing", "memory", {"size": 0}, metric="rss_kb", most_rounds=5, counts_peak=False)
    yield Cell("nothing", "memory", {"size": 64}, metric="rss_kb", most_rounds=5, counts_peak=False)
    if of(False, True, True):
        yield Cell("drain", "memory", {"megabytes": 250}, {"wait": of(1, 2, 3)}, metric="end_ratio", most_rounds=5)
    if of(False, False, True):  # a server for an hour: does it grow, do its calls slow down?
        yield Cell("larson", "memory", {"min": 8, "max": 512, "threads": 2, "latency": 1, "every": 60}, {"seconds": 3600},
                   metric="drift_rss_kb", only=("hmalloc", "mimalloc2", "glibc"), most_rounds=1, counts_peak=False,
                   limit_s=4000)


def _replay(of: _Scale) -> Iterator[Cell]:
    for trace in of(("larson",), tuple(TRACES), tuple(TRACES)):
        yield Cell("replay", "replay", {"trace": trace}, metric="ns_per_op", counts_peak=False)


def _servers(of: _Scale) -> Iterator[Cell]:
    """Real ones; and how much of their time is the allocator's to save."""
    for workload, point, repeat in (("redis", {"io-threads": 2}, {"requests": of(0, 50_000, 1_000_000)}),
                                    ("db_bench", {"threads": 4}, {"reads": of(0, 40_000, 400_000)})):
        if of(False, True, True):
            yield Cell(workload, "servers", point, repeat, limit_s=900)
            yield Cell(workload, "servers", {**point, "share": 1}, repeat, metric="allocator_share", most_rounds=5,
                       counts_peak=False, limit_s=900)


def _simulation(of: _Scale) -> Iterator[Cell]:
    """HMalloc's Fig. 12 to 14, in the figures' parameters; each point has about as many events."""
    apis = (EXPLICIT, NO_ALLOCATOR)
    for threads in of((), (1, 2), (1, 2, 4, 8, 16)):
        for remote in (0, 25, 50, 75, 100):  # percent
            yield Cell("phold", "simulation", {"remote": remote, "threads": threads}, {"end": of(0, 160, 1600)},
                       apis=apis, limit_s=900)
        for events in (20, 50, 100, 200):
            yield Cell("pcs", "simulation", {"events": events, "threads": threads},
                       {"width": 64, "height": 64, "end": of(0, 200_000, 2_000_000) // events}, apis=apis, limit_s=900)
        for planes in (50, 100, 200, 500):
            yield Cell("airport", "simulation", {"planes": planes, "threads": threads},
                       {"width": 32, "height": 32, "end": of(0, 4000, 40_000)}, apis=apis, limit_s=900)
