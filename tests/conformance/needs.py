"""What cases need of the system.  tests/system finds out, by trying, what of that is missing: to an emulator of processes
(qemu-user) much, to an old kernel (tests/system/old_kernel.c) little, and to a kernel of today nothing, or the test `system`
fails.  tests/aarch64 runs all cases on a real kernel."""

import functools

import harness

NEEDS = {
    "oom_rlimit": "limits_addresses",
    "oom_phases": "limits_addresses",
    "oom_realloc": "limits_addresses",
    "inject_mmap_fail": "filters_calls",
    "inject_munmap_fail": "filters_calls",
    "no_thp": "heeds_advice",
    **dict.fromkeys(("map_count", "overcommit_charge", "thread_10k", "thread_10k_kept", "threads_1000_alive", "index_starve",
                     "larson_random", "tls_dtor", "refused_at_limit", "others_continue", "child_has_it_too"),
                    "counts_the_program"),
    "fork_from_thread": "starts_threads_in_children",
    "fork_unannounced": "empties_pages",
    "vfork_beside": "shares_with_vfork",
    "spawn_ok": "runs_the_same_programs",
}


@functools.cache
def missing(build):
    """Property -> what is said where it does not hold."""
    program = build / "tests/system/missing"
    if not harness.EMULATOR and not program.exists():  # only the cases were built, on a kernel of today
        return {}
    ending = harness.execute([program], harness.environment())
    if ending.status not in (0, 1):
        raise SystemExit(f"tests/system/missing: {ending.describe()}")
    return dict(line.split(": ", 1) for line in ending.stdout.splitlines())


def lacking(run):
    """Why the case cannot be judged here; None if it can."""
    if harness.EMULATOR and run.case.program == "!setting":
        return "the settings would be the emulator's"
    need = NEEDS.get(run.case.sub)
    return missing(run.options.build).get(need) if need else None
