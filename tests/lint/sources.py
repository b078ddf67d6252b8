"""What can be seen from the sources alone."""
import graphlib
import pathlib
import re
import sys

# A room may include itself and the rooms before it.
ROOMS = ["base", "pages", "core", "large", "threads", "profile", "guard", "upkeep", "introspect", "api", "override"]
SOURCES = ("src", "baselines")
# Where atomics live, and the roles they play there.  Everywhere else `memory_order` and `__ATOMIC_` are forbidden.
ATOMICS = {
    "include/hmalloc/hmalloc.h": "the top of a cache behind a handle, which statistics read",
    "include/hmalloc/hmalloc_local.h": "the top of a cache, which statistics read",
    "src/base/lock.cc": "the lock itself",
    "src/base/process.h": "the number of the process, which each lock looks at; a fence for the compiler alone",
    "src/base/process.cc": "who repairs the child of a fork; the others wait",
    "src/base/thread_exit.h": "the key, which any of several threads makes",
    "src/base/address_map.h": "a unit's kind, which a wild pointer may ask about at any time",
    "src/base/memory_tags.cc": "whether there are tags, which all threads find alike",
    "src/base/os_pages.cc": "counters and hints: the page size, the last mapping, calls made, guards",
    "src/base/secret.h": "the key of the process, which any of several threads draws",
    "src/base/secret.cc": "the key of the process; a number for each thread that draws others",
    "src/base/clock.cc": "how the kernel tells the time, and what it said last",
    "src/pages/slice_guards.cc": "how many there are, a count",
    "src/threads/claims.h": "whether a heap is in use, and wanted by another thread",
    "src/threads/claims.cc": "the same; slots of caches whose thread may be popping; the system's barrier orders them",
    "src/threads/own_heaps.h": "whether a heap of the program's own is live, which whoever has a handle asks",
    "baselines/vvmalloc/ms_queue.h": "counted links of the lock-free queue; its pool of nodes; a counter",
    "baselines/vvmalloc/locks.cc": "the spin lock; a hint that a mutex is held",
    "baselines/vvmalloc/fifo.h": "time waited, a sum",
    "baselines/vvmalloc/fifo.cc": "time waited, a sum",
    "baselines/vvmalloc/central_queue.cc": "the number of queues ever used, a hint",
    "baselines/vvmalloc/count.h": "a number that one thread changes and any may read",
    "baselines/hmalloc_paper/count.h": "a number that one thread counts and any may read",
    "baselines/hmalloc_paper/flag.h": "the flag of a shared block: free, occupied",
    "baselines/hoard/heap.h": "what a heap has in use, which the others look at for the peak",
    "baselines/hoard/superblock.h": "a superblock's owner, which free() reads before it can take the owner's lock",
    "baselines/ar_malloc/thread_cache.h": "the number of blocks in a cache's list, which the account of memory reads",
    "src/core/block_cache.h": "the top of a cache, which statistics read",
    "src/core/block_edges.h": "an edge, which whoever frees the block behind looks at",
    "src/core/block_state.h": "the state of a block: give back, take",
    "src/upkeep/reclaim.cc": "the clock of the rounds: one thread takes each",
    "src/large/extent.h": "who owns which bytes, written in an order that a forked child can rely on",
    "src/large/extent_table.h": "where an extent starts, which whoever frees its block asks without the lock",
    "src/large/extent_table.cc": "where an extent starts, which whoever frees its block asks without the lock; what a forked child reads",
    "src/pages/footprint.h": "bytes that each part of the allocator publishes, a hint",
    "src/large/huge_store.cc": "names of mappings",
    "src/large/guarded.cc": "how often the system is not asked to open pages, a hint",
    "src/large/runs.h": "bytes of a cache of runs, which statistics read",
    "src/large/runs.cc": "the length of a run, which statistics read while its owner changes it",
    "src/guard/guarded_blocks.h": "whether a block is to be guarded, and how many are, hints",
    "src/guard/guarded_blocks.cc": "the same",
    "src/guard/guarded_place.h": "who has a place",
    "src/profile/call_trace.cc": "whether a stack is being written",
    "src/profile/stack_taker.cc": "where the code of two libraries lies, found at the start of a profile",
    "src/upkeep/background.h": "whether the thread that gives memory back runs, and whether it sleeps",
    "src/upkeep/background.cc": "whether the thread that gives memory back runs, and whether it sleeps",
    "src/upkeep/pressure.h": "whom to tell of pressure, and what was done about it, hints",
    "src/upkeep/pressure.cc": "whom to tell of pressure, and what was done about it, hints",
    "src/pages/slice_pool.h": "the numbers of chunks and of surplus slices, hints",
    "src/pages/slice_pool.cc": "the number of chunks, a hint",
    "src/pages/slice_pool_purge.cc": "the number of chunks, a hint",
    "src/pages/slice_pool_repair.cc": "the number of chunks, a hint",
    "src/core/counting.h": "whether allocations are counted, a hint; blocks to the next sample",
    "src/core/current_heap.cc": "the tables of classes, while they change",
    "src/core/current_heap.h": "the tables of classes, for ThreadSanitizer alone",
    "src/profile/probes.h": "whether a tracer listens, as the system or a debugger says at any time",
    "src/profile/sampler.h": "bytes from sample to sample, set before anything is counted; for whom there are samples, a hint",
    "src/profile/sampler.cc": "bytes from sample to sample, set before anything is counted; for whom there are samples, a hint",
    "src/profile/samples.h": "how many blocks are sampled, and what they stand for, hints",
    "src/profile/samples.cc": "how many blocks are sampled, and what they stand for, hints",
    "src/introspect/profile_files.cc": "the last peak that was written, a hint",
    "src/introspect/stats_files.cc": "when statistics were written last, a hint",
    "src/introspect/while_running.h": "which process writes; when a trigger was looked for, a hint",
    "src/core/superblock.h": "the owner's name and the witness, both read by anybody",
    "src/pages/region.h": "the kind of a slice, read by anybody",
    "src/core/superblock_pool.cc": "when to search next, a hint",
    "src/core/superblock_queue.h": "the number of entries, a hint",
    "src/base/counter.h": "a counter that one thread at a time writes",
    "src/core/small_heap.h": "whether the heap is in use, and who claims it",
}
FORBIDDEN_HEADERS = {"string", "vector", "map", "memory", "functional", "iostream", "sstream", "thread", "mutex",
                     "condition_variable", "exception", "stdexcept", "typeinfo", "unordered_map", "set", "list"}


def files(root, folder, *endings):
    base = pathlib.Path(root, folder)
    return sorted(p for p in base.rglob("*") if p.suffix in endings) if base.exists() else []


def shown(root, path):
    return str(path.relative_to(root))


def public_headers(root):
    base = pathlib.Path(root, "include")
    return {str(p.relative_to(base)) for p in files(root, "include", ".h", ".hpp")}


def includes(path):
    return re.findall(r'^\s*#\s*include\s*["<]([^">]+)[">]', path.read_text(), re.M)


def include_order(options):
    complaints, public = [], public_headers(options.root)
    for folder in SOURCES:
        for path in files(options.root, folder, ".h", ".cc"):
            room = path.relative_to(pathlib.Path(options.root, folder)).parts[0]
            for name in set(includes(path)) - public:
                first, complaint = name.split("/")[0], ""
                if folder == "src" and first in ROOMS and ROOMS.index(first) > ROOMS.index(room):
                    complaint = "which lies above it"
                elif folder == "src" and first == "baselines":
                    complaint = "the allocator does not know the baselines"
                elif folder == "baselines" and first in (*ROOMS, "baselines") and not name.startswith(
                        ("base/", f"baselines/{room}/", "baselines/common/", "baselines/contract.h")):
                    complaint = "a baseline stands on base and common alone"
                if complaint:
                    complaints.append(f"{shown(options.root, path)} includes {name}: {complaint}")
    return complaints


def include_cycles(options):
    """x.h and x.cc are one unit: a heap must not call the world that holds it, not even from its source file."""
    graph = {}
    for root, folder in ((pathlib.Path(options.root, "src"), "."), (pathlib.Path(options.root), "baselines")):
        for path in files(root, folder, ".h", ".cc"):
            unit = str(path.relative_to(root).with_suffix(""))
            uses = {name.removesuffix(".h") for name in includes(path) if pathlib.Path(root, name).exists()}
            graph.setdefault(unit, set()).update(uses - {unit})
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return [f"units include each other in a circle: {', '.join(sorted({*error.args[1]}))}"]
    return []


def public_headers_only(options):
    inner = {str(p.relative_to(pathlib.Path(options.root, "src"))) for room in ROOMS
             for p in files(options.root, f"src/{room}", ".h")} - public_headers(options.root)
    return [f"{shown(options.root, path)} includes {name}: only include/ is for it"
            for folder in ("bench", "pdes", "examples")
            for path in files(options.root, folder, ".h", ".hpp", ".c", ".cc", ".cpp")
            for name in includes(path) if name in inner or "src/" in name]


def atomics_in_roles(options):
    complaints = []
    for path in [p for folder in (*SOURCES, "include") for p in files(options.root, folder, ".h", ".hpp", ".cc")]:
        name = shown(options.root, path)
        if re.search(r"memory_order|__ATOMIC_", path.read_text()) and name not in ATOMICS:
            complaints.append(f"{name} orders memory: put the atomic into a class that names its role, or list it here")
        if re.search(r"\bvolatile\b", re.sub(r"asm\s+volatile|__volatile__", "", path.read_text())):
            complaints.append(f"{name} says volatile")
    return complaints


def nothing_dead(options):
    """The words are written so that this file has none of them."""
    return [f"{shown(options.root, path)}:{number}: {line.strip()[:60]}"
            for folder in (*SOURCES, "include", "tests", "bench", "lab", "examples")
            for path in files(options.root, folder, ".h", ".hpp", ".c", ".cc", ".py", ".txt", ".sh")
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
            if re.search(r"\b(TO[D]O|FIX[M]E|XX[X])\b|^\s*#\s*if\s+0\b", line)]


def no_runtime_in_sources(options):
    complaints = []
    for path in [p for folder in SOURCES for p in files(options.root, folder, ".h", ".cc")]:
        text = re.sub(r"//.*", "", path.read_text())
        complaints += [f"{shown(options.root, path)} includes <{name}>" for name in includes(path) if name in FORBIDDEN_HEADERS]
        complaints += [f"{shown(options.root, path)} says {word.strip()}"
                       for word in ("throw ", "dynamic_cast", "typeid(", "virtual ") if word in text]
    return complaints


def mutants_apply(options):
    """tests/mutation takes hours; that its faults still fit the sources is seen here."""
    sys.path.insert(0, str(pathlib.Path(options.root, "tests/mutation")))
    from mutants import MUTANTS
    counts = [(mutant, pathlib.Path(options.root, mutant.file).read_text().count(mutant.old)) for mutant in MUTANTS]
    return [f"{mutant.name}: its text is {count} times in {mutant.file}" for mutant, count in counts if count != 1]


def options_documented(options):
    """Every option stands with its default in tuning.md and in the man page."""
    table = pathlib.Path(options.root, "src/pages/options.h").read_text()
    rows = re.findall(r'HM_OPTION\(\w+, "(\w+)", \w+, ([^,]+), ', table)
    texts = {name: re.sub(r"\s+", " ", pathlib.Path(options.root, name).read_text())
             for name in ("docs/tuning.md", "docs/man/hmalloc.3.scd")}
    complaints = [] if rows else ["no option was found in src/pages/options.h"]
    for name, value in rows:
        default = value.replace(" * kMiB", "M").replace(" * kKiB", "K")
        row, entry = f"`HMALLOC_{name}` | {default} |", rf"\*HMALLOC_{name}\*[^*]*Default: {default}\."
        if row not in texts["docs/tuning.md"]:
            complaints.append(f"docs/tuning.md has no row {row}")
        if not re.search(entry, texts["docs/man/hmalloc.3.scd"]):
            complaints.append(f"docs/man/hmalloc.3.scd does not say of HMALLOC_{name} that its default is {default}")
    return complaints


def tour_is_true(options):
    """Where src/README.md says `path:line`, that line has the name that follows."""
    rows = re.findall(r"`(\w+/[\w.]+):(\d+)` (?:\| |\()`(\w+)`", pathlib.Path(options.root, "src/README.md").read_text())
    complaints = [] if rows else ["no line was found in src/README.md"]
    for path, number, name in rows:
        lines = pathlib.Path(options.root, "src", path).read_text().splitlines()
        if not re.search(rf"\b{name}\b", lines[int(number) - 1] if int(number) <= len(lines) else ""):
            complaints.append(f"src/README.md: {path}:{number} has no {name}")
    return complaints


def documents_link(options):
    """Every relative link of a Markdown file leads to a file, or a heading of one."""
    def anchors(text):
        return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^#+ (.*)$", text, re.M)}

    def prose(path):
        return re.sub(r"^```.*?^```|^    .*?$|`[^`\n]*`", "", path.read_text(), flags=re.M | re.S)

    complaints, root = [], pathlib.Path(options.root)
    for path in [*root.glob("*.md"), *(p for folder in ("docs", *SOURCES, "tests", "bench", "lab", "pdes", "examples")
                                       for p in files(root, folder, ".md"))]:
        for target in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
            file, _, anchor = target.partition("#")
            if "://" in target:
                continue
            other = path.parent / file if file else path
            if not other.exists() or (anchor and anchor not in anchors(other.read_text())):
                complaints.append(f"{shown(root, path)} links {target}, which is not there")
    return complaints


CHECKS = {f.__name__: f for f in (include_order, include_cycles, public_headers_only, atomics_in_roles, nothing_dead,
                                  no_runtime_in_sources, mutants_apply, options_documented, tour_is_true,
                                  documents_link)}
