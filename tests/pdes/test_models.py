"""The model programs: one answer whatever the engine's options, and one line for what makes no sense.  Of ranks:
mpi_test.py."""

import itertools
import json
import re
import sys

import programs
import pytest
from programs import ROOT, model

# Small ones: the model and the options that make it so.  Remote events, ties, hand-offs and reserve channels all occur.
MODELS = {
    "phold": "phold --lps 300 --events-per-lp 3 --end 20",
    "payloads": "phold --lps 200 --end 20 --payload 8:3,64:2,1024:1 --imbalance 0.5 --state 100",
    "hot": "phold --lps 300 --events-per-lp 3 --end 20 --hot 10 --hot-turn 25",
    "bimodal": "phold --lps 200 --end 30 --distribution bimodal",
    "ties": "phold --lps 200 --end 20 --distribution ties --lookahead 1",
    "pcs": "pcs --width 12 --height 10 --portables 12 --channels 4 --reserve 1 --move 300 --lookahead 5 --end 400",
    "airport": "airport --width 12 --height 10 --planes 8 --end 60",
    "others": "phold --lps 200 --end 20 --distribution ties --ties hashed --generator philox",
}
# Theirs are fewer runs: library_test.cc has threads and synchronisations.
LIBRARY = {
    "jackson": "jackson --stations 30 --end 200 --warm-up 10",
    "closed": "closed --stations 30 --customers 80 --end 300 --warm-up 10",
    "epidemic": "epidemic --people 500 --contacts small-world --rewired 0.3 --end 60",
    "pandemic": "pandemic --width 6 --height 5 --residents 60 --passengers 5 --end 20",
    "torus": "network --width 5 --height 4 --load 0.9 --end 150 --buffers 2",
    "dragonfly": "network --shape dragonfly --traffic hard --end 100 --warm-up 9 --packets 9",
    "traffic": "traffic --cells 700 --segments 40 --cars 200 --end 60 --warm-up 9 --ties hashed",
    "arq": "arq --wires 20 --loss 0.3 --precision 0.1 --batch 10",
    "colonies": "colonies --colonies 30 --room 40 --end 30",
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


def test_load_moves_and_changes_no_answer():
    skewed = "phold --lps 2000 --end 60 --hot 10 --hot-turn 60"
    expected = answer(skewed)
    for threads, balance in itertools.product((1, 2, 3, 4), ("off", "threads")):
        how = f"{skewed} --threads {threads} --oversubscribe --balance {balance}"
        assert answer(how) == expected, how
        assert ("LPs moved to other threads" in start(how).stdout) == (threads > 1 and balance == "threads"), how


@pytest.mark.parametrize("name", LIBRARY)
def test_options_of_the_engine_change_no_answer_of_the_library(name):
    expected = answer(LIBRARY[name])
    for how in ("--threads 2 --queue heap --partition random", "--threads 3 --oversubscribe --sync neighbours --allocator malloc",
                "--threads 4 --oversubscribe --partition round-robin"):
        assert answer(f"{LIBRARY[name]} {how}") == expected, how


GRAPHS = pytest.mark.parametrize("name", ["pcs", "airport", *sorted(LIBRARY.keys() - {"jackson", "closed", "arq"})])
METIS = pytest.mark.skipif(not programs.has_metis(), reason="METIS is missing")


@METIS
@GRAPHS
def test_the_graph_of_the_lps_divided_among_threads_changes_no_answer(name):
    words = (MODELS | LIBRARY)[name]
    expected = answer(words)
    for how in "--threads 2", "--threads 3 --sync neighbours", "--threads 9 --balance off":
        assert answer(f"{words} {how} --oversubscribe --partition graph") == expected, how


@METIS
def test_a_graph_without_order_is_divided_where_it_is_thin(tmp_path):
    """A ring, numbered at random: of two halves, two of two hundred links."""
    edges = tmp_path / "edges"
    edges.write_text("".join(f"{n * 73 % 200} {(n + 1) * 73 % 200}\n" for n in range(200)))
    crossed = {}
    for partition in "blocks", "graph":
        done = start(f"epidemic --edges {edges} --threads 2 --oversubscribe --balance off --json --partition {partition}")
        crossed[partition] = json.loads(done.stdout)["crossed"]
    assert crossed["graph"] < 10 < crossed["blocks"]


@METIS
@pytest.mark.parametrize("threads", [1, 2])
def test_a_model_without_a_graph_cannot_be_divided_by_it(threads):
    for name in "phold", "jackson":
        done = start(f"{name} --partition graph --oversubscribe --threads {threads}")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"{name}: there is no graph to divide among threads: every LP may send to every other\n"


def test_a_machine_without_metis_says_so(monkeypatch):
    monkeypatch.setitem(programs.CLEAN, "HM_METIS_LIBRARY", "/nowhere")
    done = start("pcs --partition graph --threads 2 --oversubscribe")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("pcs: METIS cannot be loaded as HM_METIS_LIBRARY says: /nowhere: cannot open ")


@pytest.mark.parametrize("name, other", [
    ("phold", "--remote 0.3"), ("pcs", "--channels 5"), ("airport", "--landing 9"), ("phold", "--generator philox"),
    ("ties", "--ties hashed"), ("pcs", "--seed 2"), ("jackson", "--servers 2"), ("closed", "--skew 1"),
    ("epidemic", "--rewired 0.2"), ("epidemic", "--contacts star"), ("pandemic", "--flight 0.5"), ("torus", "--buffers 3"),
    ("dragonfly", "--links 3"), ("traffic", "--dawdle 0.1"),
    ("arq", "--patience 4"), ("arq", "--precision 0.2"), ("colonies", "--death 0.9")])
def test_what_is_asked_changes_the_answer(name, other):
    words = (MODELS | LIBRARY)[name]
    assert answer(words)[0] != answer(f"{words} {other}")[0]


def test_a_model_says_what_it_found_when_it_ends_itself():
    """Means over time, quantiles, an interval, and that the model ended the run."""
    shown = start("arq --wires 20 --precision 0.1 --batch 10").stdout
    assert re.search(r"virtual time +\d+\S* of 100000, ended by the model\n", shown)
    assert re.search(r"  cancelled +[\d,]+\n", shown)
    assert re.search(r"took +\d+: mean 2\.\d+, from 2 to \d+; 50, 90, 99 %: 2(\.0\d)?, 5(\.\d+)?, \S+\n", shown)
    assert re.search(r"mean_time +2\.\d+, within 0\.\d+ with 95 % confidence; \d+ batches of 10\n", shown)
    assert re.search(r"retrying +mean over time 0\.\d+, from 0 to 1\n", shown)
    said = json.loads(start("arq --wires 20 --precision 0.1 --batch 10 --json").stdout)
    assert said["ended_by_model"] and not said["stopped"] and said["reached"] < 1e5 and said["cancelled"] > 1000
    found = said["statistics"]
    assert found["took"]["quantiles"]["0.5"] == pytest.approx(2, rel=0.02) and found["mean_time"]["confidence"] == 0.95
    assert found["mean_time"]["half_width"] < 0.1 < found["retrying"]["mean"] < 0.3


def test_a_model_says_how_many_lps_have_come_and_gone():
    words = "colonies --colonies 20 --division 0.5 --end 100"
    said = json.loads(start(f"{words} --json").stdout)
    assert said["made"] == said["ended"] == said["statistics"]["life"]["count"] > 20 and said["undelivered"] == 0
    shown = start(words).stdout
    assert re.search(rf"\n  LPs +{said['made']} made, {said['ended']} ended, 0 there at the end\n", shown)


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


@pytest.mark.parametrize("words", [
    "jackson --stations 1 --again 0 --end 50 --warm-up 9", "jackson --load 0 --end 50 --warm-up 0", "closed --customers 0",
    "closed --stations 1 --end 900",
    "epidemic --infected 0", "epidemic --people 1 --contacts path", "epidemic --people 50 --infected 99 --recovery 0",
    "pandemic --residents 0 --end 2", "pandemic --width 1 --height 1 --end 9", "network --end 0 --warm-up 0",
    "network --backlog 0 --end 50 --warm-up 9", "network --width 1 --height 1 --end 50 --warm-up 9",
    "network --shape dragonfly --links 1 --end 50 --warm-up 9", "network --wire 0 --lookahead 1 --end 50 --warm-up 9",
    "arq --wires 1 --loss 0 --end 99", "arq --loss 0.99 --end 99", "arq --precision 1 --batch 1",
    "colonies --room 1 --end 9", "colonies --room 2 --founders 5 --end 9", "colonies --death 1000 --division 0.001 --end 9",
    "traffic --cars 0 --end 9 --warm-up 1", "traffic --cars 10000 --end 9 --warm-up 1",
    "traffic --segments 1 --dawdle 1 --end 9 --warm-up 1"])
def test_extremes_of_the_library(words):
    assert answer(f"{words} --threads 2") == answer(words)


@pytest.mark.parametrize("words, said", [
    ("phold --lps 0", "lps"), ("phold --remote 1.5", "remote"), ("phold --remote nan", "remote"),
    ("phold --payload 9", "'9', not one of 8, 16"), ("phold --payload 8:x", "8:x"),
    ("phold --lookahead 2", "mean delay"), ("phold --mean -1", "mean"), ("phold --distribution normal", "normal"),
    ("airport --flight 0.4", "flight"), ("airport --width 0", "width"), ("airport --landing -1", "landing"),
    ("pcs --move 0", "move"), ("pcs --next-call 0", "next-call"), ("pcs --height 100000", "height"),
    ("jackson --servers 17", "servers"), ("jackson --load 1", "load"), ("jackson --walk 0.5", "--walk must not be below"),
    ("closed --walk 4", "--walk must not be below"), ("closed --skew -1", "skew"), ("closed --stations 0", "stations"),
    ("epidemic --latent 0.5 --lookahead 1", "--latent must not"), ("epidemic --people 5 --degree 5", "as many neighbours"),
    ("epidemic --people 5 --degree 3", "odd degree"), ("epidemic --contacts any", "'any' is not one of"),
    ("epidemic --edges /no/such", "--edges: '/no/such' cannot be read: No such file"), ("pandemic --routes /", "'/' is a folder"),
    ("pandemic --flight 0.2 --lookahead 0.25", "--flight must not"), ("pandemic --every 0", "every"), ("network --shape ring", "'ring'"),
    ("network --wire 0.5 --lookahead 2", "--transfer and --wire"), ("network --buffers 0", "buffers"), ("network --links 0", "links"),
    ("traffic --cars 10001", "--cars must not"), ("traffic --segments 5000", "at least --max-speed cells"),
    *((f"{name} --end 50 --warm-up 50", "--warm-up must be below --end") for name in ("jackson", "closed", "network", "traffic")),
    ("network --end 50", "--warm-up must be below --end"),
    ("arq --wire 0.5 --lookahead 1", "--wire must not"), ("arq --patience 1.5", "--patience must"), ("arq --loss 1", "loss"),
    ("colonies --signal 0.05 --lookahead 0.1", "--signal must not"), ("colonies --colonies 1000000 --room 1000", "more --room than"),
    ("traffic --lookahead 1", "half a step"), ("traffic --max-speed 0", "max-speed"), ("traffic --dawdle 1.1", "dawdle")])
def test_what_makes_no_sense_is_one_line(words, said):
    refused(words, said)


@pytest.mark.parametrize("model_and_option, text, said", [
    ("epidemic --edges", "0 1\n1\n", ":2: there is no number 'to'"), ("epidemic --edges", "0 1\n\x1b[31m 2\n", ":2: '?[31m' is not"),
    ("pandemic --routes", "from,to,passengers\n0,1,many\n", ":2: 'many' is not a whole number"),
    ("pandemic --routes", "0,1,5\n0,1,5,6\n", ":2: '6' is too much")])
def test_a_bad_line_of_a_file_is_told_with_its_number(tmp_path, model_and_option, text, said):
    (tmp_path / "file").write_text(text)
    refused(f"{model_and_option} {tmp_path}/file", f"{tmp_path}/file{said}")


def test_files_say_who_is_linked(tmp_path):
    """A path of four that surely passes it on, as networkx writes it; and two cities of which one never has a visitor."""
    (tmp_path / "edges").write_text("0 1 {}\n1 2 {'weight': 2}\n2 3 {}\n")
    statistics = answer(f"epidemic --edges {tmp_path}/edges --infected 1 --contact 0.001 --recovery 1000 --end 1e6")[4]
    assert (statistics["recovered"], statistics["generation"]["most"]) == (4, 3)
    (tmp_path / "routes").write_text("from,to,passengers\n1,0,3\n")
    statistics = answer(f"pandemic --routes {tmp_path}/routes --residents 9 --contacts 0 --infected 1 --end 2.5")[4]
    assert (statistics["infected_away"], statistics["flights"], statistics["aboard"]) == (0, 2, 0)


def refused(words, said):
    done = start(words)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(rf"[^\n]*{re.escape(said)}[^\n]*\n", done.stderr)


def test_flights_of_a_year_are_routes(tmp_path):
    """Numbered from the busiest airport; a passenger for each flight of a day, and no route for less than half of one."""
    flights, routes = tmp_path / "flights.csv", tmp_path / "routes.csv"
    flights.write_text("origin,destination,count\nABE,ATL,400\nATL,ABE,730\nATL,BHM,1\nBHM,ATL,365\nATL,ORD,365\n")
    routes.write_text(programs.run(sys.executable, ROOT / "pdes/models/flights_to_routes.py", flights, check=True).stdout)
    assert routes.read_text().split() == ["from,to,passengers", "1,0,1", "0,1,2", "2,0,1", "0,3,1"]
    done = start(f"pandemic --routes {routes} --end 10.2 --json")
    assert json.loads(done.stdout)["statistics"]["flights"] == 4 * 10
