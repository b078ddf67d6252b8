"""Where hmalloc leaves the HMalloc paper (docs/deviations.md), and the cells that show it."""

from dataclasses import dataclass

from .baselines import HMALLOC_PAPER, PAPER_EXPLICIT, TODAY
from .common import Cells, all_cpus, cells, joined, most_threads, several_threads
from .vvmalloc_waiting import workload as vvmalloc_workload

EXPLICIT = "hmalloc-explicit"


@dataclass(frozen=True)
class Repair:
    name: str
    change: str              # as published; now
    aim: str                 # time | memory | correctness: then a cell shows its price
    cells: Cells | None = None
    mine: str = TODAY
    theirs: str = HMALLOC_PAPER
    also: str = ""           # what else these cells show
    unshown: str = ""        # why no cell shows it


def _local(name: str, change: str, aim: str, of: Cells, also: str = "") -> Repair:
    """Of local memory, which only the explicit interfaces have."""
    return Repair(name, change, aim, of, EXPLICIT, PAPER_EXPLICIT, also)


def _trace(*names: str) -> Cells:
    return cells("replay", lambda cell: cell.point.get("trace") in names)


def _largest(of: Cells, parameter: str = "size") -> Cells:
    return lambda results: sorted(of(results), key=lambda cell: int(cell.point[parameter]))[-1:]


_EXCHANGE = {shape: cells("exchange", shape=shape, size=64, threads=2) for shape in ("symmetric", "asymmetric")}

REPAIRS = [
    # Shared memory.
    Repair("state outside the block", "a flag of 8 bytes in front, sizes rounded to 64; a byte outside, sizes to 128 B "
           "by 16", "memory", joined(all_cpus(cells("threadtest", size=8)), _trace("threadtest"))),
    Repair("release and acquire", "plain stores and loads of the flag; ordered ones", "correctness",
           unshown="none: the same instructions on x86-64"),
    Repair("whole sweep", "a superblock counts as full while its Index-th block is taken; states are swept in groups "
           "of 64", "memory", cells("footprint"), also="shows the pool as well"),
    Repair("pseudo-code", "sizes that overflow, an index past the end, a list entered twice; none of it", "correctness",
           unshown="none: tests show it"),
    Repair("whose cache", "left open whose list a freed block enters; the freeing thread's, whoever made the block",
           "time", _EXCHANGE["symmetric"]),
    Repair("bounded caches", "100 entries a class; limits in bytes that grow and shrink", "time",
           _largest(cells("pairs", pattern="random"))),
    Repair("flush of half a cache", "a block too many is freed alone; foreign ones by the older half", "time",
           _EXCHANGE["asymmetric"]),
    Repair("pool", "a heap keeps its superblocks for ever, each for its class; they change owner and class by a pool",
           "memory", _trace("python", "perl", "sqlite"), also="shows the size classes as well"),
    Repair("chunks", "superblocks of 64 KB, then 4 MB, told apart by masks; one or four slices of chunks, told apart "
           "by a map", "memory", cells("idle")),
    Repair("40 size classes", "512 multiples of 64; 40 geometric classes", "memory",
           joined(all_cpus(cells("shbench")), _trace("shbench"))),
    Repair("constant-time lists", "a walk over the list SSL; superblocks with free blocks at hand", "time",
           all_cpus(cells("linux-scalability"))),
    Repair("neither local nor shared", "malloc is not described; it is right for both kinds", "correctness",
           unshown="none: hmalloc_paper's malloc is on the shared side too"),
    # Local memory.
    _local("units of 64 KB", "one live block pins 4 MB; it pins 64 KB, and mixed lifetimes get caches", "memory",
           all_cpus(cells("ar-random"))),
    _local("sizes of local blocks", "none kept, so no realloc; a byte for each 16 tells where a block starts and ends",
           "correctness", cells("pairs", pattern="once", size=64)),
    _local("lists of local superblocks", "a walk over the list LSL; empty units in a bit mask, full ones in no list",
           "time", all_cpus(cells("linux-scalability"))),
    _local("large local blocks", "local up to half a superblock; above 1792 B general", "memory",
           all_cpus(vvmalloc_workload(2))),
    Repair("foreign frees of local blocks", "forbidden, and silently wrong; handed back to their owner", "correctness",
           unshown="none: the workloads obey the paper's rule"),
    _local("interface with sizes", "free looks the block up; a shared free may be told the size", "time",
           _EXCHANGE["symmetric"], also="shows the caches as well"),
    # Everything else.
    Repair("large blocks", "from the system each time; kept for a while", "time", all_cpus(cells("largetest"))),
    Repair("growing realloc", "not described; in place, or by moving pages", "time",
           unshown="none: no workload grows large blocks"),
    Repair("memory goes back", "kept until the end; to the system after a while", "memory", cells("drain")),
    Repair("thread exit", "a new thread inherits a local heap; all of it, or it is drained", "memory",
           most_threads(several_threads(cells("linux-successors", rounds=8)))),
    Repair("fork, exhaustion and bad pointers", "not described; survived, or told", "correctness",
           unshown="none: tests show it"),
]
