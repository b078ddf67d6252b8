"""The cases: for each its number, its name, the programs that make it up and what each must do."""

from dataclasses import dataclass, field

from harness import ABORT, OK, OK_OR_ABORT


@dataclass(frozen=True)
class Case:
    number: int
    name: str
    program: str
    sub: str
    expect: dict = field(hash=False)  # library kind -> outcome
    differs: dict = field(hash=False)  # allocator -> why it is not held to this; what peers fail is shown as such
    kinds: tuple  # libraries it is run against by default


NOT_OURS = ("glibc", "mimalloc", "jemalloc", "tcmalloc")


def everywhere(outcome):
    return {"default": outcome, "checked": outcome, "hardened": outcome}


def case(number, program, *subs, name=None, expect=None, differs=None, kinds=("default",)):
    """Several sub-cases of one row; the row is called after the first unless it has a name."""
    return [Case(number, name or subs[0], program, sub, expect or everywhere(OK), differs or {}, kinds) for sub in subs]


def only_ours(why):
    return dict.fromkeys(NOT_OURS, why)


NO_SIZED = dict.fromkeys(NOT_OURS, "has no free_sized")

API = [
    *case(1, "api_basic", "zero_size"),
    *case(2, "api_basic", "align_sizes"),
    *case(3, "api_basic", "align16_strict"),
    *case(4, "api_align", "memalign_all", "memalign_many"),
    *case(5, "api_align", "memalign_errors", "memalign_wide"),
    *case(6, "api_limits", "huge_sizes", "huge_alignments"),
    *case(7, "api_limits", "mul_overflow"),
    *case(8, "api_realloc", "realloc_matrix", "realloc_zero", "realloc_grow"),
    *case(9, "api_basic", "usable_size"),
    *case(10, "api_basic", "errno_free"),
    *case(11, "api_basic", "calloc_zero", "calloc_zero_recycled"),
    *case(12, "api_realloc", "uniq_overlap"),
    *case(13, "cxx", "cxx_new"),
    *case(14, "api_sized", "free_sized_right", name="free_sized", differs=NO_SIZED, kinds=("default", "checked")),
    *case(15, "api_align", "aligned_alloc_bad",
          differs={"glibc": "glibc before 2.38 rounds a bad alignment up"}),
    *case(16, "api_align", "mallopt_accepted"),
    *case(16, "!symbols", "symbols", "needed", differs=only_ours("hmalloc's own exports"),
          kinds=("default", "checked")),
]

RESOURCES = [
    *case(17, "resources", "oom_rlimit"),
    *case(18, "resources", "oom_new_thread"),
    *case(19, "resources", "oom_realloc"),
    *case(20, "faults", "inject_mmap_fail"),
    *case(21, "faults", "inject_munmap_fail"),
    *case(22, "!nth", "nth_mmap_fails", differs=only_ours("needs hmalloc's fault switch"), kinds=("faults",)),
    *case(23, "faults", "map_count"),
    *case(24, "platform", "overcommit_charge", "overcommit_limit", name="overcommit2"),
    *case(24, "!overcommit2", "overcommit_strict", name="overcommit2"),
    *case(25, "platform", "thp_as_set", "no_thp", name="no_thp"),
    *case(25, "!page_size", "page_size_16k_64k", name="no_thp"),
]

THREADS = [
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
    *case(40, "footprint", "larson_random", differs={"glibc": "measured: 2.6 times live"}),
    *case(41, "os_return", "return_to_os", "return_by_decay"),
    *case(42, "os_return", "idle_owner"),
    *case(43, "threads_exit", "tls_dtor"),
    *case(44, "cxx", "cxx_thread_local"),
    *case(45, "lifecycle", "exit_while_alloc"),
    *case(46, "lifecycle", "main_pthread_exit", "atexit_alloc"),
    *case(47, "threads_many", "small_stack"),
    *case(48, "lifecycle", "signal_storm", "cancel_storm"),
    *case(49, "!local", "local_foreign_free", "local_outlives_owner", "local_realloc", name="local_misuse",
          differs=only_ours("hmalloc's own API"), kinds=("default", "checked")),
    *case(49, "!local", "local_free_by_free", name="local_misuse", expect=everywhere(OK_OR_ABORT),
          differs=only_ours("hmalloc's own API"), kinds=("default", "checked")),
]

FORK = [
    *case(50, "fork", "fork_mt"),
    *case(50, "fork_stdio", "fork_stdio", name="fork_mt", differs={"jemalloc": "takes its locks before stdio's"}),
    *case(50, "fork", "fork_unannounced", "vfork_beside", name="fork_mt",
          differs=only_ours("not promised by others: no handler runs in the child")),
    *case(51, "fork", "fork_from_thread"),
    *case(52, "fork", "atfork_alloc"),
    *case(53, "fork", "fork_chain", "spawn_ok"),
    *case(54, "fork", "fork_in_handler", "fork_in_handler_mt"),
]

LOADER = [
    *case(55, "early_alloc", "early_alloc"),
    *case(55, "early_ifunc", "early_ifunc", name="early_alloc"),
    *case(56, "loader", "dl_loop"),
    *case(57, "!dlopen_self", "dlopen_self", differs=only_ours("not promised by others, and glibc cannot be unloaded")),
    *case(58, "!static", "static", "static_pie", "static_lto", "static_cxx", "archive", "noplt",
          differs=only_ours("needs hmalloc's archive and header")),
    *case(58, "!setting", "aslr_off", "stack_unlimited", name="static"),
    *case(59, "!programs", "real_programs", differs=only_ours("the comparison is with glibc")),
]

OVERFLOW = case(62, "overflow", "ovf1_24", "ovf8_56", "ovf8_400", "ovf64_120", "ovf_large", "undf8_56", "undf8_large",
                "uaf_write", "uaf_large", name="overflow", expect={"default": OK, "checked": OK, "hardened": ABORT},
                differs=only_ours("metadata lies beside the blocks"), kinds=("default", "hardened"))

CASES = API + RESOURCES + THREADS + FORK + LOADER + OVERFLOW
IN_TESTS_MISUSE = {60, 61}  # double frees, and pointers that are no blocks
assert {c.number for c in CASES} == {*range(1, 63)} - IN_TESTS_MISUSE
