"""hmalloc bench cores: what is simulated is the same in every run, and what is said of the results."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from conftest import RELEASE
from hmalloc_lab.bench import store
from hmalloc_lab.bench.cores import cells, commands, simulator, table
from hmalloc_lab.bench.results import Results
from hmalloc_lab.bench.store import AllocatorRow, Campaign, Run

simulated = pytest.mark.skipif(
    shutil.which("qemu-x86_64") is None or not (RELEASE / "hmalloc-cores.so").is_file(), reason="no qemu-user, or not x86-64")
OPERATIONS = 256


@pytest.fixture
def simulate(built, glibc, tmp_path):
    """What the simulator counts, per pair, of one pattern; by default on glibc."""
    hmalloc = AllocatorRow("hmalloc", "hmalloc", "", str((RELEASE / "libhmalloc.so").resolve()))

    def run(pattern: str, cores: int, name: str = "glibc", operations: int = OPERATIONS) -> dict:
        cell = cells.chosen([pattern], [cores], operations)[0]
        row = {"glibc": glibc, "hmalloc": hmalloc}[name]
        done = subprocess.run(simulator.command(built, row, cell, tmp_path / "counted"), capture_output=True, text=True,
                              env={"PATH": os.environ["PATH"]}, timeout=300, check=False)
        assert (done.returncode, done.stderr) == (0, ""), done
        said = json.loads(done.stdout)
        assert said["malloc_library"] == str(row.library) or name == "glibc"
        return simulator.read(tmp_path / "counted", said["ops"])

    return run


# ---- What is counted. -----------------------------------------------------------------------------------------------


@simulated
@pytest.mark.parametrize("name", ["glibc", "hmalloc"])
@pytest.mark.parametrize("pattern", ["random", "larson", "linux-scalability"])
def test_two_runs_agree_to_the_third_digit_beside_a_busy_program(simulate, pattern, name):
    first = simulate(pattern, 8, name)
    with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as busy:
        try:
            second = simulate(pattern, 8, name)
        finally:
            busy.kill()
    assert first.pop("sites") == second.pop("sites")
    assert first == pytest.approx(second, rel=5e-4, abs=5e-4)


@simulated
@pytest.mark.parametrize("pattern", cells.PATTERNS)
def test_one_core_disturbs_nobody(simulate, pattern):
    found = simulate(pattern, 1)
    assert (found["disturbances"], found["whole_disturbances"], found["sites"]) == (0, 0, [])
    assert found["instructions"] > 20 and found["whole_instructions"] > found["instructions"]


@simulated
def test_a_hit_of_malloc_and_free_is_as_long_as_the_goldens_say(simulate):
    """16 and 36 instructions, and five for the calls and their way through the program's table of addresses."""
    assert simulate("own", 4, "hmalloc")["instructions"] == pytest.approx(57, abs=0.1)


@simulated
def test_blocks_that_are_handed_on_move_lines_and_own_ones_do_not(simulate):
    assert simulate("ring", 4)["whole_transfers"] > 1 > 0.01 > simulate("own", 4, "hmalloc")["whole_transfers"]


@simulated
def test_the_allocators_that_take_a_lock_lock_and_hand_it_on(simulate):
    found = simulate("ring", 8)
    assert found["locked"] > 1 and 0 < found["hand_offs"] < found["disturbances"] / 4
    assert simulate("own", 8, "hmalloc")["locked"] == 0


@simulated
def test_the_more_events_leave_their_core_the_more_lines_move(simulate):
    """Those of the events themselves, too, which whoever executes them reads."""
    assert simulate("phold-0", 8)["disturbances"] == 0
    moved = [simulate(pattern, 8)["whole_disturbances"]
             for pattern in ("pcs", "phold-25", "phold-50", "phold-75", "phold-100")]
    assert moved == sorted(moved)
    assert moved[0] < moved[1] / 5


@simulated
def test_the_functions_that_move_lines_are_named(simulate):
    found = simulate("random", 16, "hmalloc")["sites"]
    assert max(found, key=lambda site: site[2] + site[3])[0] == "free"  # which reads the states of others' blocks
    unnamed = [function for function, *_ in simulate("linux-scalability", 16, "hmalloc")["sites"] if function.endswith(":")]
    assert not unnamed  # those in an anonymous namespace too
    assert {whose for _, whose, *_ in found} <= {"allocator's", "program's"}


@simulated
def test_half_of_two_sockets_is_far(simulate):
    found = simulate("ring", 2)
    assert found["far"] == pytest.approx(found["disturbances"])
    found = simulate("ring", 16)
    assert 0 < found["whole_far"] < found["whole_disturbances"] / 2


@simulated
def test_glibc_has_arenas_for_as_many_cpus_as_there_are_cores(simulate):
    """Eight for each: more threads than eight for each real CPU would share them, and their lines."""
    assert simulate("own", 64, operations=64)["disturbances"] == 0


@simulated
def test_the_machine_that_a_program_sees_is_the_simulated_one():
    plugin = f"{RELEASE / 'hmalloc-cores.so'},cores=48,out=/dev/null"
    asks = "import os, time; print(len(os.sched_getaffinity(0)), int(time.time()), os.getrandom(8).hex())"
    seen = {subprocess.run(["qemu-x86_64", "-plugin", plugin, sys.executable, "-I", "-S", "-c", asks],
                           capture_output=True, text=True, timeout=300, check=True).stdout for _ in range(2)}
    assert len(seen) == 1
    assert seen.pop().startswith("48 1750000000 ")


@pytest.mark.parametrize("wrong", [("--pattern", "x"), ("--threads", "65"), ("--threads", "0"), ("--grain", "0"),
                                   ("--operations", "8"), ("--cores", "2")])
@pytest.mark.skipif(not (RELEASE / "bench" / "cores").is_file(), reason="not x86-64")
def test_the_program_refuses_nonsense_in_one_line(wrong):
    done = subprocess.run([RELEASE / "bench" / "cores", *wrong], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done


@simulated
@pytest.mark.parametrize("wrong", ["cores=65,out=x", "cores=0,out=x", "cores=4", "out=x", "cores=4,out=x,more=1"])
def test_the_simulator_refuses_nonsense_in_one_line(wrong):
    done = subprocess.run(["qemu-x86_64", "-plugin", f"{RELEASE / 'hmalloc-cores.so'},{wrong}", "/bin/true"],
                          capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
    assert done.stderr.startswith("hmalloc-cores: ")


# ---- What is said of it. --------------------------------------------------------------------------------------------


def invented(values: dict[str, float]) -> Results:
    """values: by allocator, its transfers on two cores; on one there are none; nothing where it failed."""
    plan = cells.chosen(["ring"], [1, 2], OPERATIONS)
    runs = []
    for name, value in values.items():
        for cell in plan:
            of_cores = value if cell.threads == 2 else 0.0
            metrics = dict.fromkeys([*table._COLUMNS, cells.METRIC], of_cores) | {"sites": [["free", "allocator's", value, 0.0]]}
            runs.append(Run(1, cell.name, name, "", metrics=metrics) if value else
                        Run(1, cell.name, name, "", store.FAILED, "it broke"))
    rows = [AllocatorRow(name, "hmalloc" if name == "hmalloc" else "peer", "1.2.3") for name in values]
    return Results(Campaign(1, "2026-11-24T09:00", "", "cores", "hmalloc bench cores", 0, 1, {}, plan, rows, [], runs))


def lines_of(text: str, name: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(f"| {name} ")]


def test_the_summary_is_over_the_best_of_the_others_on_the_most_cores():
    text = table.summary(invented({"glibc": 3.0, "hmalloc": 0.3, "jemalloc": 0.2}))
    assert "| ring, 2 |" in text
    assert lines_of(text, "hmalloc") == ["| hmalloc | 0.300 (1.50) |"]
    assert lines_of(text, "jemalloc") == ["| jemalloc | 0.200 (0.67) |"]


def test_the_file_says_that_it_is_simulated_and_has_every_number_of_cores_and_the_functions():
    text = table.markdown(invented({"glibc": 3.0, "hmalloc": 0.3, "jemalloc": 0}))
    assert "**Simulated, not timed.**" in text and "What the model leaves out" in text
    assert lines_of(text, "glibc")[1] == "| glibc | 0.000 | 3.000 |"
    assert lines_of(text, "jemalloc")[0] == "| jemalloc | - |" and "it broke" in text
    assert lines_of(text, "ring, 2") == ["| ring, 2 | `free` | allocator's | 0.300 | 0.000 |"]


def test_a_campaign_without_a_result_ends_with_one(tmp_path, capsys):
    assert commands.finish(invented({"glibc": 1.0}), tmp_path / "new" / "cores.md") == 0
    assert (tmp_path / "new" / "cores.md").read_text().startswith("# Many cores, simulated, 2026-11-24\n")
    assert commands.finish(invented({"glibc": 0}), None) == 1
    assert "glibc" in capsys.readouterr().out


# ---- From the command line. -----------------------------------------------------------------------------------------


@simulated
def test_a_campaign_runs_each_cell_once_and_is_shown_again(bench, tmp_path):
    out = tmp_path / "cores.md"
    done = bench("cores", "--cores", "2,1", "--patterns", "larson,own", "--operations", 64, "--allocators", "glibc,hmalloc",
                 "--out", out)
    assert done.returncode == 0, done
    assert "own, 2" in done.stdout and lines_of(done.stdout, "hmalloc")
    assert "None." in out.read_text().split("## Failures")[1]
    assert bench("show").stdout == out.read_text()


@pytest.mark.parametrize("wrong, said", [
    (["--cores", "0"], "expected numbers from 1 to 64"), (["--cores", "2,x"], "expected numbers from 1 to 64"),
    (["--cores", "65"], "expected numbers from 1 to 64"), (["--patterns", "ring,x"], "no such pattern"),
    (["--operations", "1"], "--operations"), (["--grain", "129"], "--grain"),
    (["--operations", "64", "--grain", "128"], "fewer than the 128 of one turn"),
    (["--allocators", "no-allocator"], "none of these can be preloaded"),
    (["--allocators", "nobody"], "no allocator nobody here"), (["--resume", "--cores", "2"], "--resume goes on")])
def test_wrong_arguments_are_refused_in_one_line(bench, wrong, said):
    done = bench("cores", *wrong)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
    assert said in done.stderr
