"""What the classics are held to of the 62 cases, and for each that one is not held to, why.

A case that fails and is not listed here fails the run; so does one that is listed as failing and passes.
"""

from dataclasses import dataclass

CLASSICS = ("one_lock", "hmalloc_paper", "hoard", "vvmalloc-1", "vvmalloc-2", "vvmalloc-3", "vvmalloc-4", "ar_malloc",
            "ar_malloc-lock")


def family_of(name):
    """Without the number or the variant."""
    return name.partition("-")[0]


def prefix_of(name):
    """How the environment variables begin that it reads."""
    return family_of(name).upper() + "_"


PREFIXES = tuple(sorted({prefix_of(name) for name in CLASSICS}))


@dataclass(frozen=True)
class Listed:
    why: str
    runs: bool = True  # False: not run, there is nothing to run or nothing to learn
    sure: bool = True  # False: fails as chance has it


def listed(why, *names, **how):
    return dict.fromkeys(names, Listed(why, **how))


LIST_IN_BLOCKS = "the list of free blocks runs through them: who writes to one after freeing it breaks the list"
KEEPS = "never returns memory of small blocks to the system"

EVERY = {
    **listed("has no build that fails the n-th call", "nth_mmap_fails", runs=False),
    **listed("hmalloc's own API", "local_foreign_free", "local_outlives_owner", "local_realloc", "local_free_by_free",
             runs=False),
    **listed("a preloadable library alone, without an archive and a header", "static", "static_pie", "static_lto",
             "static_cxx", "archive", "noplt", runs=False),
    **listed("a mapping that the system does not take back is given up: base/large_blocks.h", "inject_munmap_fail"),
    **listed(KEEPS, "return_to_os", "return_by_decay", "idle_owner"),
}

# By name, or by family: what holds for all variants.
OF = {
    "one_lock": {
        **listed("memory of one size never serves another", "oom_rlimit", "phase_shift"),
        **listed("keeps no state of a block: a double free cannot be told, nor one of a block never handed out",
                 "df_small", "df_medium", "df_far", "df_cross", "realloc_freed", "free_unalloc"),
        **listed(LIST_IN_BLOCKS, "uaf_write"),
    },
}


def exceptions(name):
    """sub-case -> Listed"""
    return {**EVERY, **OF.get(family_of(name), {}), **OF.get(name, {})}
