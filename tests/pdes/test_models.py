"""The model programs: one answer whatever the engine's options, and one line for what makes no sense."""

import itertools
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("HMALLOC_BUILD", ROOT / "build" / "release"))
# hmalloc would take HMALLOC_BUILD for an option of its own, and say that it has none of that name.
CLEAN = {name: value for name, value in os.environ.items() if name != "HMALLOC_BUILD"}
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}

# Small ones: the model and the options that make it so.  Remote events, ties, hand-offs and reserve channels all occur.
MODELS = {
    "phold": "phold --lps 300 --events-per-lp 3 --end 20",
    "payloads": "phold --lps 200 --end 20 --payload 8:3,64:2,1024:1 --imbalance 0.5 --state 100",
    "bimodal": "phold --lps 200 --end 30 --distribution bimodal",
    "ties": "phold --lps 200 --end 20 --distribution ties --lookahead 1",
    "pcs": "pcs --width 12 --height 10 --portables 12 --channels 4 --reserve 1 --move 300 --lookahead 5 --end 400",
    "airport": "airport --width 12 --height 10 --planes 8 --end 60",
    "others": "phold --lps 200 --end 20 --distribution ties --ties hashed --generator philox",
}
ALLOCATORS = ("hmalloc", "malloc", "free-list", "hmalloc --blocks dense", "hmalloc --blocks lines")


def start(words: str, ranks: int = 0) -> subprocess.CompletedProcess:
    model, *options = words.split()
    launcher = ["mpirun", "-n", str(ranks)] if ranks else []
    return subprocess.run([*launcher, BUILD / "pdes" / f"hmalloc-pdes-{model}", *options], env={**CLEAN, **MPI},
                          capture_output=True, text=True, timeout=120)


def run(words: str, ranks: int = 0) -> dict:
    done = start(f"{words} --json", ranks)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def answer(words: str, ranks: int = 0) -> tuple:
    """What must not depend on how a simulation is run."""
    result = run(words, ranks)
    return tuple(result[key] for key in ("digest", "events", "sent", "dropped", "statistics", "derived"))


@pytest.mark.parametrize("model", MODELS)
def test_options_of_the_engine_change_no_answer(model):
    expected = answer(f"{MODELS[model]} --queue heap --allocator malloc")
    allocators = itertools.cycle(ALLOCATORS)
    for threads, sync, queue, partition in itertools.product(
            (1, 2, 4, 8), ("windows", "neighbours"), ("wheel", "heap"), ("blocks", "round-robin", "random")):
        how = f"--threads {threads} --oversubscribe --sync {sync} --queue {queue} --partition {partition}"
        how += f" --allocator {next(allocators)}"
        assert answer(f"{MODELS[model]} {how}") == expected, how


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="no mpirun")
@pytest.mark.parametrize("model", ["payloads", "pcs", "airport"])
def test_ranks_change_no_answer(model):
    expected = answer(MODELS[model])
    for ranks, how in ((2, "--threads 1"), (2, "--threads 2 --partition random"), (4, "--threads 1 --queue heap")):
        assert answer(f"{MODELS[model]} {how}", ranks) == expected, (ranks, how)


@pytest.mark.parametrize("model, other", [
    ("phold", "--remote 0.3"), ("pcs", "--channels 5"), ("airport", "--landing 9"), ("phold", "--generator philox"),
    ("ties", "--ties hashed"), ("pcs", "--seed 2")])
def test_what_is_asked_changes_the_answer(model, other):
    assert run(MODELS[model])["digest"] != run(f"{MODELS[model]} {other}")["digest"]


def test_plain_phold_is_the_varied_one():
    """A state that nobody reads makes the program take its other class."""
    def of(words):
        result = run(words)
        return result["digest"], result["events"], result["sent"], result["dropped"]
    assert of(MODELS["phold"]) == of(f"{MODELS['phold']} --state 8")


def test_plain_phold_is_at_most_forty_lines():
    lines = (ROOT / "pdes" / "models" / "phold.cc").read_text().splitlines()
    assert sum(bool(line) and not line.startswith("//") for line in lines) <= 40


def test_population_of_plain_phold_is_constant():
    result = run("phold --lps 500 --events-per-lp 4 --end 30")
    assert result["dropped"] == 2000
    assert 2000 * 28 < result["events"] < 2000 * 31


@pytest.mark.parametrize("model", ["phold --lps 3", "pcs --width 1 --height 2", "airport --width 2 --height 1"])
def test_more_threads_than_lps(model):
    assert answer(f"{model} --end 20 --threads 8 --oversubscribe") == answer(f"{model} --end 20")


@pytest.mark.parametrize("model", ["pcs --portables 0", "airport --planes 0", "phold --end 0", "pcs --channels 0",
                                   "phold --remote 0 --lookahead 1", "airport --flight 0.5", "pcs --call 0"])
def test_extremes_that_make_sense(model):
    small = "" if model.startswith("phold") else " --width 4 --height 4"
    assert answer(f"{model}{small} --threads 2") == answer(f"{model}{small}")


@pytest.mark.parametrize("words, said", [
    ("phold --lps 0", "lps"), ("phold --remote 1.5", "remote"), ("phold --remote nan", "remote"),
    ("phold --payload 9", "'9', not one of 8, 16"), ("phold --payload 8:x", "8:x"),
    ("phold --lookahead 2", "mean delay"), ("phold --mean -1", "mean"), ("phold --distribution normal", "normal"),
    ("phold --threads 2 --lookahead 0", "lookahead"),
    ("airport --flight 0.4", "flight"), ("airport --width 0", "width"), ("airport --landing -1", "landing"),
    ("pcs --move 0", "move"), ("pcs --next-call 0", "next-call"), ("pcs --height 100000", "height")])
def test_what_makes_no_sense_is_one_line(words, said):
    done = start(words)
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stdout == ""
    assert re.fullmatch(rf"[^\n]*{re.escape(said)}[^\n]*\n", done.stderr)


def test_template_is_a_project_by_itself(tmp_path):
    def command(*words):
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, env=CLEAN)
    prefix, source, build = tmp_path / "prefix", tmp_path / "template", tmp_path / "build"
    shutil.copytree(ROOT / "pdes" / "models" / "template", source)
    command("cmake", "--install", BUILD, "--prefix", prefix)
    command("cmake", "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}")
    command("cmake", "--build", build)
    seen = set()
    for how in ("--threads 1", "--threads 2", "--threads 3 --sync neighbours"):
        words = [build / "my-model", "--end", "50", "--json", *how.split()]
        seen.add(json.loads(subprocess.run(words, check=True, env=CLEAN, capture_output=True).stdout)["digest"])
    assert len(seen) == 1
