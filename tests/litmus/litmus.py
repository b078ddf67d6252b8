"""Makes the litmus tests from today's compiler output, compares them with the committed ones, and lets herd7 judge them.

    litmus.py --root R --work W made [--update]          the committed tests in made/ are what the compilers make today
    litmus.py --root R --work W judge [--results FILE]   every right one "Never", every seeded fault "Sometimes"
    litmus.py --root R --work W write [NAME...]          as files in W/tests, for a herd7 by hand

herd7 is what HERD7 names, or the one in PATH; HERD7_LIBDIR is its folder of models, where it needs to be told.
Exit status: 0 all right, 1 not, 77 when a compiler, qemu or herd7 is missing.
"""
import argparse
import concurrent.futures
import dataclasses
import difflib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys

import compose
import watch

SKIPPED = 77
HERE = pathlib.Path(__file__).resolve().parent
CROSS = os.environ.get("HM_AARCH64_CXX", "aarch64-linux-gnu-g++").split()
NATIVE = os.environ.get("HM_X86_64_CXX", "g++" if platform.machine() == "x86_64" else "x86_64-linux-gnu-g++").split()
# Without LSE the compiler's helpers take exclusive pairs, with it one instruction.  No SVE: its registers hide the vectors.
TARGETS = [watch.Target("aarch64-llsc", "aarch64", tuple(CROSS), "cortex-a53"),
           watch.Target("aarch64-lse", "aarch64", tuple(CROSS), "max,sve=off"),
           watch.Target("x86_64", "x86_64", tuple(NATIVE), "Nehalem")]
MOST_SECONDS = 300
TSO = """Release and acquire are plain accesses here, and TSO reorders nothing but a load before an earlier store: to weaken them
changes no test.  The faults are what a compiler may do where they are missing (another order), a flag that is cleared
without an exchange (which TSO does show), and exchanges taken apart.
"""


def missing(target):
    tools = [target.compiler[0], f"qemu-{target.machine}"]
    return [tool for tool in tools if not shutil.which(tool)]


def version(command):
    return subprocess.run(command, capture_output=True, text=True).stdout.splitlines()[0].strip()


def later_loads(tests):
    """Newer compilers make LDAPR of an acquire load where the processor has it: the right tests once more with it."""
    changed = [dataclasses.replace(t, name=t.name.replace("lse", "rcpc"),
                                   text=t.text.replace("LDAR", "LDAPR").replace("lse", "rcpc")) for t in tests if not t.fault]
    return [new for old, new in zip([t for t in tests if not t.fault], changed) if "LDAR" in old.text]


def make(options, target, **where):
    tests = compose.compose(watch.trace(target, options.root, options.work / target.machine, **where), target.machine,
                            target.name)
    return tests + (later_loads(tests) if target.name.endswith("lse") else [])


def made_text(target, tests):
    note = TSO if target.machine == "x86_64" else ""
    return f"made by {version([*target.compiler, '--version'])}\n{note}\n" + "\n".join(test.text for test in tests)


def compare(target, tests, update):
    """0, or 1 after having shown the difference."""
    path, text = HERE / "made" / f"{target.name}.txt", made_text(target, tests)
    if update:
        path.write_text(text)
    committed = path.read_text()
    by_then, by_now = committed.split("\n", 1)[0], text.split("\n", 1)[0]
    same = committed.split("\n", 1)[1] == text.split("\n", 1)[1]
    print(f"{target.name}: {len(tests)} tests, {'as committed' if same else 'NOT as committed'}; {by_now}", flush=True)
    if same:
        return 0
    shown = difflib.unified_diff(committed.splitlines(), text.splitlines(), "committed", "today", lineterm="")
    print("\n".join(list(shown)[:60]))
    if by_then != by_now:
        print(f"the committed ones were {by_then}: not held against this compiler; the test that judges takes today's")
        return 0
    return 1


def herd():
    program = os.environ.get("HERD7") or shutil.which("herd7")
    if not program or not os.path.exists(program):
        return None
    library = os.environ.get("HERD7_LIBDIR")
    return [program, *(["-set-libdir", library] if library else [])]


def verdict(command, folder, test):
    """(Never or Sometimes, states, what herd7 said if neither)"""
    path = folder / f"{test.name}.litmus"
    path.write_text(test.text)
    try:
        said = subprocess.run([*command, "-variant", "mixed", path], capture_output=True, text=True, timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        return "none", 0, f"no end after {MOST_SECONDS} s"
    found = re.search(r"^Observation \S+ (\w+)", said.stdout, re.M)
    states = re.search(r"^States (\d+)", said.stdout, re.M)
    return (found[1], int(states[1]), "") if found and states else ("none", 0, said.stderr[-400:])


def judge(command, folder, tests):
    """Rows (test, states, verdict, as it should be) in the tests' order."""
    folder.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        said = pool.map(lambda test: verdict(command, folder, test), tests)
        rows = []
        for test, (word, states, complaint) in zip(tests, said):
            right = word == ("Sometimes" if test.fault else "Never")
            print(f"{'' if right else 'WRONG: '}{test.name}: {word}, {states} states {complaint}", flush=True)
            rows.append((test, states, word, right))
    return rows


def results(path, rows, command, targets):
    compilers = sorted({version([*target.compiler, "--version"]) for target in targets})
    versions = ", ".join([f"herd7 {version([*command, '-version'])}", *compilers, version(["qemu-aarch64", "--version"])])
    lines = ["# Hand-overs between threads under herd7", "",
             "Every right test must be \"Never\", every seeded fault \"Sometimes\" (the wrong outcome is reachable).", "",
             f"Made by: {versions}.", "",
             "    HERD7=... HERD7_LIBDIR=... python3 -B tests/litmus/litmus.py --root . --work build/litmus judge --results FILE",
             "", "| test | hand-over | seeded fault | states | verdict |", "|---|---|---|--:|---|"]
    for test, states, word, _ in rows:
        hand_over = re.search(r'"hand-over (.*?):', test.text)[1]
        cells = [test.name.removesuffix(f".{test.fault}"), hand_over, test.fault.replace("_", " "), str(states), word]
        lines.append(f"| {' | '.join(cells)} |")
    path.write_text("\n".join(lines) + "\n")


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("what", choices=("made", "judge", "write"))
    parser.add_argument("names", nargs="*", help="parts of names; all tests if none is given")
    parser.add_argument("--update", action="store_true", help="made: write what the compilers make today")
    parser.add_argument("--results", type=pathlib.Path)
    options = parser.parse_args()
    options.root, options.work = options.root.resolve(), options.work.resolve()
    return options


def main():
    options = parse()
    targets = [target for target in TARGETS if not missing(target)]
    for target in TARGETS:
        if target not in targets:
            print(f"{target.name}: skipped, there is no {' and no '.join(missing(target))}")
    command = herd()
    if options.what == "judge" and command is None:
        targets = []
        print("skipped: no herd7 (herdtools7; HERD7 names one, HERD7_LIBDIR its models)")
    if not targets:
        return SKIPPED
    sets = [(target, make(options, target)) for target in targets]
    if options.what == "made":
        return max(compare(target, tests, options.update) for target, tests in sets)
    tests = [test for _, some in sets for test in some if not options.names or any(n in test.name for n in options.names)]
    if options.what == "write":
        (options.work / "tests").mkdir(exist_ok=True)
        for test in tests:
            (options.work / "tests" / f"{test.name}.litmus").write_text(test.text)
        return 0
    rows = judge(command, options.work / "tests", tests)
    if options.results:
        results(options.results, rows, command, targets)
    print(f"{sum(right for *_, right in rows)} of {len(rows)} as they should be")
    return 0 if all(right for *_, right in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
