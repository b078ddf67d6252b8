"""Cases that cannot be judged where an emulator runs the programs (qemu-user), each with its reason."""

PROGRAMS = {"!setting": "the settings would be the emulator's"}
LIMIT = "qemu-user sets no RLIMIT_AS"
RESIDENT = "the emulator's memory is counted too, and it grows with each thread and each page of code"
FORK = "the child of a fork beside threads ends in an assertion of qemu-user"
# What a program of the machine does, by the names of its sub-cases; tests/aarch64 runs them on a real kernel.
SUBS = {
    "oom_rlimit": LIMIT,
    "oom_phases": LIMIT,
    "oom_realloc": LIMIT,
    "inject_mmap_fail": "qemu-user has no seccomp",
    "inject_munmap_fail": "qemu-user has no seccomp",
    "map_count": "the emulator needs mappings of its own",
    "overcommit_charge": RESIDENT,
    "no_thp": "qemu-user drops wishes about huge pages",
    "thread_10k": RESIDENT,
    "thread_10k_kept": RESIDENT,
    "threads_1000_alive": RESIDENT,
    "index_starve": RESIDENT,
    "larson_random": RESIDENT,
    "tls_dtor": RESIDENT,
    "fork_mt": FORK,
    "fork_from_thread": FORK,
    "atfork_alloc": FORK,
    "fork_in_handler_mt": FORK,
    "spawn_ok": "what it starts would be programs of this machine",
}


def not_emulated(case):
    return PROGRAMS.get(case.program) or SUBS.get(case.sub)
