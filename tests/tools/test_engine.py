"""hmalloc bench engine: what is run, in which order, by whom; and what is said of it.  The programs are made up."""

import pytest
from conftest import RELEASE
from hmalloc_lab.bench import participants, simulations, store
from hmalloc_lab.bench.catalogue import PROFILES, Cell, cells
from hmalloc_lab.bench.engine import commands, table, targets
from hmalloc_lab.bench.engine.cells import BARE_CONFIGURATIONS, PARTS, bare, chosen, model
from hmalloc_lab.bench.results import Results
from hmalloc_lab.bench.store import AllocatorRow, Campaign, RoundRow, Run
from hmalloc_lab.build_paths import BuildPaths
from hmalloc_lab.errors import Failure

ROWS = {name: AllocatorRow(name, kind, "1") for name, kind in (
    ("glibc", "system"), ("jemalloc", "peer"), ("mimalloc2", "peer"), ("hmalloc", "hmalloc"),
    ("hmalloc-explicit", "explicit"), ("hmalloc-all-shared", "explicit"), ("no-allocator", "no-allocator"))}

# A program that says what it was called with, and how it was told to allocate.
PROGRAM = """#!/bin/sh
api=malloc
case "$*" in *"--allocator hmalloc"*) api={explicit} ;; *"--allocator free-list"*) api=free-list ;; esac
malloc=$(sed -n 's/.* \\(\\/.*libc[.-].*so.*\\)/\\1/p' /proc/self/maps | head -n 1)
[ -z "$LD_PRELOAD" ] || malloc=$LD_PRELOAD
echo "$0 $*" >>{log}
echo 'no result in this line'
echo "{{\\"api\\":\\"$api\\",\\"malloc_library\\":\\"$malloc\\",\\"ns_per_op\\":40,\\"cpu_share\\":1,\\"stopped\\":false}}"
"""


@pytest.fixture
def run(tmp_path, measure):
    """A campaign of a build whose model programs are made up; `log` is what was started, in order."""

    def campaign(plan: list[Cell], rounds: int = 1, explicit: str = "explicit") -> Results:
        natives = tmp_path / "release"
        for folder in ("bench", "pdes"):
            (natives / folder).mkdir(parents=True)
        for native in ("hmalloc-measure", "libhmalloc.so"):
            (natives / native).symlink_to(RELEASE / native)
        for name in ("bench/bare", *(f"pdes/hmalloc-pdes-{each}" for each in simulations.MODELS)):
            (natives / name).write_text(PROGRAM.format(explicit=explicit, log=campaign.log))
            (natives / name).chmod(0o755)
        here = BuildPaths(natives / "libhmalloc.so", natives / "hmalloc-measure")
        return measure(plan, participants.everybody(here, with_peers=False), rounds, built=here)

    campaign.log = tmp_path / "log"
    return campaign


def invented(ns: dict[tuple[str, str], float], parts: tuple[str, ...] = PARTS, noise: float = 0.0) -> Results:
    """ns: time per event by (cell's name, allocator); 40 where nothing is said, no run where it is 0."""
    plan, rounds = chosen(parts), 6
    runs = [Run(number, cell.name, name, "", metrics={"ns_per_op": value * (1 + noise * (number % 3)),
                                                     "bytes_per_pending": 60.0, "vm_hwm_kb": 20480})
            for number in range(1, rounds + 1) for cell in plan for name, row in ROWS.items()
            if participants.serves(row, cell) and (value := ns.get((cell.name, name), 40.0))]
    quiet = [RoundRow(number, "", 0.004, 900.0, number == 2) for number in range(1, rounds + 1)]
    return Results(Campaign(1, "2026-11-21T12:00", "", "engine", "hmalloc bench engine", 1, rounds,
                            {"parts": list(parts)}, plan, list(ROWS.values()), quiet, runs))


def verdicts(results: Results) -> dict[tuple[str, str], str]:
    return {(row.what, judged.against if judged else row.against): judged.verdict if judged else "none"
            for row, judged in targets.judged(results)}


EXPLICIT = "hmalloc-explicit"
SLOW_BARE = {(bare(config).name, "glibc"): 200.0 for config in BARE_CONFIGURATIONS}


# ---- Command lines. -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell, name, words", [
    (model("A", 2), "hmalloc-explicit",
     "--lps 8192 --events-per-lp 16 --remote 0.1 --end 8 --threads 2 --json --allocator hmalloc --oversubscribe"),
    (model("C"), "no-allocator",
     "--lps 1024 --events-per-lp 1 --remote 0.25 --end 400 --threads 1 --json --allocator free-list --oversubscribe"),
    (model("C", 8, capped=1), "hmalloc-explicit",
     "--lps 1024 --events-per-lp 1 --remote 0.25 --end 400 --threads 8 --json --allocator hmalloc"),
    (model("B", queue="heap"), "jemalloc",
     "--lps 8192 --events-per-lp 1 --remote 0.25 --end 80 --threads 1 --queue heap --json --allocator malloc "
     "--oversubscribe"),
    (bare("ties"), "glibc",
     "--lps 8192 --events-per-lp 16 --remote 0.1 --end 8 --mean 1 --lookahead 1"),
    (Cell("phold", "simulation", {"remote": 7, "threads": 1}, {"end": 9}), "glibc",
     "--remote 0.07 --threads 1 --end 9 --json --allocator malloc --oversubscribe"),
    (Cell("pcs", "simulation", {"events": 20}), "hmalloc", "--portables 20 --json --allocator malloc --oversubscribe"),
    (Cell("airport", "simulation", {"planes": 50}), "glibc", "--planes 50 --json --allocator malloc --oversubscribe"),
], ids=lambda value: value.name if isinstance(value, Cell) else None)
def test_a_cell_becomes_a_command_line(built, cell, name, words):
    program, *rest = simulations.command(built, ROWS[name], cell)
    assert rest == words.split()
    assert program == str(RELEASE / ("bench/bare" if cell.workload == "bare" else f"pdes/hmalloc-pdes-{cell.workload}"))


def test_ranks_are_started_by_mpirun(built):
    words = simulations.command(built, ROWS["hmalloc-explicit"], model("B", ranks=2))
    assert words[0] == "mpirun" and words[words.index("-n") + 1] == "2" and "--ranks" not in words


def test_a_campaign_that_is_longer_is_longer_everywhere():
    for cell in chosen(PARTS, times=3):
        end = simulations.CONFIGURATIONS[cell.point["config"]]["end"]
        assert simulations.arguments(cell)[simulations.arguments(cell).index("--end") + 1] == str(3 * end)
        assert cell.name in {each.name for each in chosen(PARTS)}


def test_every_row_has_its_cells_in_its_own_part():
    for part in PARTS:
        names = {cell.name for cell in chosen((part,))}
        of_part = [row for row in targets.rows() if row.part == part]
        assert [row.what for row in of_part if not {row.cell.name, row.base.name} <= names] == []


def test_simulations_are_in_the_long_profiles_alone():
    quick, paper, full = (sum(cell.family == "simulation" for cell in cells(profile)) for profile in PROFILES)
    assert quick == 0 < paper < full


def test_all_allocators_run_what_is_about_allocators():
    everybody = {name for name, row in ROWS.items() if participants.serves(row, model("A", everybody=True))}
    assert everybody == set(ROWS) - {"hmalloc-all-shared"}
    assert [name for name, row in ROWS.items() if participants.serves(row, model("E"))] == ["hmalloc-explicit"]
    assert [name for name, row in ROWS.items() if participants.serves(row, bare("A"))] == ["glibc"]
    assert all(not cell.only for cell in chosen(PARTS) if cell.name == model("A").name)


# ---- Runs. ----------------------------------------------------------------------------------------------------------


def test_each_kind_of_allocator_is_told_to_the_program(run):
    plan = [model("E"), model("B", everybody=True), bare("B")]
    results = run(plan)
    assert [run.reason for run in results.failures()] == []
    assert {run.allocator for run in results.campaign.runs if run.cell == model("B").name} == {
        "glibc", "hmalloc", "hmalloc-explicit", "no-allocator"}
    assert [cell.only for cell in results.campaign.cells] == [cell.only for cell in plan]


def test_a_program_that_allocates_otherwise_does_not_count(run):
    failed, = run([model("B", everybody=True)], explicit="malloc").failures()
    assert (failed.allocator, failed.status) == ("hmalloc-explicit", store.NOT_LOADED)
    assert failed.reason == "events came from malloc, not explicit"


def test_what_is_compared_is_run_one_after_the_other(run):
    run([cell for config in ("A", "B", "C") for cell in (bare(config), model(config), model(config, 2))], 5)
    ends = [line.split("--end ")[1].split()[0] for line in run.log.read_text().splitlines()[9:]]  # after warming up
    assert len(ends) == 5 * 9
    changes = sum(before != after for before, after in zip(ends, ends[1:]))
    assert changes <= 5 * 3 - 1


# ---- Verdicts. ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ns, verdict", [
    (100 / 2.5, "reached"), (100 / 2.49, "missed"), (100 / 1.5, "missed"), (100 / 1.49, "BELOW THE FLOOR")])
def test_a_row_against_bare_is_reached_missed_or_below_its_floor(ns, verdict):
    results = invented({(bare("B").name, "glibc"): 100, (model("B").name, EXPLICIT): ns})
    assert verdicts(results)["B, 1 thread", "bare"] == verdict


@pytest.mark.parametrize("config, peer, verdict", [
    ("A", 40.0, "reached"), ("A", 39.0, "missed"), ("B", 43.3, "reached"), ("B", 43.0, "missed"),
    ("mixed", 43.0, "missed"), ("airport", 39.3, "reached")])
def test_the_best_peer_is_the_measure(config, peer, verdict):
    name = model(config, 2).name
    results = invented({(name, "jemalloc"): peer, (name, "mimalloc2"): peer + 1})
    assert verdicts(results)[f"{config}, 2 threads", "jemalloc (best peer)"] == verdict


@pytest.mark.parametrize("ns, verdict", [(47.9, "reached"), (48.1, "missed")])
def test_eight_threads_may_cost_a_fifth(ns, verdict):
    results = invented({(model("C", 8, capped=1).name, EXPLICIT): ns})
    assert verdicts(results)["C, 8 threads asked for", "1 thread"] == verdict


@pytest.mark.parametrize("against, one, others, verdict", [
    pytest.param("bare", 45.0, 90.0, "reached", id="the best rounds count against bare"),
    pytest.param("no-allocator", 40.0, 50.0, "missed", id="the median counts between allocators")])
def test_best_or_median(against, one, others, verdict):
    results = invented({(bare("B").name, "glibc"): 120.0, (model("B").name, "no-allocator"): 40.0})
    for run in results.campaign.runs:
        if (run.cell, run.allocator) == (model("B").name, EXPLICIT):
            run.metrics["ns_per_op"] = one if run.round == 1 else others
    assert verdicts(results)["B, 1 thread", against] == verdict


def test_a_row_whose_number_is_missing_says_so_and_ci_complains():
    results = invented(SLOW_BARE | {(model("A").name, EXPLICIT): 0})
    assert verdicts(results)["A, 1 thread", "bare"] == "none"
    assert targets.failures(targets.judged(results)) == ["A, 1 thread: not measured"]
    assert "| A, 1 thread |  |  | bare |" in table.markdown(results)


def test_parts_that_were_not_asked_for_are_no_rows():
    results = invented({}, parts=("threads",))
    assert {row.part for row, _ in targets.judged(results)} == {"threads"}
    assert [line for line in table.markdown(results).splitlines() if line.startswith("## ")] == [
        "## Threads and ranks", "## Memory", "## Rounds"]


def test_without_peers_there_is_no_row_about_them():
    results = invented({})
    for name in ("jemalloc", "mimalloc2"):
        del results.allocators[name]
    assert targets.BEST_PEER not in {row.against for row, _ in targets.judged(results)}


def test_a_tightened_memory_target_is_missed():
    results = invented({})
    assert {held.verdict for held in targets.memory(results)} == {"reached"}
    for run in results.campaign.runs:
        run.metrics["bytes_per_pending"] = 101.0
    assert {held.verdict for held in targets.memory(results)} == {"missed"}


# ---- The table, the exit code. --------------------------------------------------------------------------------------


def test_the_table_is_markdown_with_every_row_and_the_probe_beside_it():
    text = table.markdown(invented({}, noise=0.01))
    lines = text.splitlines()
    assert [row.what for row in targets.rows() if not any(line.startswith(f"| {row.what} |") for line in lines)] == []
    assert any(line.startswith("| row |") and line.endswith("| target | floor | verdict |") for line in lines)
    for line, after in zip(lines, lines[1:]):
        if line.startswith("|") and after.startswith("|"):
            assert line.count("|") == after.count("|"), after
    assert "| 2 | 0.4 | 0.90 | noisy |" in lines
    assert "nan" not in text and "inf" not in text.split()


def test_check_ends_with_one_below_a_floor_and_with_nothing_otherwise(tmp_path, capsys):
    assert commands.finish(invented(SLOW_BARE), tmp_path / "new" / "table.md", check=True) == 0
    assert (tmp_path / "new" / "table.md").read_text() == capsys.readouterr().out
    below = invented(SLOW_BARE | {(bare("C").name, "glibc"): 43})
    assert commands.finish(below, None, check=False) == 0
    with pytest.raises(Failure, match=r"C, 1 thread: 1\.07 of bare, the floor is 1\.1") as caught:
        commands.finish(below, None, check=True)
    assert caught.value.code == 1
