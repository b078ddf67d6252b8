"""What is measured: one cell is one program with one set of arguments, run in a process of its own."""
from dataclasses import dataclass, field

PATTERNS = ("once", "fifo", "lifo", "random", "replace")
SIZES = (16, 32, 48, 64, 96, 128, 256, 512)


@dataclass(frozen=True)
class Cell:
    workload: str
    case: str
    arguments: tuple = ()
    metric: str = "ns_per_op"          # what the report compares; smaller is better
    apis: tuple = ()                   # the explicit APIs that it exists for
    most_rounds: int = 1000            # memory figures repeat well and some take long
    limit: float = 60                  # seconds before it counts as hung
    counts_peak: bool = field(default=True)  # whether its peak memory enters the memory mean

    @property
    def name(self):
        return f"{self.workload} {self.case}"


def timed(quick, seconds):
    return ("--seconds", str(round(seconds / 3, 3) if quick else seconds))


def all_cells(quick=False, pin=True):
    """Every cell, in the order of the report.  quick: the same cells, a third as long."""
    pinned = ("--pin", "1") if pin else ()
    cells = []
    for pattern in PATTERNS:
        for size in SIZES:
            cells.append(Cell("pairs", f"{pattern}/{size}", ("--pattern", pattern, "--size", str(size),
                                                            *timed(quick, 0.12)), apis=("local", "shared")))
    for size in (16, 64, 256):
        cells.append(Cell("ring", str(size), ("--size", str(size), *timed(quick, 0.2), *pinned),
                          apis=("shared", "floor")))
    for size in (32, 64, 256):
        cells.append(Cell("exchange", str(size), ("--size", str(size), *timed(quick, 0.2), *pinned),
                          apis=("shared",)))
    for threads in (1, 2, 8):
        cells.append(Cell("threadtest", f"{threads} threads", ("--threads", str(threads),
                                                               "--rounds", "20" if quick else "60"), apis=("local",)))
    for threads in (1, 2):
        cells.append(Cell("shbench", f"{threads} threads", ("--threads", str(threads),
                                                            "--passes", "8" if quick else "20"), apis=("local",)))
    for threads in (1, 2):
        cells.append(Cell("larson", f"{threads} threads", ("--threads", str(threads), *timed(quick, 0.4)),
                          apis=("shared",)))
    cells.append(Cell("footprint", "4 threads", ("--steps", "2e6" if quick else "6e6"), metric="footprint",
                      apis=("shared",), most_rounds=5))
    cells.append(Cell("idle", "1000 threads", metric="kb_per_thread", most_rounds=3, counts_peak=False))
    cells.append(Cell("nothing", "at all", metric="rss_kb", most_rounds=5, counts_peak=False))
    cells.append(Cell("nothing", "one malloc", ("64",), metric="rss_kb", most_rounds=5, counts_peak=False))
    cells.append(Cell("drain", "250 MB", ("--wait", "1.5" if quick else "3"), metric="end_ratio", most_rounds=3))
    return cells


UNITS = {"ns_per_op": "ns", "footprint": "resident/live", "kb_per_thread": "KB per thread", "rss_kb": "KB",
         "end_ratio": "resident at the end/at the start", "vm_hwm_kb": "KB"}


def chosen_cells(cells, wanted):
    """wanted: workloads, or cells as WORKLOAD:CASE-PREFIX, comma-separated; empty means all."""
    if not wanted:
        return cells
    found = []
    for name in wanted.split(","):
        workload, _, prefix = name.partition(":")
        hits = [cell for cell in cells if cell.workload == workload and cell.case.startswith(prefix)]
        if not hits:
            raise ValueError(f"no cell {name}; workloads: " + ", ".join(dict.fromkeys(cell.workload for cell in cells)))
        found += [cell for cell in hits if cell not in found]
    return found
