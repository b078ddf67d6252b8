"""The model programs: one answer whatever the engine's options, and one line for what makes no sense.  Of ranks:
mpi_test.py."""

import itertools
import json
import re

import programs
import pytest
from programs import ROOT, model

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


def start(words: str):
    name, *options = words.split()
    return programs.run(model(name), *options)


def answer(words: str) -> tuple:
    """What must not depend on how a simulation is run."""
    done = start(f"{words} --json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    return tuple(said[key] for key in ("digest", "events", "sent", "dropped", "statistics", "derived"))


@pytest.mark.parametrize("name", MODELS)
def test_options_of_the_engine_change_no_answer(name):
    expected = answer(f"{MODELS[name]} --queue heap --allocator malloc")
    allocators = itertools.cycle(ALLOCATORS)
    for threads, sync, queue, partition in itertools.product(
            (1, 2, 4, 8), ("windows", "neighbours"), ("wheel", "heap"), ("blocks", "round-robin", "random")):
        how = f"--threads {threads} --oversubscribe --sync {sync} --queue {queue} --partition {partition}"
        how += f" --allocator {next(allocators)}"
        assert answer(f"{MODELS[name]} {how}") == expected, how


@pytest.mark.parametrize("name, other", [
    ("phold", "--remote 0.3"), ("pcs", "--channels 5"), ("airport", "--landing 9"), ("phold", "--generator philox"),
    ("ties", "--ties hashed"), ("pcs", "--seed 2")])
def test_what_is_asked_changes_the_answer(name, other):
    assert answer(MODELS[name])[0] != answer(f"{MODELS[name]} {other}")[0]


def test_plain_phold_is_the_varied_one_in_forty_lines():
    """A state that nobody reads makes the program take its other class."""
    assert answer(MODELS["phold"]) == answer(f"{MODELS['phold']} --state 8")
    lines = (ROOT / "pdes" / "models" / "phold.cc").read_text().splitlines()
    assert sum(bool(line) and not line.startswith("//") for line in lines) <= 40


@pytest.mark.parametrize("words", [
    "pcs --portables 0", "airport --planes 0", "phold --end 0", "pcs --channels 0", "phold --remote 0 --lookahead 1",
    "airport --flight 0.5", "pcs --call 0", "pcs --width 1 --height 2 --end 20", "airport --width 2 --height 1 --end 20"])
def test_extremes_that_make_sense(words):
    name, *options = words.split()
    small = "" if name == "phold" else "--width 4 --height 4"
    words = f"{name} {small} {' '.join(options)}"
    assert answer(f"{words} --threads 2") == answer(words)


@pytest.mark.parametrize("words, said", [
    ("phold --lps 0", "lps"), ("phold --remote 1.5", "remote"), ("phold --remote nan", "remote"),
    ("phold --payload 9", "'9', not one of 8, 16"), ("phold --payload 8:x", "8:x"),
    ("phold --lookahead 2", "mean delay"), ("phold --mean -1", "mean"), ("phold --distribution normal", "normal"),
    ("airport --flight 0.4", "flight"), ("airport --width 0", "width"), ("airport --landing -1", "landing"),
    ("pcs --move 0", "move"), ("pcs --next-call 0", "next-call"), ("pcs --height 100000", "height")])
def test_what_makes_no_sense_is_one_line(words, said):
    done = start(words)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(rf"[^\n]*{re.escape(said)}[^\n]*\n", done.stderr)
