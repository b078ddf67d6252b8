"""What glibc, the baselines and the hardened library are held to of the cases, and for each that one is not held to, why.

A case that fails and is not listed here fails the run; so does one that is listed as failing and passes.
"""

import re
from dataclasses import dataclass
from pathlib import Path

ABORT = "abort"  # as harness.py has it, which takes the names of the baselines from here

# As the launcher lists them.
_LAUNCHER = Path(__file__).resolve().parents[2] / "lab/shell/allocators.sh"
BASELINES = tuple(re.search(r"^baselines='(.+)'$", _LAUNCHER.read_text(), re.MULTILINE)[1].split())


def family_of(name):
    """Without the number or the variant."""
    return name.partition("-")[0]


def prefix_of(name):
    """How the environment variables begin that it reads."""
    return family_of(name).upper() + "_"


PREFIXES = tuple(sorted({prefix_of(name) for name in BASELINES}))


@dataclass(frozen=True)
class Listed:
    why: str
    runs: bool = True  # False: not run, there is nothing to run or nothing to learn
    sure: bool = True  # False: fails as chance has it
    ends: str = ""  # how the case must end in place of what the matrix says


def listed(why, *names, **how):
    return dict.fromkeys(names, Listed(why, **how))


def held_to_after_all(*names):
    """By a variant, although its family is not."""
    return dict.fromkeys(names)


LIST_IN_BLOCKS = "the list of free blocks runs through them: who writes to one after freeing it breaks the list"
HOARDS = "a free block belongs to the thread that freed it, and other threads never get it"
KEEPS = "never returns memory of small blocks to the system"
NOT_FOR_LARGE = "memory that small blocks had never serves large ones"

NOT_OURS = {
    **listed("has no build that fails the n-th call", "nth_mmap_fails", runs=False),
    **listed("hmalloc's own API", "local_foreign_free", "local_outlives_owner", "local_realloc", "local_free_by_free",
             runs=False),
    **listed("hmalloc's own option", "refused_at_limit", "small_after_large", "others_continue", "child_has_it_too",
             "pressure_is_told", runs=False),
    **listed("needs hmalloc's archive and header", "static", "static_pie", "static_lto", "archive", "archive_lto", "noplt",
             runs=False),
    **listed("no handler runs in the child", "fork_unannounced", "vfork_beside", runs=False),
}
GLIBC = {
    **listed("has no free_sized", "free_sized_right", runs=False),
    **listed("before 2.38 rounds a bad alignment up", "aligned_alloc_bad", runs=False),
    **listed("measured: 2.6 times live", "larson_random", runs=False),
    **listed("cannot be unloaded", "dlopen_self", runs=False),
    **listed("metadata lies beside the blocks", "ovf1_24", "ovf8_56", "ovf8_400", "ovf64_120", "ovf_large", "undf8_56",
             "undf8_large", "uaf_write", "uaf_large", runs=False),
}
EVERY_BASELINE = {
    **listed("takes its locks before the C library takes those of stdio", "fork_stdio", runs=False),
    **listed(KEEPS, "oom_phases", runs=False),
    **listed(KEEPS, "return_to_os", "return_by_decay", "idle_owner"),
}

HARDENED = {
    **listed("has no build that fails the n-th call", "nth_mmap_fails", runs=False),
    **listed("has no archive", "static", "static_pie", "static_lto", "archive", "archive_lto", runs=False),
    **listed("that it does not go unnoticed is what the library is for", "ovf1_24", "ovf8_56", "ovf8_400", "ovf64_120",
             "undf8_56", "uaf_write", ends=ABORT),
    **listed("a block above 32 KB takes 2 MB of addresses, for it lies between guards at a random place", "oom_phases"),
    **listed("a block of 64 bytes takes 80, for there is an edge behind it", "refused_at_limit", "child_has_it_too"),
    **listed("a thread that only frees has a heap too, for that has the quarantine", "consumer_no_heap"),
    **listed("what waits in the quarantines of four threads is a tenth of what this program uses", "larson_random", sure=False),
}

# By name, or by family: what holds for all variants.
OF = {
    "one_lock": {
        **listed("memory of one size never serves another", "oom_rlimit", "phase_shift"),
        **listed(LIST_IN_BLOCKS, "uaf_write"),
    },
    "hmalloc_paper": {
        **listed("memory of one class never serves another", "oom_rlimit", "map_count", "phase_shift"),
        **listed("the Index rule: one block that stays ends the reuse of its superblock", "sparse_pin", "index_starve"),
        **listed("the same; how far it comes depends on the time", "prodcons8", sure=False),
        **listed("superblocks of 64 KB and 4 MB for every class in every heap", "larson_random"),
        **listed("the same; half of the time may be too short to have them all", "drift_ring", sure=False),
    },
    "hoard": {
        **listed(NOT_FOR_LARGE, "oom_rlimit"),
        **listed("a quarter of every heap may be free (f), in blocks that are a fifth too large (b)", "larson_random",
                 sure=False),
        **listed(LIST_IN_BLOCKS, "uaf_write"),
    },
    "vvmalloc": {
        **listed("boundary tags lie between the blocks; free says so when one has been overwritten", "ovf1_24",
                 "ovf8_56", "ovf8_400", "ovf64_120", "ovf_large", "undf8_56", "undf8_large"),
        **listed(LIST_IN_BLOCKS, "uaf_write"),
        **listed("arenas never merge: a request larger than one finds none", "oom_rlimit"),
        **listed(HOARDS, "remote_drain_reuse", "index_starve"),
        **listed(HOARDS, "prodcons1", "prodcons8", "consumer_never_allocs", "drift_ring", sure=False),
    },
    "vvmalloc-1": {
        **listed(LIST_IN_BLOCKS, "uaf_large"),
        **held_to_after_all("oom_rlimit", "remote_drain_reuse", "index_starve", "prodcons1", "prodcons8",
                            "consumer_never_allocs", "drift_ring"),
    },
    "vvmalloc-2": {
        **listed("the central queue runs through the arenas in it", "uaf_large"),
    },
    "ar_malloc": {
        **listed(NOT_FOR_LARGE, "oom_rlimit"),
        **listed("every arena has slabs of every class, and there are as many as processors", "larson_random",
                 sure=False),
        **listed("the cache is a list through its blocks: who writes to one after freeing it breaks it", "uaf_write"),
    },
    "ar_malloc-lock": {
        **held_to_after_all("larson_random", "uaf_write"),  # no caches
    },
}


def exceptions(name):
    """sub-case -> Listed; nothing for ours but the hardened library."""
    if name in BASELINES:
        found = {**NOT_OURS, **EVERY_BASELINE, **OF.get(family_of(name), {}), **OF.get(name, {})}
        return {sub: exception for sub, exception in found.items() if exception}
    return {"glibc": {**NOT_OURS, **GLIBC}, "hardened": HARDENED}.get(name, {})
