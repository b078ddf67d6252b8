"""hmalloc bench mixes: what the lot draws, what the program makes of it, and what is said of the results."""

import json
import os
import subprocess
import time
from statistics import mean

import pytest
from conftest import RELEASE
from hmalloc_lab.bench import store
from hmalloc_lab.bench.mixes import cells, commands, table
from hmalloc_lab.bench.results import Results
from hmalloc_lab.bench.store import AllocatorRow, Campaign, Run

STEPS = 400_000


def run(*arguments, **environment) -> subprocess.CompletedProcess:
    own = {key: value for key, value in os.environ.items() if not key.startswith(("LD_", "HMALLOC_"))}
    words = [RELEASE / "bench" / "mix", *([] if "--idle" in arguments else ["--idle", "0.01"]), *map(str, arguments)]
    return subprocess.run(words, env=own | environment, capture_output=True, text=True, timeout=300, check=False)


def play(mix: int, *arguments) -> dict:
    done = run("--mix", mix, "--steps", STEPS, *arguments)
    assert (done.returncode, done.stderr) == (0, ""), done
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def played() -> list[dict]:
    return [play(mix) for mix in range(1, 11)]


# ---- What a mix is. -------------------------------------------------------------------------------------------------


def test_a_number_is_a_mix(played):
    assert play(3)["digest"] == played[2]["digest"]
    assert len({each["digest"] for each in played}) == len(played)


def test_each_thread_has_calls_of_its_own():
    assert play(3, "--threads", 2)["digest"] not in (0, play(3)["digest"])  # 0: of two that are equal


def test_most_requests_are_small_and_most_bytes_are_not(played):
    assert min(each["small_share"] for each in played) > 0.85
    assert max(each["small_share"] for each in played) < 0.999
    assert mean(each["small_byte_share"] for each in played) < 0.5


def test_most_blocks_die_at_once_and_lifetimes_span_six_decades(played):
    assert min(each["at_once_share"] for each in played) > 0.5
    assert max(each["at_once_share"] for each in played) < 0.99
    assert {each["decades"] for each in played} == {6}


def test_large_blocks_last_longer_on_the_whole(played):
    small, large = (mean(each[f"{size}_at_once_share"] for each in played) for size in ("small", "large"))
    assert large < small - 0.1


def test_some_blocks_survive_and_most_memory_does_not(played):
    assert min(each["survivors"] for each in played) > 10
    assert mean(each["survivors_kb"] / each["live_kb"] for each in played) < 0.6


@pytest.mark.parametrize("percent", [0, 10, 50])
def test_so_many_blocks_are_handed_over(percent):
    assert play(5, "--threads", 4, "--handover", percent)["handed_over_share"] == pytest.approx(percent / 100, abs=0.01)


def test_memory_is_measured_against_what_is_live(played):
    for each in played:
        assert 0.9 < each["peak_over_live"] < 10
        assert 0.9 < each["held_over_live"] < 20
        assert each["left_over_live"] * each["survivors_kb"] == pytest.approx(each["left_kb"], rel=1e-3)
        assert each["left_kb"] <= each["peak_over_live"] * each["live_kb"] * 1.1 + 4096


def test_idleness_is_not_timed():
    begin = time.monotonic()
    found = play(2, "--idle", 2, "--threads", 2)
    assert found["seconds"] < time.monotonic() - begin - 2
    assert found["cpu_ns_per_op"] <= 2.05 * found["ns_per_op"]


def test_a_block_given_twice_is_noticed(library):
    done = run("--mix", 1, "--steps", STEPS, LD_PRELOAD=str(library("twice")))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("mix: a block of ") and done.stderr.endswith(" changed while it was live\n")


@pytest.mark.parametrize("wrong", [
    ("--handover", 5), ("--handover", 101, "--threads", 2), ("--steps", 999), ("--threads", 5, "--steps", 4999),
    ("--mix", 0), ("--threads", 0), ("--mix", "many")])
def test_nonsense_is_refused_in_one_line(wrong):
    done = run(*wrong)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done


# ---- What is drawn. -------------------------------------------------------------------------------------------------


def test_a_seed_draws_the_same_cells_again_and_another_seed_draws_others():
    names = [cell.name for cell in cells.drawn(7, 10)]
    assert names == [cell.name for cell in cells.drawn(7, 10)]
    assert not {name.split()[1] for name in names} & {cell.name.split()[1] for cell in cells.drawn(8, 10)}
    assert names[:4] == [cell.name for cell in cells.drawn(7, 10, steps=500_000)][:4]


def test_ten_mixes_have_every_hand_over_and_one_to_64_threads():
    drawn = cells.drawn(1, 10)
    assert len({cell.name for cell in drawn}) == 20 and len({cell.point["mix"] for cell in drawn}) == 10
    assert sorted(cell.threads for cell in drawn) == sorted([1] * 10 + list(cells.SEVERAL))
    assert {cell.point["handover"] for cell in drawn if cell.threads > 1} == {0, 10, 50}
    assert all("handover" not in cell.point for cell in drawn if cell.threads == 1)


def test_numbers_of_threads_can_be_asked_for():
    assert [cell.threads for cell in cells.drawn(1, 3, (1, 8))] == [1, 8] * 3


# ---- What is said of the results. -----------------------------------------------------------------------------------

NAMES = {"glibc": "system", "hmalloc": "hmalloc", "jemalloc": "peer"}


def invented(values: dict[str, list[float]], rounds: int = 3) -> Results:
    """values: by allocator, every metric in the first row, the second, ...; nothing where it failed."""
    plan = cells.drawn(1, 2)
    runs = []
    for number in range(1, rounds + 1):
        for name, of_rows in values.items():
            for cell, value in zip(plan, of_rows):
                if value:
                    runs.append(Run(number, cell.name, name, "", metrics=dict.fromkeys(table.METRICS, value)))
                else:
                    runs.append(Run(number, cell.name, name, "", store.FAILED, "it broke"))
    allocators = [AllocatorRow(name, NAMES[name], "1.2.3") for name in values]
    return Results(Campaign(1, "2026-11-24T09:00", "", "mixes", "hmalloc bench mixes", 42, rounds, {"CPU": "made up"}, plan,
                            allocators, [], runs))


def lines_of(text: str, name: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(f"| {name} ")]


def test_the_summary_is_the_geometric_mean_and_the_worst_row():
    text = table.summary(invented({"glibc": [10, 10, 10, 40], "hmalloc": [20, 10, 10, 10]}))
    every, one, several = lines_of(text, "hmalloc")
    assert every == "| hmalloc | 1.19, 2.00 | 1.19, 2.00 | 1.19, 2.00 | 1.19, 2.00 | 1.19, 2.00 |"
    assert one.startswith("| hmalloc | 1.41, 2.00 |") and several.startswith("| hmalloc | 1.00, 1.00 |")
    assert lines_of(text, "glibc")[0].startswith("| glibc | 1.41, 4.00 |")
    assert text.index("| hmalloc |") < text.index("| glibc |")  # who is fastest comes first


def test_whoever_failed_has_a_star_and_a_line():
    text = table.markdown(invented({"glibc": [10, 10, 10, 10], "jemalloc": [10, 10, 10, 0]}))
    assert lines_of(text, "jemalloc *")[0].startswith("| jemalloc * | 1.00, 1.00 |")
    assert "it broke" in text


def test_the_file_says_how_to_draw_it_again_and_who_took_part():
    text = table.markdown(invented({"glibc": [10, 20, 10, 30], "hmalloc": [20, 10, 15, 30]}))
    for wanted in ("hmalloc bench mixes", "--seed 42", "| CPU | made up |", "| glibc | system | 1.2.3 |", "## Time",
                   "## CPU time", "## Memory at its peak", "## Memory over time", "## Memory left after idleness",
                   "| **10.0 ±0%** (1.00) | 20.0 ±0% (2.00) |"):
        assert wanted in text, wanted


def test_a_campaign_without_a_result_ends_with_one(tmp_path, capsys):
    assert commands.finish(invented({"glibc": [10] * 4}), tmp_path / "new" / "mixes.md") == 0
    assert (tmp_path / "new" / "mixes.md").read_text().startswith("# Production mixes, 2026-11-24\n")
    assert commands.finish(invented({"glibc": [0] * 4}), None) == 1
    assert "glibc" in capsys.readouterr().out


# ---- From the command line. -----------------------------------------------------------------------------------------


def test_a_campaign_draws_its_seed_and_says_it(bench, tmp_path):
    out = tmp_path / "mixes.md"
    small = ("mixes", "--mixes", 1, "--rounds", 1, "--steps", 100_000, "--threads", "1,2", "--allocators", "glibc,hmalloc")
    done = bench(*small, "--out", out)
    assert done.returncode == 0, done
    seed = done.stderr.split("hmalloc: seed ")[1].split(";")[0]
    assert lines_of(done.stdout, "hmalloc") and lines_of(done.stdout, "glibc")
    text = out.read_text()
    assert f"`--seed {seed}`" in text
    time = text[text.index("## Time"):text.index("## CPU time")]
    drawn = [(str(cell.point["mix"]), str(cell.threads)) for cell in cells.drawn(int(seed), 1, (1, 2))]
    assert [tuple(line.split(" | ")[:2]) for line in time.splitlines() if line[2:3].isdecimal()] == [
        (f"| {mix}", threads) for mix, threads in drawn]
    assert bench("show").stdout == text


@pytest.mark.parametrize("wrong, said", [
    (["--threads", "0"], "expected numbers from 1 to 1024"), (["--threads", "2,x"], "expected numbers from 1 to 1024"),
    (["--threads", "200", "--steps", "100000"], "fewer than 1000 for each thread"), (["--mixes", "0"], "--mixes"),
    (["--seed", "-1"], "--seed"), (["--allocators", "no-allocator"], "none of these can be preloaded"),
    (["--allocators", "nobody"], "no allocator nobody here"), (["--resume", "--seed", "1"], "--resume goes on")])
def test_wrong_arguments_are_refused_in_one_line(bench, wrong, said):
    done = bench("mixes", *wrong)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
    assert said in done.stderr
