"""What refutes and what confirms the papers' claims, each predicate in both directions, by the right allocators and by
nothing else; and what is said where it cannot be told."""

import pytest
from hmalloc_lab.bench.catalogue import cells
from hmalloc_lab.bench.store import RoundRow
from hmalloc_lab.page.figure import CONFIRMED, NOT_CONFIRMED, UNTOLD
from paper_campaigns import (
    ALLOCATORS,
    AS_PROFILED,
    BASELINES,
    FAST,
    FIGURES,
    HMALLOC,
    REPAIRED,
    SLOW,
    Factors,
    both,
    campaign,
    examine,
    ideal,
    only,
    slowing,
    stuck,
    times,
)

C, N, U = CONFIRMED, NOT_CONFIRMED, UNTOLD
AHEAD, BEHIND = times(**{HMALLOC: FAST}), times(**{HMALLOC: SLOW})
OTHERS_STOP = both(stuck("glibc", 6), slowing("one_lock"))
HOARD_WINS, HOARD_STOPS = both(OTHERS_STOP, times(hoard=1 / 30)), both(OTHERS_STOP, stuck("hoard", 2))
SLOW_LOCK = slowing("vvmalloc-1")
USED, A, WORKER, FAULTS = (
    "counter_objects_from_used_superblocks", "counter_max_allocated", "worker_s_mean", "faults_since_start")
SHBENCH = only("ns_per_op", 1.49, "hoard", "shbench")
GROWS_IN_LARSON = only(A, 1.3, "hoard-f2", "larson")
SLOW_TODAY = times(**dict.fromkeys(("hmalloc", "hmalloc-explicit", "hmalloc-all-shared"), SLOW))
QUEUED = only(WORKER, lambda cell, _: cell.threads)  # one worker after the other
SPORADIC = only(WORKER, lambda cell, number: 1.18 if number % 3 == 0 else 1.0)


def as_threads(factor: float, allocator: str = "glibc") -> Factors:
    return only(WORKER, factor, allocator, mode="threads")


def leaky(by_threads: dict[int, float]) -> Factors:
    """Every third run has that much more."""
    return only(FAULTS, lambda cell, number: 1 + by_threads.get(cell.threads, 0) * (number % 3 == 0))


def peaks(in_scalability: float, elsewhere: float, virtual: float) -> Factors:
    return both(only("vm_peak_kb", virtual, HMALLOC), only("vm_hwm_kb", elsewhere, HMALLOC),
                only("vm_hwm_kb", in_scalability / elsewhere, HMALLOC, "linux-scalability"))


def profile(allocator: str, number: int, counter: str, factor: float) -> Factors:
    """As the report has it, but for one share."""
    return both(AS_PROFILED, only(f"counter_{counter}_wait_ns", factor, allocator, workload="vvmalloc"),
                only(f"counter_{counter}_wait_ns", lambda cell, _: 1 if cell.point["workload"] == number else 1 / factor,
                     allocator, workload="vvmalloc"))


def contended(allocator: str) -> Factors:
    return only("ns_per_op", lambda cell, _: 1.3 if cell.threads > cell.point.get("arenas", 99) else 1, allocator)


def payload(factor: float, allocator: str = "vvmalloc-1") -> Factors:
    return only("payload_kb", factor, allocator)


def thread_time(power: float) -> Factors:
    return only("thread_ns_per_op", lambda cell, _: cell.threads**power, "vvmalloc-1")


# figure: what confirms its claim, what refutes it; with 16 CPUs, of the Linux paper's with 4
CASES: dict[str, tuple[Factors, Factors]] = {
    **{f"hmalloc-fig-11-{letter}": (AHEAD, BEHIND) for letter in "abcdefh"},
    "hmalloc-fig-11-g": (times(), BEHIND), "hmalloc-table-2": (peaks(0.5, 2, 0.5), peaks(2, 0.5, 2)),
    **{f"hmalloc-fig-{number}": (times(hmalloc_paper=FAST), times(hmalloc_paper=SLOW)) for number in (12, 13, 14)},
    **{f"hoard-fig-3-{letter}": (HOARD_WINS, HOARD_STOPS) for letter in "abc"},
    "hoard-fig-3-d": (times(one_lock=1.1), both(times(one_lock=1.1), stuck("hoard", 2))),
    "hoard-fig-4-a": (both(stuck("glibc", 4), stuck("one_lock", 1)), stuck("one_lock", 1)),
    "hoard-fig-4-b": (stuck("glibc", 4), HOARD_STOPS), "hoard-table-2": (SHBENCH, times(hoard=1.3)),
    "hoard-table-3": (only(USED, 0, "hoard"), times()), "hoard-table-4": (times(), only("a_over_u", 3.0, "hoard")),
    "hoard-table-5": (times(), times(**{"hoard-f2": 1.2})), "hoard-table-6": (GROWS_IN_LARSON, times()),
    "linux-malloc-table-1": (as_threads(1.1), as_threads(1.3)), "linux-malloc-table-3": (as_threads(1.2), as_threads(1.4)),
    "linux-malloc-table-2": (as_threads(9, "one_lock"), times()), "linux-malloc-table-4": (SPORADIC, times()),
    **{f"linux-malloc-fig-{number}": (times(), QUEUED) for number in (1, 2, 4)},
    "linux-malloc-fig-3": (only(WORKER, lambda cell, _: cell.threads, "one_lock"), times()),
    **{f"linux-malloc-fig-{number}": (times(), only(FAULTS, lambda cell, _: 1 + 0.05 * int(cell.point.get("rounds", 1))))
       for number in (5, 8)},
    "linux-malloc-fig-6": (leaky({3: 0.3}), times()),
    "linux-malloc-fig-7": (leaky({3: 0.3, 7: 0.1}), leaky({3: 0.1, 7: 0.3})),
    **{f"linux-malloc-fig-{number}": (only("series", 4, aligned=0), times()) for number in (9, 10, 11)},
    "vvmalloc-fig-1": (times(), payload(0.5)), **{f"vvmalloc-fig-{number}": (SLOW_LOCK, times()) for number in (2, 3)},
    "vvmalloc-fig-6": (times(gperftools=0.3, vvmalloc_2=0.9), times(gperftools=0.3, vvmalloc_2=1.1)),
    "vvmalloc-fig-7": (times(vvmalloc_2=0.5, gperftools=0.2), times(vvmalloc_2=2)),
    "vvmalloc-fig-8": (times(vvmalloc_2=2), times(vvmalloc_2=0.5)),
    "vvmalloc-fig-9": (times(gperftools=0.5), times(vvmalloc_2=0.2)),
    "vvmalloc-fig-10": (times(vvmalloc_3=0.5), times(vvmalloc_3=2)),
    "vvmalloc-fig-11": (times(glibc=0.5), times(glibc=2)), "vvmalloc-fig-12": (times(glibc=2), times(glibc=0.5)),
    "vvmalloc-profile": (AS_PROFILED, times()),
    "vvmalloc-fig-13": (times(gperftools=0.5, glibc=1.2), times(gperftools=2, glibc=1.2)),
    **{f"vvmalloc-fig-{number}": (times(gperftools=0.2, vvmalloc_4=FAST), times(gperftools=0.2)) for number in (14, 15)},
    "vvmalloc-fig-16": (times(glibc=1.5), times(vvmalloc_4=SLOW)),
    **{f"vvmalloc-fig-{number}": (times(vvmalloc_4=FAST), times(vvmalloc_4=SLOW)) for number in (17, 18)},
    "ar-malloc-chart-1": (times(**{"ar_malloc-lock": SLOW}), times(**{"ar_malloc-lock": 0.5})),
    "ar-malloc-chart-2": (times(ar_malloc=FAST), times()), "ar-malloc-chart-3": (stuck("glibc", 8), times()),
    "ar-malloc-chart-4": (contended("ar_malloc"), times()), "ar-malloc-chart-5": (times(), stuck("ar_malloc", 1)),
    "repairs": (REPAIRED, only("kb_per_thread", 2, "hmalloc")),
}
NEVER_TOLD = {"hoard-fig-3-e", "hoard-fig-3-f"}

# figure, CPUs, outcome, factors
JUDGED = [
    # one_lock that scales refutes what is said of Solaris, however well Hoard does.
    *((f"hoard-fig-3-{letter}", 16, N, both(stuck("glibc", 6), times(hoard=1 / 30))) for letter in "abc"),
    # Slowing down takes two CPUs and no more; so does one_lock's part in active false sharing.
    ("hoard-fig-3-a", 2, N, times()), ("hoard-fig-4-a", 2, N, times()), ("hoard-fig-4-a", 2, U, stuck("one_lock", 1)),
    ("hoard-fig-3-d", 16, N, times(one_lock=1.05)),
    # One thread is compared with one_lock, not with glibc.
    *(("hoard-table-2", 16, expected, both(SHBENCH, only("ns_per_op", 0.5, name, workload)))
      for name, expected in (("glibc", C), ("one_lock", N)) for workload in ("threadtest", "barnes-hut", "replay")),
    ("hoard-table-2", 16, N, both(SHBENCH, times(one_lock=1 / SLOW))),
    ("hoard-table-2", 16, N, both(SHBENCH, only("ns_per_op", 1.4, "hoard", "replay"))),
    # Fragmentation by Hoard's own counts: the paper's 1.18 to 1.24, but for shbench, which is no claim about ours.
    *(("hoard-table-4", 16, expected, only(A, 1.25, "hoard", workload)) for workload, expected in (
        ("threadtest", N), ("larson", N), ("barnes-hut", N), ("shbench", C))),
    *(("hoard-table-4", 16, C, only("a_over_u", 1.3, "hoard", "replay", trace=trace))
      for trace in ("threadtest", "larson", "barnes-hut", "shbench")),
    # Each empty fraction has to be as fast, and as lean but for Larson.
    *(("hoard-table-5", 16, expected, only("ns_per_op", factor, variant, workload))
      for variant in ("hoard-f8", "hoard-f2") for workload in ("threadtest", "shbench", "larson", "barnes-hut")
      for factor, expected in ((1.08, C), (1.12, N), (0.88, N))),
    *(("hoard-table-6", 16, expected, both(GROWS_IN_LARSON, only(A, factor, variant, workload)))
      for variant, workload, factor, expected in (
          ("hoard-f8", "larson", 1.1, N), ("hoard-f8", "shbench", 0.9, N), ("hoard-f2", "shbench", 1.1, N),
          ("hoard-f2", "barnes-hut", 1.03, C), ("hoard-f2", "larson", 0.8, N))),
    # As much spread with seven threads as with three is not less.
    ("linux-malloc-fig-7", 4, N, times()),
    # One thread more than CPUs has to be a jump.
    ("linux-malloc-fig-4", 4, N, only(WORKER, 0.8, threads=5)),
    # Slow runs are sporadic as long as they are fewer than half.
    ("linux-malloc-table-4", 4, N, only(WORKER, lambda cell, number: 1 + number % 2)),
    # Each share of waiting; two CPUs can confirm waiting and refute less of it, but more is more.
    *(("vvmalloc-profile", 16, expected, profile(name, number, counter, factor))
      for name, number, counter, factor, expected in (
          ("vvmalloc-2", 1, "heap", 1.9, C), ("vvmalloc-2", 1, "heap", 2.2, N), ("vvmalloc-2", 1, "heap", 0.4, N),
          ("vvmalloc-2", 2, "heap", 0.85, N), ("vvmalloc-2", 3, "heap", 0.85, N), ("vvmalloc-3", 2, "heap", 0.85, N),
          ("vvmalloc-3", 2, "queue", 2.2, N), ("vvmalloc-3", 3, "queue", 0.4, N), ("vvmalloc-4", 2, "heap", 0.1, C),
          ("vvmalloc-2", 2, "queue", 9, C))),
    ("vvmalloc-profile", 2, C, AS_PROFILED), ("vvmalloc-profile", 2, N, profile("vvmalloc-2", 1, "heap", 4)),
    # The driver is that of approach 1; utilisation of a trace falls with the heap of all.
    *(("vvmalloc-fig-1", 16, expected, payload(factor))
      for factor, expected in ((1.15, C), (0.85, C), (0.7, N), (1.3, N))),
    ("vvmalloc-fig-1", 16, C, payload(0.1, "vvmalloc-2")),
    ("vvmalloc-fig-2", 16, N, both(SLOW_LOCK, only("payload_kb", lambda cell, _: cell.threads, "vvmalloc-1"))),
    *((f"vvmalloc-fig-{number}", 16, expected, thread_time(power))
      for number in (2, 3) for power, expected in ((0.7, C), (0.6, N))),
    ("vvmalloc-fig-3", 2, N, times()),
    # Each place in the order of the allocators.
    *((f"vvmalloc-fig-{number}", 16, N, times(**wrong)) for number, wrong in (
        (6, {"gperftools": 0.8, "vvmalloc-2": 0.9}), (6, {"gperftools": 0.3, "vvmalloc-2": 1.1}),
        (13, {"gperftools": 0.5, "vvmalloc-4": 1.3, "glibc": 1.5}), (13, {"gperftools": 0.5, "vvmalloc-4": 1.1}),
        (14, {"gperftools": 0.2, "vvmalloc-4": 0.45}), (14, {"gperftools": 0.35, "vvmalloc-4": 1 / 3}),
        (15, {"gperftools": 0.2, "vvmalloc-4": 0.65}), (15, {"gperftools": 0.2, "vvmalloc-4": 0.5, "glibc": 0.4}),
        (7, {"vvmalloc-2": 0.5}), (8, {"vvmalloc-2": 2, "gperftools": 3}), (9, {"vvmalloc-2": 0.8, "gperftools": 0.5}), (9, {}),
        (10, {"vvmalloc-3": 0.5, "glibc": 0.4}), (10, {"vvmalloc-3": 0.5, "vvmalloc-2": 0.4}),
        (11, {"glibc": 0.5, "vvmalloc-2": 0.5}), (12, {"glibc": 2, "vvmalloc-2": 0.5}),
        (16, {"glibc": 1.5, "vvmalloc-2": 0.8}), (17, {"vvmalloc-4": 0.45}), (17, {"vvmalloc-4": 1 / 3, "glibc": 0.5}),
        (18, {"vvmalloc-4": 0.65}), (18, {"vvmalloc-4": 0.5, "glibc": 0.6}))),
    # Arenas are those of ar_malloc; the claims about HMalloc are about HMalloc as published.
    ("ar-malloc-chart-4", 2, C, contended("ar_malloc")), ("ar-malloc-chart-4", 2, N, contended("glibc")),
    ("ar-malloc-chart-5", 16, C, stuck("glibc", 1)),
    *(("ar-malloc-chart-5", 16, expected, only("ns_per_op", lambda cell, _, dear=dear: dear if cell.threads > 1 else 1, "ar_malloc"))
      for dear, expected in ((1.6, C), (1.75, N))),
    *((f"hmalloc-fig-11-{letter}", 16, C, both(AHEAD, SLOW_TODAY)) for letter in "ach"),
    ("hmalloc-fig-13", 16, C, both(times(hmalloc_paper=0.5), SLOW_TODAY)),
    ("hmalloc-fig-13", 16, N, times(**{HMALLOC: 0.5})),  # simulations have no such interface
    # Simulations are judged with as many threads as there are CPUs.
    *(("hmalloc-fig-13", cpus, expected, only("ns_per_op", 0.5, "hmalloc_paper", threads=2))
      for cpus, expected in ((2, C), (4, N))),
    # An interval across the threshold tells nothing: here the median is 0.5.
    ("hmalloc-fig-11-a", 16, U, only("ns_per_op", lambda cell, number: 0.5 if number % 3 else 1.5, HMALLOC)),
    *((figure, 4 if figure.startswith("linux") else 16, expected, factors)
      for figure, case in CASES.items() for factors, expected in zip(case, (C, N), strict=True)),
]


@pytest.mark.parametrize("figure, cpus, expected, factors", JUDGED)
def test_each_predicate_is_judged(figure, cpus, expected, factors):
    verdict = FIGURES[figure].judge(campaign(factors, cpus))
    assert verdict.outcome == expected, verdict.reason


def test_every_figure_that_can_be_told_has_a_case():
    assert set(CASES) | NEVER_TOLD == set(FIGURES) and not set(CASES) & NEVER_TOLD


# ---- What it would take to tell. ------------------------------------------------------------------------------------


@pytest.mark.parametrize("figure, factors, cpus, outcome, takes", [
    ("hoard-fig-3-a", slowing("one_lock"), 1, U, "14 CPUs"), ("ar-malloc-chart-3", times(), 2, U, "16 CPUs"),
    ("linux-malloc-table-3", times(), 2, U, "4 CPUs"), ("linux-malloc-fig-10", times(), 2, U, "3 CPUs"),
    ("hoard-fig-4-a", both(stuck("glibc", 4), stuck("one_lock", 1)), 8, U, "14 CPUs"),
    ("hoard-fig-3-a", times(), 2, N, "14 CPUs"), ("vvmalloc-profile", profile("vvmalloc-2", 2, "heap", 0.5), 2, U, "16 CPUs"),
    *((f"vvmalloc-fig-{number}", SLOW_LOCK, 2, U, "16 CPUs") for number in (2, 3)),
    *((f"hoard-fig-3-{letter}", times(), 16, U, "BEMengine, a commercial solver") for letter in "ef"),
])
def test_what_it_would_take_is_said(figure, factors, cpus, outcome, takes):
    verdict = FIGURES[figure].judge(campaign(factors, cpus))
    assert (verdict.outcome, verdict.takes) == (outcome, takes)
    assert verdict.reason.endswith(f"To tell{' the rest' if outcome == N else ''}, it takes {takes}.")


@pytest.mark.parametrize("figure, factors, said", [
    ("hoard-table-3", only(USED, lambda _, number: number == 7, "hoard", "larson"), "1 in larson with 16 threads"),
    ("hoard-fig-3-a", slowing("one_lock"), "one_lock's time: 4.00 with 16 threads over 1 thread")])
def test_a_verdict_says_what_it_rests_on(figure, factors, said):
    assert said in FIGURES[figure].judge(campaign(factors)).reason


def test_too_few_rounds_and_intervals_across_a_limit_take_more_rounds():
    verdict = FIGURES["hmalloc-fig-11-a"].judge(campaign(AHEAD, rounds=3))
    assert (verdict.outcome, verdict.takes) == (UNTOLD, "more rounds") and "too few rounds" in verdict.reason


def test_disturbed_rounds_do_not_make_a_run_sporadically_slow():
    results = campaign(SPORADIC, 4, rounds=15)
    results.campaign.round_rows += [RoundRow(number, "", noisy=True) for number in (3, 6, 9, 12, 15)]
    assert FIGURES["linux-malloc-table-4"].judge(results).outcome == NOT_CONFIRMED


@pytest.fixture(scope="module")
def all_measured() -> dict:
    results = campaign(rounds=5, plan=cells("paper"))
    return {name: figure.judge(results) for name, figure in FIGURES.items()}


@pytest.mark.parametrize("absent", [*BASELINES, "glibc", "hmalloc", "gperftools"])
def test_an_allocator_that_is_missing_is_asked_for_and_changes_nothing_else(absent, all_measured):
    results = campaign(allocators=[name for name in ALLOCATORS if name != absent], rounds=5, plan=cells("paper"))
    examine(results)
    verdicts = {name: figure.judge(results) for name, figure in FIGURES.items()}
    asking = {name for name, verdict in verdicts.items() if f"runs of {absent}" in verdict.takes.split(", ")}
    assert asking and all(verdicts[name].outcome in (UNTOLD, NOT_CONFIRMED) for name in asking)
    assert {name for name, verdict in verdicts.items() if verdict != all_measured[name]} <= asking | {"repairs"}


@pytest.mark.parametrize("absent", ["unequal", "replay", "vvmalloc", "shbench", "barnes-hut", "larson", "footprint"])
def test_cells_that_are_missing_are_not_crashed_on(absent):
    examine(campaign(rounds=5, plan=[cell for cell in cells("paper") if cell.workload != absent]))


def test_without_counters_nothing_that_rests_on_them_is_told():
    counters = [name for name in ideal(cells("quick")[0], 1) if name.startswith("counter_")]
    results = campaign(lambda *_: dict.fromkeys(counters), rounds=6, plan=cells("paper"))
    outcomes = examine(results)
    assert {outcomes[figure] for figure in ("hoard-table-3", "hoard-table-4", "hoard-table-6", "vvmalloc-profile",
                                            "vvmalloc-fig-1")} == {UNTOLD}
    assert "results in larson with 8 threads" in FIGURES["hoard-table-3"].judge(results).takes
    assert not FIGURES["vvmalloc-profile"].draw(results)
