"""What hardened allocators cost programs that do little else than allocate: over hmalloc's default library, cell by cell, in
a campaign that names them all.

  hmalloc bench peers scudo mimalloc3-secure hardened_malloc
  hmalloc bench paper --db DB --allocators hmalloc,hardened,... --allocator hardened=LIBRARY ...
  build/venv/bin/python bench/studies/hardened_cost.py DB
"""

import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "lab"))

from hmalloc_lab.bench.results import Results  # noqa: E402
from hmalloc_lab.bench.statistics import is_memory, together  # noqa: E402

BASE = "hmalloc"


def mean(results, cells, name, metric=None):
    """Geometric, of the ratios of medians; and over how many cells."""
    ratios = [mine / base for cell in cells
              if (mine := results.median(cell, name, metric)) and (base := results.median(cell, BASE, metric))]
    if not ratios:
        return "–"
    return f"{statistics.geometric_mean(ratios):.2f}" + (f" of {len(ratios)}" if len(ratios) < len(cells) else "")


def main():
    results = Results.read(Path(sys.argv[1]))
    names = [name for name in results.allocators if name != BASE]
    cells = together(list(results.cells.values()))
    of = results.campaign
    print(f"{len(of.round_rows)} rounds, {len(of.runs):,} runs, {len(results.failures())} failed.\n")
    for run in results.failures():
        print(f"failed: {run.allocator}, {run.cell}: {run.status}")
    print("| family, cells | " + " | ".join(names) + " |\n|---|" + "--:|" * len(names))
    rows = {family: [cell for cell in cells if cell.family == family] for family in results.families}
    rows["**all that count time**"] = [cell for cell in cells if not (is_memory(cell.metric) or cell.family == "latency")]
    for family, members in rows.items():
        if members:
            print(f"| {family}, {len(members)} | " + " | ".join(mean(results, members, name) for name in names) + " |")
    peaks = [cell for cell in cells if cell.counts_peak]
    print(f"| peak memory, {len(peaks)} | " + " | ".join(mean(results, peaks, name, "vm_hwm_kb") for name in names) + " |")


if __name__ == "__main__":
    main()
