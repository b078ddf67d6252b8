"""Events that cross threads, by who gets which LPs: counts, the same on every machine.  Needs METIS.

  python3 bench/studies/partition.py >docs/results/partition.md
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RELEASE = ROOT / "build" / "release"
WAYS = ("blocks", "round-robin", "random", "graph")
THREADS = (2, 4, 8)
MODELS = {
    "PCS, 64 x 64": "pcs --width 64 --height 64 --end 500",
    "Airport, 64 x 64": "airport --width 64 --height 64 --end 100",
    "Network, torus 32 x 32": "network --width 32 --height 32 --end 200",
    "Network, dragonfly": "network --shape dragonfly --links 4 --end 200",
    "Traffic": "traffic --end 200 --warm-up 0",
    "Colonies": "colonies --end 100",
    "Pandemic": "pandemic --end 10",
    "Epidemic, regular": "epidemic --end 100",
    "Epidemic, small world": "epidemic --contacts small-world --end 100",
    "Epidemic, star": "epidemic --contacts star --end 100",
    "Epidemic, a road map": "epidemic --end 200 --infected 200 --edges",
}


def road_map(folder):
    """A grid of 100 x 100 crossings, numbered as a file from elsewhere has them: in no order."""
    east = [(i, i + 1) for i in range(10000) if i % 100 < 99]
    south = [(i, i + 100) for i in range(9900)]
    file = folder / "road-map.edges"
    file.write_text("".join(f"{a * 3001 % 10000} {b * 3001 % 10000}\n" for a, b in east + south))
    return file


def shares(words, threads):
    """Of the events that LPs send to others, those that cross threads; the answer is one."""
    found, digests = [], set()
    for way in WAYS:
        name, *options = words
        how = ["--json", "--oversubscribe", "--balance", "off", "--threads", str(threads), "--partition", way]
        done = subprocess.run([RELEASE / "pdes" / f"hmalloc-pdes-{name}", *options, *how], capture_output=True, text=True,
                              check=True)
        said = json.loads(done.stdout)
        found.append(said["crossed"] / said["sent"])
        digests.add(said["digest"])
    assert len(digests) == 1, words
    return found


def main():
    subprocess.run(["ninja", "-C", RELEASE, "pdes/all"], check=True, stdout=sys.stderr)
    print("# Events that cross threads\n\nMade by `python3 bench/studies/partition.py`; counts, the same on every machine "
          "with METIS 5.1.0.\n")
    print("Percent of the events that LPs send to others, with `--balance off`, by `--partition`.\n")
    print(f"| model | threads | {' | '.join(WAYS)} |\n|---|--:|{'--:|' * len(WAYS)}")
    for model, words in MODELS.items():
        command = words.split()
        if command[-1] == "--edges":
            command.append(str(road_map(ROOT / "build")))
        for threads in THREADS:
            cells = [f"{share:.2%}".removesuffix("%") for share in shares(command, threads)]
            print(f"| {model} | {threads} | {' | '.join(cells)} |", flush=True)
    print("\n| model | command |\n|---|---|")
    for model, words in MODELS.items():
        print(f"| {model} | `{words}{' FILE' if words.endswith('--edges') else ''}` |")


if __name__ == "__main__":
    main()
