"""The Markdown report: figures as the issue defines them, means per workload, every cell, environment."""
from .cells import UNITS
from .summaries import Table, geometric_mean, peak_memory_means


def number(value, digits=2):
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 1000 else f"{value:.{digits}f}"


def markdown_table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|" + "|".join(["---"] + ["--:"] * (len(heads) - 1)) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def workloads_of(cells):
    return list(dict.fromkeys(cell.workload for cell in cells))


def cell_section(table, workload, names):
    """Every cell of one workload: median, least, spread, and the ratio to the best peer of each hmalloc."""
    cells = table.of(workload)
    names = [name for name in names if any(table.rows[cell.name].get(name) for cell in cells)]
    own = [name for name in names if name not in table.peers]
    rows = []
    for cell in cells:
        best_name, best = table.best_peer(cell, "median")
        row = [cell.case]
        for name in names:
            summary = table.rows[cell.name].get(name)
            if not summary:
                row.append("failed or none")
                continue
            text = f"{number(summary.median)} ({number(summary.least)}) ±{100 * summary.spread:.0f}%"
            row.append(f"**{text}**" if name == best_name else text)
        for name in own:
            value = table.value(cell, name, "median")
            row.append(number(value / best) if value and best else "-")
        rows.append(row)
    heads = [f"{workload}, {UNITS[cells[0].metric]}", *names, *[f"{name}/best peer" for name in own]]
    return f"### {workload}\n\n{markdown_table(heads, rows)}\n"


def means_section(table, names, which):
    """Geometric mean over a workload's cells of the ratio to the best peer of each cell."""
    rows = []
    for workload in workloads_of(table.cells):
        ratios = [geometric_mean(table.ratios_to_best(workload, name, which).values()) for name in names]
        rows.append([workload, *[number(ratio) for ratio in ratios]])
    return markdown_table([f"geometric mean of {which} / best peer's", *names], rows) + "\n"


def pairs_figures(table, which):
    """The ratio to every single peer, and the worst cell."""
    against = {peer: table.ratio_to_peer("pairs", "hmalloc", peer, which) for peer in table.peers}
    against = {peer: ratio for peer, ratio in against.items() if ratio}
    ratios = table.ratios_to_best("pairs", "hmalloc", which)
    if not against or not ratios:
        return []
    peer = max(against, key=against.get)
    worst = max(ratios, key=ratios.get)
    return [[f"pairs, {which}: geometric mean to the best single peer ({peer})", number(against[peer]), "1.00"],
            [f"pairs, {which}: worst cell to the best of the cell ({worst})", number(ratios[worst]), "1.15"]]


def handover_figures(table, which):
    rows = []
    for workload, name, goal in (("ring", "hmalloc", "0.65"), ("exchange", "hmalloc", "0.95"),
                                 ("ring", "hmalloc-shared", "0.60"), ("exchange", "hmalloc-shared", "0.85"),
                                 ("larson", "hmalloc", "1.05")):
        ratios = table.ratios_to_best(workload, name, which)
        if ratios:
            each = ", ".join(f"{cell.split(' ', 1)[1]}: {number(ratio)}" for cell, ratio in ratios.items())
            rows.append([f"{workload}, {name}: {which} to the best peer's ({each})",
                         number(geometric_mean(ratios.values())), goal])
    return rows


def figures_section(table, memory):
    """The figures of the issue, with what they are to reach; minima beside, for runs on a busy machine."""
    rows = pairs_figures(table, "median") + pairs_figures(table, "least")
    rows += handover_figures(table, "median") + handover_figures(table, "least")
    for workload in ("pairs", "threadtest", "shbench"):
        ratios = table.ratios_to_best(workload, "hmalloc-local", "median")
        if ratios:
            rows.append([f"{workload}, hmalloc-local: times as fast as the best peer",
                         number(1 / geometric_mean(ratios.values())), "2.50 or more"])
    for workload, goal in (("nothing", "1700"), ("idle", "48"), ("footprint", "1.30"), ("drain", "1.25")):
        for cell in table.of(workload):
            value = table.value(cell, "hmalloc", "median")
            if value:
                rows.append([f"{cell.name}: {UNITS[cell.metric]}", number(value), goal])
    if "hmalloc" in memory and memory["hmalloc"][0]:
        rows.append(["peak memory to the leanest, geometric mean over workloads", number(memory["hmalloc"][1]), "1.10"])
        rows.append(["peak memory to the leanest, geometric mean over all cells", number(memory["hmalloc"][0]), "1.10"])
    return markdown_table(["figure", "reached", "goal"], rows) + "\n" if rows else ""


def memory_section(memory, peak, names):
    rows = [["over workloads", *[number(memory[name][1]) for name in names]],
            ["over cells", *[number(memory[name][0]) for name in names]]]
    text = markdown_table(["peak memory (VmHWM) to the leanest", *names], rows) + "\n\n"
    rows = []
    for workload in workloads_of([cell for cell in peak.cells if cell.counts_peak]):
        means = [geometric_mean([peak.value(cell, name, "median") for cell in peak.of(workload)]) for name in names]
        rows.append([workload, *[number(mean and mean / 1024) for mean in means]])
    return text + markdown_table(["mean VmHWM in MB", *names], rows) + "\n"


def environment_section(environment, allocators):
    rows = [[name, str(value)] for name, value in environment.items()]
    text = markdown_table(["environment", ""], rows) + "\n\n"
    rows = [[a.name, a.version, a.sha256()[:16] or "-", " ".join(f"{k}={v}" for k, v in a.environment.items()) or "-"]
            for a in allocators]
    return text + markdown_table(["allocator", "version", "sha256", "environment"], rows) + "\n"


def report(runs, cells, allocators, environment):
    table = Table(runs, cells, allocators)
    peak = Table(runs, cells, allocators, "vm_hwm_kb")
    names = [allocator.name for allocator in allocators]
    drop_in = [allocator.name for allocator in allocators if not allocator.api]
    memory = peak_memory_means(peak, drop_in)
    parts = ["# Benchmark results\n", environment_section(environment, allocators)]
    figures = figures_section(table, memory)
    if figures:
        parts += ["## The figures to reach\n", figures]
    parts += ["## Means\n", "1.00 is the best peer of each cell; smaller is better.\n",
              means_section(table, names, "median"), means_section(table, names, "least"),
              memory_section(memory, peak, drop_in),
              "## Cells\n", "Median (least) ±interquartile range; the best peer's median in bold.\n"]
    parts += [cell_section(table, workload, names) for workload in workloads_of(cells)]
    if runs.failures:
        rows = [[failure["cell"], failure["allocator"], str(failure["round"]), failure["reason"]]
                for failure in runs.failures]
        parts += ["## Failures\n", markdown_table(["cell", "allocator", "round", "reason"], rows) + "\n"]
    return "\n".join(parts)
