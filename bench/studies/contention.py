"""What the kernel sees of threads that wait for an allocator: futex calls, context switches and page faults from 1 to 64
threads.  Needs perf, and the peers (./hmalloc bench peers).

  python3 bench/studies/contention.py >docs/results/contention.md
"""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RELEASE = ROOT / "build" / "release"
ALLOCATORS = {"hmalloc": RELEASE / "libhmalloc.so"} | {
    peer["name"]: ROOT / peer["path"] for peer in json.loads((ROOT / "build/peers/peers.json").read_text())
    if peer["name"] in ("mimalloc2", "snmalloc", "rpmalloc", "jemalloc", "gperftools")} | {"glibc": ""}
THREADS = (1, 2, 4, 8, 16, 32, 64)
# All of them on the allocator alone: the programs themselves wait for nothing while they are timed.
WORKLOADS = {"threadtest": "--size 64 --objects 100000 --rounds 40", "shbench": "--iterations 4000",
             "larson": "--min 8 --max 512 --seconds 0.5", "exchange": "--shape symmetric --size 64 --seconds 0.5 --pin 1"}
EVENTS = {"syscalls:sys_enter_futex": "futex", "context-switches": "switches", "page-faults": "faults"}


def measure(workload, threads, library):
    command = ["perf", "stat", "-x", ",", "-e", ",".join(EVENTS), "-o", "/dev/stderr", "--", "env",
               *([f"LD_PRELOAD={library}"] if library else []), str(RELEASE / "bench" / workload), "--threads", str(threads),
               *WORKLOADS[workload].split()]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    said = json.loads(done.stdout.splitlines()[-1])
    found = {}
    for line in done.stderr.splitlines():
        fields = line.split(",")
        if len(fields) > 2 and fields[2] in EVENTS:
            found[EVENTS[fields[2]]] = int(fields[0])
    if len(found) != len(EVENTS):
        sys.exit(f"perf counts nothing here: {done.stderr.strip().splitlines()[-1]}")
    return said, found


def main():
    if not os.access(RELEASE / "bench" / "larson", os.X_OK):
        sys.exit("build first: ./hmalloc bench list")
    for workload, arguments in WORKLOADS.items():
        print(f"\n## {workload} {arguments}\n\nIn each field: nanoseconds an operation; futex calls / context switches / "
              "page faults of the whole run.\n")
        print("| threads | " + " | ".join(ALLOCATORS) + " |\n|--:|" + "---|" * len(ALLOCATORS))
        for threads in THREADS if workload != "exchange" else THREADS[1:]:
            fields = []
            for library in ALLOCATORS.values():
                said, found = measure(workload, threads, library)
                fields.append(f"{said['ns_per_op']:.1f}; {found['futex']} / {found['switches']} / {found['faults']}")
            print(f"| {threads} | " + " | ".join(fields) + " |", flush=True)


main()
