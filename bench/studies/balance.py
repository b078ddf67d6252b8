"""How well LPs that move follow load that moves, on threads and on ranks: PHOLD with an eighth of its LPs ten times as busy
as the others, an eighth that moves round all.  Counts events, which is the same on every machine, and where there are CPUs
for all threads measures time.  Needs Open MPI, and a release build.

  python3 bench/studies/balance.py >docs/results/balance.md
"""

import collections
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[2] / "build/release/pdes/hmalloc-pdes-phold"
MODELS = {"A": ["--events-per-lp", "16", "--remote", "0.1", "--end", "40"], "B": ["--end", "160"]}
SHAPES = {"2 threads": (1, 2), "2 ranks": (2, 1), "4 threads": (1, 4), "4 ranks": (4, 1), "2 ranks of 2 threads": (2, 2)}
TURNS = ("80", "160", "400", "1600", "even")
DRAWN = 24
TIMES, ROUNDS = 10, 7  # as long, and as often, where time is measured


def run(model, turn, shape, balances, *words):
    """The summary as JSON."""
    ranks, threads = shape
    hot = [] if turn == "even" else ["--hot", "10", "--hot-turn", turn]
    mpirun = ["mpirun", "-q", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)] if ranks > 1 else []
    env = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    how = ["--lps", "8192", "--threads", str(threads), "--oversubscribe", "--json"]
    balance = "off" if not balances else "ranks" if ranks > 1 else "threads"
    done = subprocess.run([*mpirun, PROGRAM, *MODELS[model], *hot, *how, "--balance", balance, *words], env=env,
                          capture_output=True, stdin=subprocess.DEVNULL, check=True)
    return json.loads(done.stdout)


def busiest(trace):
    """Events of each window's busiest thread, beside the mean of all."""
    threads = collections.defaultdict(list)
    for event in json.loads(Path(trace).read_text())["traceEvents"]:
        windows = threads[event["pid"], event.get("tid")]
        if event["name"] == "waiting":  # all threads meet equally often, and execute between two meetings
            windows.append(0)
        elif event["name"] == "burst":
            windows[-1] += event["args"]["events"]
    threads = {thread: windows for thread, windows in threads.items() if windows}
    windows = list(zip(*threads.values(), strict=True))
    return sum(max(each) for each in windows) * len(threads) / sum(map(sum, windows))


def show_drawn():
    """Settings that nobody chose."""
    lot = random.Random(20261130)
    print(f"\n## Drawn by lot\n\n{DRAWN} settings on threads of one rank; hot: how many times as busy. By numbers of "
          "events, and by time.\n")
    print("| LPs | hot | all LPs in | remote | lookahead | threads | events each | off | by events | by time |")
    print("|" + "--:|" * 10)
    with tempfile.TemporaryDirectory() as folder:
        trace = str(Path(folder) / "trace.json")
        for _ in range(DRAWN):
            lps, hot, turn = lot.randrange(3000, 16000), lot.randrange(5, 20), round(30 * 100**lot.random())
            remote, lookahead = round(lot.uniform(0.1, 0.5), 2), round(lot.uniform(0.05, 0.3), 2)
            threads, seed, each = lot.choice([2, 3, 4, 5]), lot.randrange(1000), lot.choice([1, 2, 8])
            setting = {"lps": lps, "hot": hot, "hot-turn": turn, "remote": remote, "lookahead": lookahead,
                       "threads": threads, "events-per-lp": each}
            until = {"seed": seed, "end": 160 if each < 8 else 40}
            words = [f"--{name}={value}" for name, value in (setting | until).items()]
            cells = []
            for how in (("off", "events"), ("threads", "events"), ("threads", "time")):
                balance = [f"--{name}={value}" for name, value in zip(("balance", "balance-by"), how)]
                subprocess.run([PROGRAM, *words, *balance, "--oversubscribe", "--gather=off", "--trace", trace], check=True,
                               stdout=subprocess.DEVNULL)
                cells.append(f"{busiest(trace):.2f}")
            print("| " + " | ".join(map(str, [*setting.values(), *cells])) + " |", flush=True)


def shorter(model, turn, shape):
    """Its time beside that without moves, by turns."""
    until = ["--end", str(TIMES * int(MODELS[model][-1]))]
    ratios = sorted(run(model, turn, shape, True, *until)["seconds"] / run(model, turn, shape, False, *until)["seconds"]
                    for _ in range(ROUNDS))
    return f"{statistics.median(ratios):.2f} ({ratios[0]:.2f}–{ratios[-1]:.2f})"


def name_of(turn):
    return "load is even" if turn == "even" else turn


def show_times():
    cpus = len(os.sched_getaffinity(0))
    shapes = {name: shape for name, shape in SHAPES.items() if shape[0] * shape[1] <= cpus}
    columns = list(itertools.product(MODELS, shapes))
    print(f"\n## Time, on {cpus} CPUs\n\nWith moves beside without, {TIMES} times as long: medians of {ROUNDS} pairs of "
          "runs in turns (least–most).\n")
    print("| all LPs in | " + " | ".join(f"{model}, {shape}" for model, shape in columns) + " |")
    print("|---|" + "--:|" * len(columns))
    for turn in TURNS:
        cells = [shorter(model, turn, shapes[shape]) for model, shape in columns]
        print(f"| {name_of(turn)} | " + " | ".join(cells) + " |", flush=True)


def main():
    print("# Load that moves, on threads and on ranks\n")
    print("""\
Made by `python3 bench/studies/balance.py`. Events of each window's busiest thread beside the mean of all, so 1 is the
ideal; without moves, and with: `--balance threads` on one rank, `--balance ranks` on several. An eighth of 8192 LPs gets
ten times as many events from others, and goes once round all in so many units of time; a window has 0.1. With
`--balance-by events --gather off`, so that these are the same each time.""")
    with tempfile.TemporaryDirectory() as folder:
        trace = str(Path(folder) / "trace.json")
        for model in MODELS:
            print(f"\n## PHOLD {model}: `{' '.join(MODELS[model])}`\n")
            print("| all LPs in | " + " | ".join(f"{shape}: off | on" for shape in SHAPES) + " |")
            print("|---|" + "--:|" * 2 * len(SHAPES))
            for turn in TURNS:
                cells = []
                for shape, on in itertools.product(SHAPES.values(), (False, True)):
                    run(model, turn, shape, on, "--trace", trace, "--gather", "off", "--balance-by", "events")
                    cells.append(f"{busiest(trace):.2f}")
                print(f"| {name_of(turn)} | " + " | ".join(cells) + " |", flush=True)
    show_drawn()
    show_times()


if __name__ == "__main__":
    sys.exit(main())
