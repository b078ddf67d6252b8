"""The measured programs: each runs at every point of the catalogue, on each of its APIs, with hardly any repetition."""

import json
import os
import struct
import subprocess
from pathlib import Path
from statistics import median

import pytest
from hmalloc_lab.bench.catalogue import ALL_SHARED, EXPLICIT, NO_ALLOCATOR, PROFILES, Cell, cells

HERE = Path(__file__).resolve().parent
PROGRAMS = Path(os.environ.get("HMALLOC_BUILD", HERE.parents[1] / "build/release")) / "bench"

FIELDS = {"workload", "api", "threads", "ops", "ns_per_op", "seconds", "cpu_share", "vm_peak_kb", "vm_hwm_kb",
          "minor_faults", "malloc_library"}

# Most repetitions that a test makes.
TINY = {"seconds": 0.01, "objects": 1000, "rounds": 16, "iterations": 40, "steps": 4000, "bodies": 256, "repeats": 1,
        "pairs": 100, "writes": 100, "wait": 0.01, "slots": 1000, "replacements": 16}


def name_of(workload: str, api: str) -> str:
    return f"{workload}-{api}" if api else workload


CELLS = {cell.name: cell for profile in PROFILES for cell in cells(profile)
         if cell.family not in ("replay", "servers", "simulation")}
# HMalloc as published has the same interfaces, under other names.
PAPER = {EXPLICIT: "paper", ALL_SHARED: "paper-all-shared"}


def apis_of(cell: Cell) -> list[str]:
    return ["", *cell.apis, *(PAPER[api] for api in cell.apis if api in PAPER)]


EXECUTABLES = sorted({(cell.workload, api) for cell in CELLS.values() for api in apis_of(cell)})
executables = pytest.mark.parametrize("workload, api", EXECUTABLES, ids=[name_of(*each) for each in EXECUTABLES])


def run(program: str, *more, **environment) -> subprocess.CompletedProcess:
    """program: with arguments, "threadtest --size 64"; more: further ones."""
    name, *arguments = program.split()
    own = {key: value for key, value in os.environ.items() if not key.startswith(("LD_", "HMALLOC_"))}
    return subprocess.run([PROGRAMS / name, *arguments, *map(str, more)], env=own | environment, capture_output=True,
                          text=True, timeout=300)


def measure(program: str, *more, **environment) -> dict:
    done = run(program, *more, **environment)
    assert (done.returncode, done.stderr) == (0, ""), done
    assert done.stdout.count("\n") == 1 and done.stdout.endswith("\n"), done.stdout
    return json.loads(done.stdout)


def tiny_arguments(cell: Cell, latency: Path) -> list[str]:
    words = []
    repeat = {key: min(value, TINY.get(key, value)) for key, value in cell.repeat.items()}
    point = {key: repeat["seconds"] / 16 if key == "every" else value for key, value in cell.point.items()}
    for key, value in {**point, **repeat}.items():
        if key != "arenas":
            words += [f"--{key}", str(latency if key == "latency" else value)]
    return words


# ---- What they print. -----------------------------------------------------------------------------------------------

@executables
def test_every_point_of_the_catalogue_gives_one_whole_result(workload, api, tmp_path):
    for cell in CELLS.values():
        if cell.workload != workload or api not in apis_of(cell):
            continue
        result = measure(name_of(workload, api), *tiny_arguments(cell, tmp_path / "latency"))
        assert FIELDS <= result.keys(), cell.name
        assert result["workload"] == workload
        assert result["api"] == (api or "malloc")
        assert result["threads"] == cell.point.get("threads", result["threads"])
        assert cell.metric.startswith("latency") or result[cell.metric] >= 0
        assert result["vm_peak_kb"] >= result["vm_hwm_kb"] > 0 and result["minor_faults"] > 0
        if workload != "nothing":
            assert result["seconds"] > 0 and 0 < result["cpu_share"] <= 1.01
            assert result["ns_per_op"] == pytest.approx(result["seconds"] / result["ops"] * 1e9, rel=1e-3, abs=1e-3)
        expected = {"": "libc.so", NO_ALLOCATOR: "libc.so", PAPER[EXPLICIT]: "libhmalloc_paper.so",
                    PAPER[ALL_SHARED]: "libhmalloc_paper.so"}.get(api, "libhmalloc.so")
        assert expected in result["malloc_library"]
        if workload == "linux-false-sharing":
            sizes, costs = zip(*result["series"])
            assert list(sizes) == sorted(sizes) and (sizes[0], sizes[-1]) == (3, 52) and len(sizes) > 10
            assert min(costs) > 0


# ---- What they refuse. ----------------------------------------------------------------------------------------------

@executables
@pytest.mark.parametrize("wrong", ["unknown", "negative", "word", "no value", "no name", "repeated", "trailing"])
def test_nonsense_is_refused_in_one_line(workload, api, wrong):
    cell = next(cell for cell in CELLS.values() if cell.workload == workload)
    name = f"--{next(key for key, value in {**cell.point, **cell.repeat}.items() if not isinstance(value, str))}"
    arguments = {"unknown": ["--nonsense", "1"], "negative": [name, "-1"], "word": [name, "many"], "no value": [name],
                 "no name": ["64"], "repeated": [name, "1", name, "1"], "trailing": [name, "16x"]}[wrong]
    done = run(name_of(workload, api), *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(name_of(workload, api) + ": ") and done.stderr.count("\n") == 1, done.stderr


@pytest.mark.parametrize("arguments", [
    "pairs --pattern sideways", "pairs --size 17", "pairs --seconds nan", "ring --pin 2", "larson --min 9 --max 8",
    "larson --every 1", "producer-consumer --threads 1",
    "producer-consumer --threads 9 --rounds 7", "threadtest --threads 0", "shbench --iterations 1e3",
    "idle --threads 99999999999", "linux-workers --mode fibres", "linux-workers --threads 2000",
    "linux-successors --rounds 0", "linux-successors --objects 1", "linux-false-sharing --aligned 2",
    "linux-false-sharing --writes 7", "ar-random --threads 9 --steps 8", "vvmalloc --workload 4", "unequal --threads 17",
    "unequal --repeats 0", "barnes-hut --bodies 1", "barnes-hut --steps 0", "exchange --size 7", "exchange --threads 1",
    "exchange --shape round", "exchange --shape asymmetric --threads 3"])
def test_values_that_make_no_sense_are_refused(arguments):
    done = run(arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done


# ---- Whose memory it is. --------------------------------------------------------------------------------------------

SHARED = {"ring", "exchange", "producer-consumer", "larson", "footprint"}  # as the HMalloc paper's Table 1 has it
BOTH = {"passive-false"}


@executables
def test_explicit_programs_ask_for_the_memory_of_the_table(workload, api):
    symbols = subprocess.run(["nm", "-D", "--undefined-only", PROGRAMS / name_of(workload, api)], capture_output=True,
                             text=True, check=True).stdout.split()
    door = "hmp" if api in PAPER.values() else "hm"
    used = {kind for kind in ("local", "shared") if any(symbol.startswith(f"{door}_{kind}_") for symbol in symbols)}
    if api in ("", NO_ALLOCATOR):
        assert used == set()
    elif api in (ALL_SHARED, PAPER[ALL_SHARED]) or workload in SHARED:
        assert used == {"shared"}
    else:
        assert used == ({"local", "shared"} if workload in BOTH else {"local"})


@pytest.fixture(scope="session")
def watch(tmp_path_factory):
    """Runs a workload under watch.c: its result, and the allocations and frees of a size that were seen."""
    folder = tmp_path_factory.mktemp("watch")
    library = folder / "watch.so"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", HERE / "watch.c", "-o", library], check=True)

    def measured(size, program, *more, **environment):
        result = measure(program, *more, LD_PRELOAD=str(library), WATCH_SIZE=str(size),
                         WATCH_FILE=str(folder / "seen"), **environment)
        return result, *map(int, (folder / "seen").read_text().split())

    return measured


# Of the allocations of a size: those that another thread frees.
@pytest.mark.parametrize("foreign, program", [
    (0, "threadtest --size 456 --threads 3 --objects 3000 --rounds 5"),
    (0, "linux-scalability --size 520 --threads 3 --objects 1000"),
    (0, "active-false --size 456 --threads 3 --pairs 50 --writes 10"),
    (0.5, "passive-false --size 456 --threads 3 --rounds 50 --writes 10"),
    (1, "producer-consumer --size 456 --threads 4 --rounds 30"),
    (1, "ring --size 256 --seconds 0.01"),
])
def test_operations_are_what_they_claim(watch, foreign, program):
    result, allocations, frees, foreign_frees, _ = watch(int(program.split()[2]), program)
    assert (allocations, frees, foreign_frees) == (result["ops"], result["ops"], result["ops"] * foreign)


def test_larson_hands_its_blocks_to_successors(watch):
    result, allocations, _, foreign_frees, _ = watch(
        200, "larson --min 200 --max 200 --slots 1000 --steps 2000 --threads 2 --seconds 0.02")
    assert allocations == result["ops"] + 2 * 1000
    assert result["generations"] > 2
    # A life of 2000 steps replaces 86 % of 1000 inherited blocks.
    assert foreign_frees == pytest.approx(0.86 * 1000 * (result["generations"] - 2), rel=0.1)


def test_largetest_allocates_its_large_blocks(watch):
    result, allocations, frees, foreign_frees, _ = watch(65536, "largetest --iterations 50 --threads 2")
    assert (allocations, frees, foreign_frees) == (100, 100, 0)
    assert result["ops"] == 101 * 100


@pytest.mark.parametrize("threads", [1, 2])
def test_churn_keeps_as_many_blocks_as_it_is_told(watch, threads):
    result, allocations, frees, foreign_frees, _ = watch(1, f"churn --max 1 --live 70 --steps 500 --threads {threads}")
    assert (allocations, frees, foreign_frees, result["ops"]) == (570 * threads, 570 * threads, 0, 570 * threads)


@pytest.mark.parametrize("threads", [1, 2])
def test_buffers_are_replaced_and_every_page_is_touched(watch, threads):
    kilobytes = 2048
    result, allocations, frees, foreign_frees, _ = watch(
        kilobytes * 1024, f"buffers --blocks 8 --min {kilobytes} --max {kilobytes} --replacements 60 --threads {threads}")
    assert (allocations, frees, foreign_frees, result["ops"]) == (60, 60, 0, 60)
    assert result["vm_hwm_kb"] > 8 * kilobytes  # of one thread: two need not live at the same time


@pytest.mark.parametrize("size, calls", [(0, 0), (40, 1)])
def test_nothing_calls_malloc_only_when_asked(watch, size, calls):
    result, allocations, _, _, seen = watch(40, f"nothing --size {size}")
    assert (allocations, seen, result["ops"]) == (calls, calls, calls)


@pytest.mark.parametrize("program", ["active-false --pairs 100", "passive-false --rounds 100"])
def test_every_byte_is_written_as_often_as_asked(program):
    # A core stores hardly two bytes a cycle, one by one; under load it takes longer, never less.
    assert measure(f"{program} --size 8 --writes 200000")["seconds"] > 100 * 8 * 200000 * 0.1e-9


# ---- Latency samples. -----------------------------------------------------------------------------------------------

def samples(path: Path) -> tuple[list[int], list[int]]:
    """Nanoseconds of allocations, and of frees."""
    words = struct.unpack(f"<{path.stat().st_size // 4}I", path.read_bytes())
    return [word for word in words if word < 1 << 31], [word & 0x7FFF_FFFF for word in words if word >= 1 << 31]


LATENCY = sorted({(cell.workload, api) for cell in CELLS.values() if "latency" in cell.point
                  for api in ("", *cell.apis)})


@pytest.mark.parametrize("workload, api", LATENCY, ids=[name_of(*each) for each in LATENCY])
def test_latency_samples_of_both_kinds(workload, api, tmp_path):
    path = tmp_path / "latency"
    cell = next(cell for cell in CELLS.values() if cell.workload == workload and "latency" in cell.point)
    result = measure(name_of(workload, api), *tiny_arguments(cell, path))
    allocations, frees = samples(path)
    for kind in (allocations, frees):
        assert 1 <= median(kind) < 100_000
        # Up to 2000 blocks a thread are there before the first operation.
        expected = min(result["ops"] / 16, 2 * 65536)
        assert 0.7 * expected < len(kind) < 1.3 * expected + 250
    assert 1 <= result["clock_ns"] < 10_000


def drifting(tmp_path, options: str) -> dict:
    return measure(f"larson --slots 100 --steps 1000 {options} --latency", tmp_path / "latency")


def test_a_long_run_says_how_it_drifts(tmp_path):
    result = drifting(tmp_path, "--threads 2 --seconds 0.5 --every 0.05")
    for name in ("malloc_p999_ns", "free_p999_ns", "longest_ns", "rss_kb"):
        times, values = zip(*result[f"every_{name}"])
        assert len(values) >= 8 and list(times) == sorted(times) and min(values) > 0
        quarter = len(values) // 4
        drift = sorted(values[-quarter:])[quarter // 2] / sorted(values[:quarter])[quarter // 2]
        assert result[f"drift_{name}"] == pytest.approx(drift)


def test_a_run_that_is_too_short_for_a_drift_goes_on(tmp_path):
    result = drifting(tmp_path, "--seconds 0.001 --every 0.02")
    assert len(result["every_rss_kb"]) == 4 and result["drift_rss_kb"] > 0


def test_latency_tells_allocations_from_frees(watch, tmp_path):
    watch(456, "threadtest --size 456 --objects 1000 --rounds 3 --latency", tmp_path / "latency", WATCH_SPIN_NS="20000")
    allocations, frees = samples(tmp_path / "latency")
    assert min(allocations) >= 20_000 > median(frees)


def test_latency_samples_are_bounded_and_from_the_whole_run(watch, tmp_path):
    # The last quarter of the allocations is slow: four times as many as there is room for.
    calls = 4 * 65536 * 16
    watch(456, f"threadtest --size 456 --objects 64 --rounds {calls // 64} --latency", tmp_path / "latency",
          WATCH_SPIN_NS="500", WATCH_SPIN_AFTER=str(calls * 3 // 4))
    allocations, frees = samples(tmp_path / "latency")
    assert len(allocations) == len(frees) == 65536
    assert sum(sample >= 500 for sample in allocations) / 65536 == pytest.approx(0.25, abs=0.03)


def test_samples_that_cannot_be_written_fail_in_one_line(tmp_path):
    done = run("threadtest --objects 10 --rounds 1 --latency", tmp_path / "no" / "folder")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
