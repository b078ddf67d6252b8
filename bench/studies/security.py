"""What bad inputs and attacks come to, and what protections cost: hmalloc's libraries, glibc, and what is built of the
hardened peers (`./hmalloc bench peers mimalloc3 mimalloc3-secure scudo hardened_malloc`).  Builds the programs of the tests.

  python3 bench/studies/security.py [--rounds N] >docs/results/security.md
"""

import argparse
import collections
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RELEASE = ROOT / "build" / "release"
for folder in ("conformance", "misuse", "attacks"):  # both of the latter have a run.py; the last is found first
    sys.path.insert(0, str(ROOT / "tests" / folder))

import cases  # noqa: E402  (of misuse)
import run as attacks  # noqa: E402

PEERS = ("mimalloc3", "mimalloc3-secure", "scudo", "hardened_malloc")
TARGETS = ("hmalloc", "hmalloc-checked", "hmalloc-hardened", "attacks", "misuse_misuse")
PYTHON = """
import collections, json, re
many = {str(i): [i] * 10 for i in range(40000)}
for _ in range(3): text = json.dumps(many); again = json.loads(text)
counts = collections.Counter(re.findall(r'\\d+', text))
class Node:
    def __init__(self, key): self.key, self.kept = key, []
nodes = [Node(i) for i in range(200000)]
"""
SQL = """
create table t(a integer primary key, b text, c real);
with recursive x(i) as (select 1 union all select i + 1 from x where i < 200000)
insert into t select i, hex(randomblob(20)), i * 1.5 from x;
create index by_b on t(b);
update t set c = c + 1 where a % 3 = 0;
select count(*), sum(length(b)) from t where b > '8';
"""
PERL = "my %h; $h{\"k$_\"} = [$_, 'x' x ($_ % 100)] for 1 .. 300000; my $n = 0; $n += $h{$_}[0] for sort keys %h;"
CXX = """
#include <map>
#include <regex>
#include <string>
int main() { std::map<std::string, std::regex> m; }
"""
PROGRAMS = {
    "python3": [sys.executable, "-c", PYTHON], "sqlite3": ["sqlite3", ":memory:", SQL], "perl": ["perl", "-e", PERL],
    "g++": ["g++", "-std=c++20", "-O1", "-x", "c++", "-S", "-o", "/dev/null", "{cxx}"],
    "git": ["git", "-C", str(ROOT), "log", "--stat", "-n", "200"], "xz": ["xz", "-k", "-c", "-1", "{big}"],
}


def libraries():
    """name -> (path, environment); the system's malloc has no path."""
    found = {"glibc": ("", {})} | {kind: (RELEASE / name, {}) for kind, name in attacks.LIBRARIES.items()}
    manifest = ROOT / "build" / "peers" / "peers.json"
    built = {row["name"]: row for row in json.loads(manifest.read_text())} if manifest.exists() else {}
    return found | {name: (ROOT / built[name]["path"], built[name]["environment"]) for name in PEERS if name in built}


def environment(library):
    path, more = library
    return os.environ | more | ({"LD_PRELOAD": str(path)} if path else {})


def ending(command, library):
    try:
        run = subprocess.run(command, env=environment(library), capture_output=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return "hangs"
    if run.returncode == 0:
        return "went on"
    return "a line" if run.stderr.strip() else "a signal"


def bad_inputs(them):
    inputs = [case for case in cases.DOUBLE_FREE + cases.FOREIGN + cases.INSIDE + cases.SIZED if case.program == "misuse"]
    ends = {name: collections.Counter() for name in them}
    for name, library in them.items():
        for case in inputs:
            command = [str(RELEASE / "tests" / "misuse" / case.program), *case.arguments]
            ends[name][ending(command, library)] += 1
    lines = [f"| {len(inputs)} bad inputs | " + " | ".join(them) + " |", "|---|" + "---|" * len(them)]
    for kind in ("a line", "a signal", "went on", "hangs"):
        lines.append(f"| {kind} | " + " | ".join(str(ends[name][kind]) for name in them) + " |")
    return "\n".join(lines)


def measure(command, library):
    """(CPU seconds, KiB, page faults)"""
    process = subprocess.Popen(command, env=environment(library), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{command[0]} on {library[0] or 'glibc'}: status {status}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss, used.ru_minflt


def costs(them, rounds):
    """Medians of ratios to the default library within each round, least and most behind them."""
    what = {"CPU time": 0, "peak": 1, "page faults": 2}
    lines = ["| program | what | " + " | ".join(them) + " |", "|---|---|" + "---|" * len(them)]
    with tempfile.TemporaryDirectory() as folder:
        files = {"cxx": Path(folder, "a.cc"), "big": Path(folder, "big")}
        files["cxx"].write_text(CXX)
        files["big"].write_bytes((RELEASE / "libhmalloc.so").read_bytes() * 8)
        for program, words in PROGRAMS.items():
            if not shutil.which(words[0]):
                lines.append(f"| {program} | not installed |" + " |" * len(them))
                continue
            command = [word.format(**files) if word in ("{cxx}", "{big}") else word for word in words]
            seen = [{name: measure(command, library) for name, library in them.items()} for _ in range(rounds)]
            for label, index in what.items():
                row = []
                for name in them:
                    ratios = sorted(each[name][index] / max(each["default"][index], 1e-9) for each in seen)
                    row.append(f"{statistics.median(ratios):.2f} ({ratios[0]:.2f}–{ratios[-1]:.2f})")
                lines.append(f"| {program} | {label} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    subprocess.run(["ninja", "-C", RELEASE, *TARGETS], check=True, stdout=sys.stderr)
    them = libraries()
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always"], capture_output=True, text=True, check=False).stdout
    print(f"# Bad inputs, attacks, costs\n\nMade by `python3 bench/studies/security.py --rounds {options.rounds}` at "
          f"{commit.strip()}, {os.cpu_count()} cores.\n")
    print("How the bad inputs of `tests/misuse` end: double frees, frees of what is no block, wrong sizes.\n")
    print(bad_inputs(them))
    print("\nWhat an attacker gets (`tests/attacks`), who has one error to use. *ended*: by a message of the allocator's; "
          "*fault*: a signal at the access.\n")
    print(attacks.table(RELEASE / "tests" / "attacks" / "attacks", {name: path for name, (path, _) in them.items()},
                        list(attacks.EXPECTED), {name: more for name, (_, more) in them.items()}))
    print(f"\nProgram by program, as ratios to the default library: medians of {options.rounds} rounds, in which each "
          "allocator runs once, and the least and the most.\n")
    print(costs(them, options.rounds))


if __name__ == "__main__":
    main()
