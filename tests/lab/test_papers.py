"""The papers' figures: all there, drawn from any campaign, and judged by the numbers and nothing else."""

import re
from collections.abc import Callable, Sequence
from functools import cache

import pytest

from fabricate import fabricate
from hmalloc_lab.bench.catalogue import Cell, cells
from hmalloc_lab.bench.results import Results
from hmalloc_lab.bench.store import AllocatorRow, Campaign, RoundRow, Run
from hmalloc_lab.page.figure import CONFIRMED, NOT_CONFIRMED, UNTOLD, Chart, Table
from hmalloc_lab.page.papers import all_figures

FIGURES = {figure.id: figure for figure in all_figures()}

REQUIRED = [
    *(f"hmalloc-fig-11-{letter}" for letter in "abcdefgh"), "hmalloc-table-2",
    *(f"hmalloc-fig-{number}" for number in (12, 13, 14)),
    *(f"hoard-fig-3-{letter}" for letter in "abcdef"), "hoard-fig-4-a", "hoard-fig-4-b",
    *(f"hoard-table-{number}" for number in (2, 3, 4, 5, 6)),
    *(f"linux-malloc-table-{number}" for number in (1, 2, 3, 4)),
    *(f"linux-malloc-fig-{number}" for number in range(1, 12)),
    *(f"vvmalloc-fig-{number}" for number in (1, 2, 3, *range(6, 19))), "vvmalloc-profile",
    *(f"ar-malloc-chart-{number}" for number in range(1, 6)), "repairs",
]

# What no campaign of today's programs can tell.
NEVER_TOLD = {"hoard-fig-3-e", "hoard-fig-3-f"}

CLASSICS = ("one_lock", "hoard", "hoard-f8", "hoard-f2", *(f"vvmalloc-{approach}" for approach in range(1, 5)),
            "ar_malloc", "ar_malloc-lock", "hmalloc_paper", "hmalloc_paper-explicit", "hmalloc_paper-all-shared")
MEASURED = ("glibc", "hmalloc", "hmalloc-explicit", "hmalloc-all-shared", "gperftools")


# ---- Campaigns. -----------------------------------------------------------------------------------------------------

Factors = Callable[[Cell, str, int], dict[str, float]]  # cell, allocator, round -> factor by metric


@cache
def paper_plan() -> tuple[Cell, ...]:
    return tuple(cells("full"))


def ideal(cell: Cell, cpus: int) -> dict:
    """An allocator without contention, waste or false sharing, on a machine of so many CPUs.  What it would
    have none of is there, for factors to take it away: all threads but one wait, one object is of a used superblock."""
    threads, rounds = cell.threads, int(cell.point.get("rounds", 1))
    all_wait = {f"counter_{which}_wait_ns": (threads - 1) * 1e9 for which in ("heap", "queue")}
    counted = {"counter_objects": 1000, "counter_objects_from_used_superblocks": 1, "counter_transfers_to_global": 5,
               "counter_transfers_from_global": 5, "counter_most_allocated": 1.1e6, "counter_most_in_use": 1e6,
               "counter_heap_lock_ns": 1e6, "counter_mapped": 1000 * 1024 * threads}
    of_memory = {"footprint": 1.2, "kb_per_thread": 10, "end_ratio": 1.5, "max_allocated": 1.1e6, "minor_faults": 1000}
    return {"ns_per_op": 100 / min(threads, cpus), "worker_s_mean": max(1.0, threads / cpus), **all_wait, **counted,
            **of_memory, "threads": threads, "seconds": 1.0, "payload_kb": 743 * threads,
            "thread_ns_per_op": 100 * max(1.0, threads / cpus),
            "faults_since_start": 14 + 1.1 * threads * rounds + 127.6 * threads, "vm_peak_kb": 9000, "vm_hwm_kb": 3000,
            "a_over_u": 1.1, "kops_per_s": 1000, "max_in_use": 1e6, "objects": 1000, "mean_size": 50,
            "cross_thread_share": 0.1, "series": [[size, 1.0] for size in (3, 4, 8, 16, 40, 52)]}


class Campaigned(Results):
    """Every allocator is ideal but for the factors, and each round for its own small noise.  Runs are made when they
    are asked for: a full plan with all allocators has sixty thousand."""

    def __init__(self, factors: Factors, cpus: int, allocators: Sequence[str], rounds: int, plan: list[Cell]) -> None:
        kinds = {"glibc": "system", "hmalloc": "hmalloc", "gperftools": "peer", "hoard-f8": "variant",
                 "hoard-f2": "variant", **{name: "explicit" for name in allocators if name.startswith("hmalloc")
                                           and name.endswith(("-explicit", "-all-shared"))}}
        rows = [AllocatorRow(name, kinds.get(name, "classic"), "1") for name in allocators]
        super().__init__(Campaign(1, "", "", "full", "", 1, rounds, {"CPUs": cpus}, list(plan), rows, [], []))
        self._factors, self._cpus, self._made = factors, cpus, {}

    def runs(self, cell: str, allocator: str) -> list[Run]:
        if (cell, allocator) not in self._made:
            numbers = range(1, self.campaign.rounds + 1) if allocator in self.allocators else ()
            self._made[cell, allocator] = [self._run(self.cells[cell], allocator, number) for number in numbers]
        return self._made[cell, allocator]

    def _run(self, cell: Cell, who: str, number: int) -> Run:
        metrics = ideal(cell, self._cpus)
        metrics["ns_per_op"] *= 1 + 0.002 * ((number * len(who)) % 7)
        for metric, factor in self._factors(cell, who, number).items():
            value = metrics[metric]
            metrics[metric] = [[x, y * factor] for x, y in value] if metric == "series" else value * factor
        return Run(number, cell.name, who, "", metrics=metrics)


def campaign(factors: Factors = lambda cell, who, number: {}, cpus: int = 16, allocators=(*MEASURED, *CLASSICS),
             rounds: int = 12, plan=None) -> Results:
    return Campaigned(factors, cpus, allocators, rounds, paper_plan() if plan is None else plan)


def times(**factors: float) -> Factors:
    """Factors on the time by allocator, in every cell; _ stands for -."""
    named = {name.replace("_", "-"): factor for name, factor in factors.items()} | factors
    return lambda cell, who, number: {"ns_per_op": named[who]} if who in named else {}


def stuck(who: str, after: int) -> Factors:
    """No faster with more threads than that."""
    return lambda cell, name, _: {"ns_per_op": cell.threads / after} if name == who and cell.threads > after else {}


def both(*parts: Factors) -> Factors:
    def factors(cell: Cell, who: str, number: int) -> dict[str, float]:
        found: dict[str, float] = {}
        for part in parts:
            for metric, factor in part(cell, who, number).items():
                found[metric] = found.get(metric, 1) * factor
        return found
    return factors


def only(metric: str, factor: Callable[[Cell, int], float], who: str = "glibc") -> Factors:
    return lambda cell, name, number: {metric: factor(cell, number)} if name == who else {}


def threads_mode(factor: float, who: str = "glibc") -> Factors:
    return only("worker_s_mean", lambda cell, _: factor if cell.point.get("mode") == "threads" else 1.0, who)


def peaks(in_scalability: float, elsewhere: float, virtual: float) -> Factors:
    return lambda cell, who, number: {
        "vm_peak_kb": virtual, "vm_hwm_kb": in_scalability if cell.workload == "linux-scalability" else elsewhere,
    } if who == "hmalloc_paper-explicit" else {}


def shares_lines(factor: float) -> Factors:
    return only("series", lambda cell, _: factor if cell.point.get("aligned") == 0 else 1.0)


def leaky(by_threads: dict[int, float]) -> Factors:
    """Every third run has that much more."""
    return only("faults_since_start", lambda cell, number: 1 + by_threads.get(cell.threads, 0) * (number % 3 == 0))


def per_round(pages: float) -> Factors:
    return only("faults_since_start", lambda cell, _: 1 + pages * int(cell.point.get("rounds", 1)))


def contended_arenas(cell: Cell, who: str, number: int) -> dict[str, float]:
    return {"ns_per_op": 1.3} if cell.threads > int(cell.point.get("arenas", 99)) else {}


SLOW, FAST = 3.0, 1 / 3
HMALLOC, PRELOADED = "hmalloc_paper-explicit", "hmalloc_paper"
AHEAD, BEHIND = times(**{HMALLOC: FAST}), times(**{HMALLOC: SLOW})
SIMULATED_AHEAD, SIMULATED_BEHIND = times(hmalloc_paper=FAST), times(hmalloc_paper=SLOW)


def slowing(who: str) -> Factors:
    """Slower with every thread."""
    return lambda cell, name, _: {"ns_per_op": cell.threads**1.5, "thread_ns_per_op": cell.threads**0.75
                                  } if name == who else {}


OTHERS_STOP = both(stuck("glibc", 6), slowing("one_lock"))
HOARD_WINS = both(OTHERS_STOP, times(hoard=1 / 30))
HOARD_STOPS = both(OTHERS_STOP, stuck("hoard", 2))

USED = "counter_objects_from_used_superblocks"
GROWS_IN_LARSON = only("counter_most_allocated", lambda cell, _: 1.3 if cell.workload == "larson" else 1, "hoard-f2")


def AS_PROFILED(cell: Cell, who: str, number: int) -> dict[str, float]:
    small, almost_all = 0.15 / (15 / 16), 0.97
    at_the_heap = small if (who, cell.point.get("workload")) == ("vvmalloc-2", 1) else almost_all
    return {"counter_heap_wait_ns": at_the_heap, "counter_queue_wait_ns": 0.04 / (15 / 16)}


def REPAIRED(cell: Cell, who: str, number: int) -> dict[str, float]:
    """hmalloc is better in everything."""
    better = ("ns_per_op", "vm_hwm_kb", "footprint", "kb_per_thread", "end_ratio", "max_allocated",
              "faults_since_start")
    return dict.fromkeys(better, 0.5) if who in ("hmalloc", "hmalloc-explicit") else {}


# figure: (what confirms its claim, what refutes it, CPUs)
CASES: dict[str, tuple[Factors, Factors, int]] = {
    **{f"hmalloc-fig-11-{letter}": (AHEAD, BEHIND, 16) for letter in "abcdefh"},
    "hmalloc-fig-11-g": (times(), BEHIND, 16),
    "hmalloc-table-2": (peaks(0.5, 2, 0.5), peaks(2, 0.5, 2), 2),
    **{f"hmalloc-fig-{number}": (SIMULATED_AHEAD, SIMULATED_BEHIND, 16) for number in (12, 13, 14)},
    **{f"hoard-fig-3-{letter}": (HOARD_WINS, HOARD_STOPS, 16) for letter in "abc"},
    "hoard-fig-3-d": (times(one_lock=1.1), both(times(one_lock=1.1), stuck("hoard", 2)), 16),
    "hoard-fig-4-a": (both(stuck("glibc", 4), stuck("one_lock", 1)), stuck("one_lock", 1), 16),
    "hoard-fig-4-b": (stuck("glibc", 4), HOARD_STOPS, 16),
    "hoard-table-2": (lambda cell, who, _: {"ns_per_op": 1.49} if (cell.workload, who) == ("shbench", "hoard") else {},
                      times(hoard=1.3), 16),
    "hoard-table-3": (only(USED, lambda cell, _: 0, "hoard"), times(), 16),
    "hoard-table-4": (times(), only("a_over_u", lambda cell, _: 3.0, "hoard"), 16),
    "hoard-table-5": (times(), times(**{"hoard-f2": 1.2}), 16),
    "hoard-table-6": (GROWS_IN_LARSON, times(), 16),
    "linux-malloc-table-1": (threads_mode(1.1), threads_mode(1.3), 4),
    "linux-malloc-table-2": (threads_mode(9, "one_lock"), times(), 4),
    "linux-malloc-table-3": (threads_mode(1.2), threads_mode(1.4), 4),
    "linux-malloc-fig-1": (times(), only("worker_s_mean", lambda cell, _: cell.threads), 4),
    "linux-malloc-fig-2": (times(), only("worker_s_mean", lambda cell, _: cell.threads), 4),
    "linux-malloc-fig-3": (only("worker_s_mean", lambda cell, _: cell.threads, "one_lock"), times(), 4),
    "linux-malloc-fig-4": (times(), only("worker_s_mean", lambda cell, _: cell.threads), 4),
    "linux-malloc-table-4": (only("worker_s_mean", lambda cell, number: 1.18 if number % 3 == 0 else 1.0), times(), 4),
    "linux-malloc-fig-5": (times(), per_round(0.05), 4),
    "linux-malloc-fig-6": (leaky({3: 0.3}), times(), 4),
    "linux-malloc-fig-7": (leaky({3: 0.3, 7: 0.1}), leaky({3: 0.1, 7: 0.3}), 4),
    "linux-malloc-fig-8": (times(), per_round(0.05), 4),
    **{f"linux-malloc-fig-{number}": (shares_lines(4), times(), 4) for number in (9, 10, 11)},
    "vvmalloc-fig-7": (times(vvmalloc_2=0.5, gperftools=0.2), times(vvmalloc_2=2), 16),
    "vvmalloc-fig-8": (times(vvmalloc_2=2), times(vvmalloc_2=0.5), 16),
    "vvmalloc-fig-9": (times(gperftools=0.5), times(vvmalloc_2=0.2), 16),
    "vvmalloc-fig-10": (times(vvmalloc_3=0.5), times(vvmalloc_3=2), 16),
    "vvmalloc-fig-11": (times(glibc=0.5), times(glibc=2), 16),
    "vvmalloc-fig-12": (times(glibc=2), times(glibc=0.5), 16),
    "vvmalloc-fig-1": (times(), only("payload_kb", lambda cell, _: 0.5, "vvmalloc-1"), 16),
    "vvmalloc-fig-2": (slowing("vvmalloc-1"), times(), 16),
    "vvmalloc-fig-3": (slowing("vvmalloc-1"), times(), 16),
    "vvmalloc-fig-6": (times(gperftools=0.3, vvmalloc_2=0.9), times(gperftools=0.3, vvmalloc_2=1.1), 16),
    "vvmalloc-profile": (AS_PROFILED, times(), 16),
    "vvmalloc-fig-13": (times(gperftools=0.5, glibc=1.2), times(gperftools=2, glibc=1.2), 16),
    **{f"vvmalloc-fig-{number}": (times(gperftools=0.2, vvmalloc_4=FAST), times(gperftools=0.2), 16)
       for number in (14, 15)},
    "vvmalloc-fig-16": (times(glibc=1.5), times(vvmalloc_4=SLOW), 16),
    **{f"vvmalloc-fig-{number}": (times(vvmalloc_4=FAST), times(vvmalloc_4=SLOW), 16) for number in (17, 18)},
    "ar-malloc-chart-1": (times(**{"ar_malloc-lock": SLOW}), times(**{"ar_malloc-lock": 0.5}), 16),
    "ar-malloc-chart-2": (times(ar_malloc=FAST), times(), 16),
    "ar-malloc-chart-3": (stuck("glibc", 8), times(), 16),
    "ar-malloc-chart-4": (contended_arenas, times(), 16),
    "ar-malloc-chart-5": (times(), stuck("ar_malloc", 1), 16),
    "repairs": (REPAIRED, only("kb_per_thread", lambda cell, _: 2, "hmalloc"), 16),
}


@pytest.fixture(scope="module")
def made_up(tmp_path_factory):
    @cache
    def of(profile: str, allocators: tuple[str, ...] = (), slow: tuple[tuple[str, float], ...] = ()) -> Results:
        path = tmp_path_factory.mktemp("campaign") / "made-up.db"
        chosen = {"allocators": allocators, "failing": False} if allocators else {}
        return Results.read(fabricate(path, profile, slow=dict(slow), **chosen))
    return of


# ---- What there is. -------------------------------------------------------------------------------------------------


def test_every_required_figure_is_there_once():
    assert [figure.id for figure in all_figures()].count("hmalloc-fig-11-a") == 1
    assert sorted(figure.id for figure in all_figures()) == sorted(REQUIRED)


def test_every_claim_names_its_place_and_has_the_papers_numbers():
    for figure in FIGURES.values():
        place, _, claim = figure.claim.partition(":")
        assert re.fullmatch(r"Section \d\.\d|Approach \d|Approach 4 and Results|Results \d|Results, \w+ chart"
                            r"|Different configuration, \w+ chart|Deviations", place), figure.id
        assert re.search(r"\d", claim) or figure.id in ("hoard-fig-3-e", "hoard-fig-3-f"), figure.id


@pytest.mark.parametrize("figure, numbers", [
    ("hmalloc-fig-11-a", ("10 %", "21", "76 %", "15 %")), ("hmalloc-fig-11-b", ("512 B", "125", "4 MB", "6 threads")),
    ("hmalloc-fig-11-c", ("30 %", "100 %")), ("hmalloc-fig-11-d", ("10 %", "50 %", "20 %")),
    ("hmalloc-fig-11-e", ("8 to 30 %", "28 to 112 %")), ("hmalloc-fig-12", ("10 %", "20 %")),
    ("hmalloc-fig-13", ("5 %", "10 %")), ("hmalloc-fig-14", ("5 %", "10 %")),
    ("hmalloc-table-2", ("318", "1227", "1460", "2929", "114", "13.9")), ("hoard-fig-3-a", ("278 %", "14", "6")),
    ("hoard-fig-3-b", ("85 %",)), ("hoard-fig-3-c", ("18 times",)), ("hoard-fig-3-d", ("12", "10 %", "32,768")),
    ("hoard-table-2", ("6.2 %", "49.2 %", "6.1 %")), ("hoard-table-4", ("1.24", "1.22", "1.18", "3.17", "58.04")),
    ("hoard-table-5", ("1.27", "1.45", "4.41")), ("hoard-table-6", ("1.22", "1.61")),
    ("linux-malloc-table-1", ("26.04", "26.06", "23.31", "10 %")), ("linux-malloc-table-2", ("54.27", "6.02")),
    ("linux-malloc-table-3", ("12.39", "10.39", "20 %")), ("linux-malloc-table-4", ("12.58", "14.85", "15 runs")),
    ("linux-malloc-fig-5", ("14 + 1.1tr + 127.6t",)), ("linux-malloc-fig-6", ("399", "25 to 50 %")),
    ("linux-malloc-fig-7", ("9 to 18 %",)), ("vvmalloc-fig-1", ("74.3", "14,639")),
    ("vvmalloc-fig-2", ("9.1", "1,668")), ("vvmalloc-fig-3", ("7 to 8 times",)), ("vvmalloc-fig-6", ("16 threads",)),
    ("vvmalloc-profile", ("14.96 %", "93 %", "93.38 %", "89 %", "4 %")),
    ("hoard-table-3", ("14 processors", "0 objects")), ("vvmalloc-fig-16", ("1.5 times",)),
    ("vvmalloc-fig-17", ("3 times", "twice")),
    ("ar-malloc-chart-2", ("3 times",)), ("ar-malloc-chart-3", ("8 threads",)),
])
def test_a_claim_has_these_numbers(figure, numbers):
    assert [number for number in numbers if number not in FIGURES[figure].claim] == []


# ---- Any campaign is drawn and judged. ------------------------------------------------------------------------------


def examine(results: Results) -> dict[str, str]:
    outcomes = {}
    for figure in FIGURES.values():
        for picture in figure.draw(results):
            check_picture(picture)
        verdict = figure.judge(results)
        assert verdict.outcome in (CONFIRMED, NOT_CONFIRMED, UNTOLD)
        assert verdict.reason.strip().endswith("."), (figure.id, verdict.reason)
        assert "nan" not in verdict.reason and "inf" not in verdict.reason.split(), (figure.id, verdict.reason)
        outcomes[figure.id] = verdict.outcome
    return outcomes


def check_picture(picture: Chart | Table) -> None:
    if isinstance(picture, Table):
        assert picture.rows and all(len(row) == len(picture.columns) for row in picture.rows)
        return
    assert picture.series and picture.x_title and picture.y_title
    for series in picture.series:
        assert series.points
        for point in series.points:
            assert point.low is None or point.low <= point.y <= point.high


@pytest.mark.parametrize("profile, allocators", [
    ("paper", ()), ("quick", ()), ("quick", ("glibc",)), ("paper", ("hmalloc",)), ("quick", ("mimalloc2",)),
    ("quick", ("given",))])
def test_made_up_campaigns_are_drawn_and_judged(made_up, profile, allocators):
    examine(made_up(profile, allocators))


@pytest.mark.parametrize("without", ["cells", "runs", "CPUs"])
def test_without_numbers_nothing_can_be_told(without):
    results = campaign(rounds=0 if without == "runs" else 6, plan=[] if without == "cells" else cells("quick"))
    if without == "CPUs":
        results.campaign.environment.clear()
    outcomes = examine(results)
    if without != "CPUs":
        assert set(outcomes.values()) == {UNTOLD}
        assert not [figure.id for figure in FIGURES.values() if figure.draw(results)]
    assert outcomes["hmalloc-fig-11-a"] == outcomes["linux-malloc-fig-1"] == UNTOLD


def test_what_is_measured_is_drawn():
    results = campaign()
    assert {name for name, figure in FIGURES.items() if not figure.draw(results)} == {
        "hoard-fig-3-e", "hoard-fig-3-f"}


def test_a_speed_up_starts_at_one_and_follows_the_threads():
    (chart,) = FIGURES["hoard-fig-3-a"].draw(campaign())
    glibc = next(series for series in chart.series if series.name == "glibc")
    assert [(point.x, round(point.y)) for point in glibc.points] == [(count, count) for count in (1, 2, 4, 8, 16)]


# ---- Verdicts follow the numbers. -----------------------------------------------------------------------------------


def test_every_figure_that_can_be_told_has_a_case():
    assert set(CASES) | NEVER_TOLD == set(REQUIRED) and not set(CASES) & NEVER_TOLD


@pytest.mark.parametrize("figure", CASES)
def test_a_verdict_turns_with_the_numbers(figure):
    confirming, refuting, cpus = CASES[figure]
    for factors, expected in ((confirming, CONFIRMED), (refuting, NOT_CONFIRMED)):
        verdict = FIGURES[figure].judge(campaign(factors, cpus))
        assert verdict.outcome == expected, verdict.reason


@pytest.mark.parametrize("figure", NEVER_TOLD)
def test_what_cannot_be_told_says_why(figure):
    verdict = FIGURES[figure].judge(campaign())
    assert verdict.outcome == UNTOLD and "nothing here stands" in verdict.reason


@pytest.mark.parametrize("figure, slowed", [("hmalloc-fig-11-f", HMALLOC), ("hmalloc-fig-11-e", HMALLOC)])
def test_slowing_an_allocator_turns_the_verdict(made_up, figure, slowed):
    judge = FIGURES[figure].judge
    among = ("glibc", "hmalloc", slowed)
    assert judge(made_up("quick", among, ((slowed, 0.1),))).outcome == CONFIRMED
    assert judge(made_up("quick", among, ((slowed, 50.0),))).outcome == NOT_CONFIRMED


def test_too_few_rounds_tell_nothing():
    verdict = FIGURES["hmalloc-fig-11-a"].judge(campaign(AHEAD, rounds=3))
    assert verdict.outcome == UNTOLD and "too few rounds" in verdict.reason


def test_an_interval_across_the_threshold_tells_nothing():
    noisy = only("ns_per_op", lambda cell, number: 0.5 if number % 3 else 1.5, HMALLOC)  # the median is 0.5
    assert FIGURES["hmalloc-fig-11-a"].judge(campaign(noisy)).outcome == UNTOLD


def test_claims_beyond_the_cpus_are_not_told():
    alone = campaign(slowing("one_lock"), cpus=2)
    for figure in ("hoard-fig-3-a", "ar-malloc-chart-3", "linux-malloc-table-3", "linux-malloc-fig-10"):
        verdict = FIGURES[figure].judge(alone)
        assert verdict.outcome == UNTOLD and re.search("has 2|2 CPUs", verdict.reason), verdict.reason


def test_linear_as_far_as_the_cpus_go_is_not_linear_as_far_as_the_paper_goes():
    verdict = FIGURES["hoard-fig-4-a"].judge(campaign(both(stuck("glibc", 4), stuck("one_lock", 1)), cpus=8))
    assert verdict.outcome == UNTOLD and "goes to 14 CPUs, this machine has 8" in verdict.reason


def test_the_classics_are_asked_for_until_they_are_measured():
    results = campaign(allocators=MEASURED)
    for figure, missing in (("hoard-fig-3-d", "hoard"), ("hoard-table-4", "hoard"), ("vvmalloc-fig-7", "vvmalloc-2"),
                            ("linux-malloc-table-2", "one_lock"), ("ar-malloc-chart-2", "ar_malloc"),
                            ("hoard-table-3", "hoard"), ("hoard-table-5", "hoard-f8"), ("vvmalloc-fig-1", "vvmalloc-1"),
                            ("vvmalloc-profile", "vvmalloc-2"), ("repairs", "hmalloc_paper"),
                            ("hmalloc-fig-11-a", HMALLOC), ("hmalloc-fig-12", "hmalloc_paper")):
        verdict = FIGURES[figure].judge(results)
        assert verdict.outcome == UNTOLD and f"{missing} was not measured" in verdict.reason, verdict.reason


def test_simulations_are_left_to_the_longer_profiles():
    results = campaign(AHEAD, plan=cells("quick"))
    for number in (12, 13, 14):
        assert FIGURES[f"hmalloc-fig-{number}"].draw(results) == []
        verdict = FIGURES[f"hmalloc-fig-{number}"].judge(results)
        assert verdict.outcome == UNTOLD and "paper" in verdict.reason


@pytest.mark.parametrize("number, points", [
    (12, (0, 25, 50, 75, 100)), (13, (20, 50, 100, 200)), (14, (50, 100, 200, 500))])
def test_a_simulation_has_a_picture_for_each_number_of_threads(number, points):
    charts = FIGURES[f"hmalloc-fig-{number}"].draw(campaign())
    assert [chart.title for chart in charts] == ["1 thread", *(f"{count} threads" for count in (2, 4, 8, 16))]
    assert {chart.y_title for chart in charts} == {"ns per event"}
    assert {tuple(point.x for point in series.points) for chart in charts for series in chart.series} == {points}


def test_simulations_are_judged_with_as_many_threads_as_there_are_cpus():
    def fast_with_two(cell: Cell, who: str, number: int) -> dict[str, float]:
        return {"ns_per_op": 0.5 if who == "hmalloc_paper" and cell.threads == 2 else 1}
    judge = FIGURES["hmalloc-fig-13"].judge
    assert (judge(campaign(fast_with_two, 2)).outcome, judge(campaign(fast_with_two, 4)).outcome) == (
        CONFIRMED, NOT_CONFIRMED)


def test_disturbed_rounds_do_not_make_a_run_sporadically_slow():
    results = campaign(CASES["linux-malloc-table-4"][0], 4, rounds=15)
    assert FIGURES["linux-malloc-table-4"].judge(results).outcome == CONFIRMED
    results = campaign(CASES["linux-malloc-table-4"][0], 4, rounds=15)
    results.campaign.round_rows += [RoundRow(number, "", noisy=True) for number in (3, 6, 9, 12, 15)]
    assert FIGURES["linux-malloc-table-4"].judge(results).outcome == NOT_CONFIRMED
