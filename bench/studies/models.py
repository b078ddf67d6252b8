#!/usr/bin/env python3
"""The tables of docs/pdes-library.md and docs/pdes-models.md: what the models measure beside their theory, with seeds 1
to 8.  Events and virtual time only, so that it does not matter what else the machine does.

  ninja -C build/release hmalloc-pdes && python3 bench/studies/models.py
"""

import json
import math
import statistics
import subprocess
from pathlib import Path

PROGRAMS = Path(__file__).resolve().parents[2] / "build" / "release" / "pdes"
SEEDS = range(1, 9)


def run(words, seed=1):
    """Name -> number, or what the program says of a distribution."""
    name, *options = words.split()
    done = subprocess.run([PROGRAMS / f"hmalloc-pdes-{name}", *options, "--seed", str(seed), "--json"], check=True,
                          capture_output=True, text=True)
    said = json.loads(done.stdout)
    return said["statistics"] | said["derived"] | {each: said[each] for each in ("events", "sent", "events_by_type")}


def mean_of(name):
    return lambda said: said[name]["mean"]


def seeds(words, *values, digits=4):
    """Cells: the mean over the seeds of each value, with one standard error."""
    found = [[value(said) if callable(value) else said[value] for value in values]
             for said in (run(words, seed) for seed in SEEDS)]
    return [mean_and_error(each, digits) for each in zip(*found, strict=True)]


def mean_and_error(numbers, digits):
    return f"{statistics.mean(numbers):.{digits}f} ± {statistics.stdev(numbers) / math.sqrt(len(numbers)):.{digits}f}"


def between(words, start, end, *values, seeds=SEEDS, digits=0):
    """The same of what happens between two times: both runs begin with the same events."""
    found = []
    for seed in seeds:
        early, late = (run(f"{words} --end {at}", seed) for at in (start, end))
        found.append([value(early, late) for value in values])
    return [mean_and_error(each, digits) for each in zip(*found, strict=True)]


def theory(words, *names, digits=4):
    said = run(words)
    return [f"{said[name]:.{digits}f}" for name in names]


def row(*cells):
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def jackson():
    for load in (0.5, 0.7, 0.8, 0.9):
        words = f"jackson --load {load} --end 10000 --warm-up 2000"
        measured = seeds(words, *(mean_of(f"waiting_{servers}") for servers in (1, 2, 3)), digits=3)
        exact = theory(words, *(f"waiting_{servers}_theory" for servers in (1, 2, 3)), digits=3)
        row(load, *(cell for pair in zip(measured, exact, strict=True) for cell in pair))


def closed():
    for customers in (10, 50, 200, 500, 1000):
        words = f"closed --customers {customers} --end 60000 --warm-up 20000"
        visits, wait = seeds(words, "visits_per_time", mean_of("waiting"), digits=3)
        exact = theory(words, "visits_per_time_theory", "waiting_theory", digits=3)
        row(customers, visits, exact[0], wait, exact[1])


def epidemic():
    for contact in (2, 4, 6, 8, 10, 12):
        words = f"epidemic --contact {contact} --infected 200 --end 1000"
        row(contact, *seeds(words, "share_ever_infected"), *theory(words, "share_ever_infected_theory"))


def infected_of_a_city(residents, infected, contacts, recovery):
    """Mean share ever infected: of those susceptible and infected, the next change is an infection with probability p."""
    one_less = [0.0] * (residents + 2)
    for susceptible in range(1, residents - infected + 1):
        p = 1 / (1 + residents / (contacts * susceptible * recovery))
        here, more = [0.0] * (residents + 2), 0.0
        for now in range(1, residents - susceptible + 1):
            here[now] = more = p * (1 + one_less[now + 1]) + (1 - p) * more
        one_less = here
    return (infected + one_less[infected]) / residents


def pandemic():
    for time in (1, 2, 4, 8):
        words = f"pandemic --contacts 0 --sources 256 --infected 500 --flight 0.2 --end {time}"
        row(time, *seeds(words, "infected", digits=0), f"{128000 * math.exp(-time / 4):.0f}")
    for contacts in (0.5, 1):
        words = f"pandemic --contacts {contacts} --passengers 0 --sources 256 --residents 5000 --infected 50 --end 400"
        row(contacts, *seeds(words, "share_ever_infected"), f"{infected_of_a_city(5000, 50, contacts, 4):.4f}",
            *theory(words, "share_ever_infected_if_all_mix"))


def network():
    shapes = ("", " --shape dragonfly --links 2")

    def cells(shape, load):
        said = run(f"network{shape} --load {load}")
        return f"{said['throughput']:.3f}", f"{said['latency']['mean']:.2f}"

    for load in (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 1, 2):
        row(load, *(cell for shape in shapes for cell in cells(shape, load)))
    hard = [run(f"network{shape} --load 2 --traffic hard") for shape in shapes]
    row("2, hard", *(f"{said['throughput']:.3f} (bound {said['throughput_bound']:.3f})" for said in hard))


def traffic():
    one, other = "--cells 1000", "--cells 1000 --segments 20 --warm-up 20000 --end 40000 --max-speed 1"
    for density in (0.05, 0.1, 0.2, 0.5):
        cars = f"--cars {1000 * density:.0f}"
        free, exact = theory(f"traffic {one} {cars} --dawdle 0", "flow", "flow_theory", digits=3)
        row(density, free, exact, *theory(f"traffic {one} {cars}", "flow", digits=3),
            *seeds(f"traffic {other} {cars}", "flow", digits=5), *theory(f"traffic {other} {cars}", "flow_theory", digits=5))


def arq():
    for loss in (0.1, 0.2, 0.3, 0.5):
        said = run(f"arq --loss {loss} --precision 0.01")
        mean, quantiles = said["mean_time"], said["took"]["quantiles"]
        row(loss, f"{mean['mean']:.4f} ± {mean['half_width']:.4f}", f"{said['mean_time_theory']:.4f}",
            f"{said['retrying']['mean']:.4f}", f"{said['retrying_theory']:.2f}", quantiles["0.9"], quantiles["0.99"])


def colonies():
    for division, founders in ((0.5, 1), (0.8, 1), (1.2, 1), (1.2, 3)):
        words = f"colonies --division {division} --founders {founders}"
        died, family = seeds(words, "died_out", mean_of("family"))
        exact = theory(words, "died_out_theory", "family_theory")
        row(f"{division}, {founders}", died, exact[0], family, exact[1])


def least_to_most(words, value):
    numbers = sorted(value(run(words, seed)) for seed in range(1, 5))
    return f"{numbers[0]:,} to {numbers[-1]:,}"


def phold():
    for words in ("phold --end 80", "phold --events-per-lp 16 --end 8"):
        row(words, least_to_most(words, lambda said: said["events"]))


def pcs():
    def attempts(said):
        return said["attempts"] - said["busy_lines"]

    def walks(said):
        return said["events_by_type"]["Walk"]

    for end in (500, 1000):
        row(f"until {end}", "attempts less busy lines, events without Walk, Walk, channel blocks, hand-off blocks",
            *seeds(f"pcs --end {end}", attempts, lambda said: said["events"] - walks(said), walks, "channel_blocks",
                   "handoff_blocks", digits=0))
    for portables in (50, 200):
        row(f"{portables} portables", *seeds(f"pcs --portables {portables}", "blocking_probability"))


def blocked(early, late):
    attempts, busy, blocks = (late[name] - early[name] for name in ("attempts", "busy_lines", "channel_blocks"))
    return blocks / (attempts - busy)


def more(name):
    return lambda early, late: late[name] - early[name]


def loss_systems():
    row("Engset", *between("pcs --width 16 --height 16 --channels 6 --move 1e15", 1000, 8000, blocked, digits=4))
    row("Erlang B", *between("pcs --width 6 --height 6 --portables 8000 --next-call 180000 --move 1e15", 1000, 50000,
                             blocked, seeds=range(1, 17), digits=4))
    row("channels for all", *between(
        "pcs --width 16 --height 16 --portables 4 --channels 1000 --move 50 --lookahead 0.001", 1000, 5000,
        more("attempts"), more("busy_lines"), more("portables_out"), more("sent")))


def airport():
    for words in (f"airport --end {end}" for end in (200, 1000, 2000)):
        row(words, least_to_most(words, lambda said: said["events"]))
    row(*sorted(run("airport --end 1000", seed)["waiting_by_airport"]["mean"] for seed in range(1, 5)))
    row(*(run("airport --ground 30.5 --landing 10.5 --end 1000", seed)["events"] for seed in (1, 2)))

    def landings(early, late):
        return late["waiting"]["count"] - early["waiting"]["count"]

    def waiting(early, late):
        sums = [said["waiting"]["count"] * said["waiting"]["mean"] for said in (early, late)]
        return (sums[1] - sums[0]) / landings(early, late)

    for planes in (20, 50):
        words = f"airport --width 8 --height 8 --planes {planes} --landing 0.5"
        row(planes, *between(words, 200, 1200, landings), *between(words, 200, 1200, waiting, digits=4))


if __name__ == "__main__":
    for table in (jackson, closed, epidemic, pandemic, network, traffic, arq, colonies, phold, pcs, loss_systems, airport):
        print(f"\n{table.__name__}\n")
        table()
