"""The cases: for each its number, its name, the programs that make it up and the libraries of ours that it is about.

A program with a `!` is a function of special.py.
"""

from dataclasses import dataclass

from harness import OK


@dataclass(frozen=True)
class Case:
    number: int
    name: str
    program: str
    sub: str
    kinds: tuple
    expected: str


def case(number, program, *subs, name=None, expected=OK, kinds=("default",)):
    """Several sub-cases of one row; the row is called after the first unless it has a name."""
    return [Case(number, name or subs[0], program, sub, kinds, expected) for sub in subs]


BOTH = ("default", "checked")

CASES = [
    # The functions and their arithmetic.
    *case(1, "api", "zero_size"),
    *case(2, "api", "align_sizes"),
    *case(3, "api", "align16_strict"),
    *case(4, "api_align", "memalign_all", "memalign_many"),
    *case(5, "api_align", "memalign_errors", "memalign_wide"),
    *case(6, "api_limits", "huge_sizes", "huge_alignments"),
    *case(7, "api_limits", "mul_overflow"),
    *case(8, "api_realloc", "realloc_matrix", "realloc_zero", "realloc_grow"),
    *case(9, "api", "usable_size"),
    *case(10, "api", "errno_free"),
    *case(11, "api", "calloc_zero", "calloc_zero_recycled"),
    *case(12, "api_realloc", "uniq_overlap"),
    *case(13, "cxx", "cxx_new"),
    *case(14, "api", "free_sized_right", name="free_sized", kinds=BOTH),
    *case(15, "api_align", "aligned_alloc_bad"),
    *case(16, "api_align", "mallopt_accepted", name="symbols"),  # that all are exported: tests/lint
    # Resources run out, and the kernel refuses.
    *case(17, "resources", "oom_rlimit", "oom_phases"),
    *case(18, "resources", "oom_new_thread"),
    *case(19, "resources", "oom_realloc"),
    *case(20, "resources", "inject_mmap_fail"),
    *case(21, "resources", "inject_munmap_fail"),
    *case(22, "!nth", "nth_mmap_fails", kinds=("faults",)),
    *case(23, "resources", "map_count"),
    *case(24, "resources", "overcommit_charge", "overcommit_limit", name="overcommit2"),
    *case(25, "resources", "thp_as_set", "no_thp", name="no_thp"),
    *case(63, "!limited", "refused_at_limit", "small_after_large", "others_continue", "child_has_it_too", "pressure_is_told",
          name="limit"),
    *case(64, "!grouped", "refused_at_limit", "others_continue", name="limit_of_group"),
    # Threads.
    *case(26, "threads_many", "thread_10k"),
    *case(27, "threads_many", "thread_10k_kept"),
    *case(28, "threads_many", "threads_1000_alive"),
    *case(29, "threads_exit", "exit_handoff"),
    *case(30, "threads_exit", "inherit_race"),
    *case(31, "prodcons", "prodcons1"),
    *case(32, "prodcons", "prodcons8"),
    *case(33, "prodcons", "consumer_never_allocs", "consumer_no_heap"),
    *case(34, "prodcons", "drift_ring"),
    *case(35, "footprint", "remote_drain_reuse"),
    *case(36, "footprint", "phase_shift"),
    *case(37, "footprint", "sparse_pin"),
    *case(38, "footprint", "sparse_pin_resize"),
    *case(39, "footprint", "index_starve"),
    *case(40, "footprint", "larson_random"),
    *case(41, "os_return", "return_to_os", "return_by_decay"),
    *case(42, "os_return", "idle_owner"),
    *case(43, "threads_exit", "tls_dtor"),
    *case(44, "cxx", "cxx_thread_local"),
    *case(45, "lifecycle", "exit_while_alloc"),
    *case(46, "lifecycle", "main_pthread_exit", "atexit_alloc"),
    *case(47, "threads_many", "small_stack"),
    *case(48, "lifecycle", "signal_storm", "cancel_storm"),
    *case(49, "local", "local_foreign_free", "local_outlives_owner", "local_realloc", "local_free_by_free",
          name="local_misuse", kinds=BOTH),
    # Forks.
    *case(50, "fork", "fork_mt", "fork_unannounced", "vfork_beside"),
    *case(50, "fork_stdio", "fork_stdio", name="fork_mt"),
    *case(51, "fork", "fork_from_thread"),
    *case(52, "fork", "atfork_alloc"),
    *case(53, "fork", "fork_chain", "spawn_ok"),
    *case(54, "fork", "fork_in_handler", "fork_in_handler_mt"),
    # The loader.
    *case(55, "early_alloc", "early_alloc"),
    *case(55, "early_ifunc", "early_ifunc", name="early_alloc"),
    *case(56, "loader", "dl_loop"),
    *case(57, "!dlopen_self", "dlopen_self"),
    *case(58, "!static", "static", "static_pie", "static_lto", "archive", "archive_lto", "noplt"),
    *case(58, "!setting", "aslr_off", "stack_unlimited", name="static"),
    # Writes outside of blocks.
    *case(62, "overflow", "ovf1_24", "ovf8_56", "ovf8_400", "ovf64_120", "ovf_large", "undf8_56", "undf8_large",
          "uaf_write", "uaf_large", name="overflow"),
]
ELSEWHERE = {59, 60, 61}  # real programs: tests/integration; double frees and pointers that are no blocks: tests/misuse
assert {c.number for c in CASES} == {*range(1, 65)} - ELSEWHERE
