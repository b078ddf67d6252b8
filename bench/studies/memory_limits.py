"""The smallest memory limit (of a control group, without swap) under which a program ends well on each allocator: found by
bisection to 2 %.  Needs root and version 1 of the memory controller.

  python3 bench/studies/memory_limits.py >docs/results/memory-limits.md
"""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RELEASE = ROOT / "build" / "release"
GROUP = Path("/sys/fs/cgroup/memory/hmalloc-limits")
ALLOCATORS = {"hmalloc": RELEASE / "libhmalloc.so"} | {
    peer["name"]: ROOT / peer["path"] for peer in json.loads((ROOT / "build/peers/peers.json").read_text())
    if peer["name"] in ("mimalloc2", "snmalloc", "rpmalloc", "jemalloc", "gperftools")} | {"glibc": ""}
BENCH = RELEASE / "bench"
PROGRAMS = {
    "larson, 8 threads": [BENCH / "larson", "--threads", "8", "--seconds", "0.3", "--latency", "/dev/null"],
    "unequal, 8 threads": [BENCH / "unequal", "--threads", "8", "--repeats", "2"],
    "VVMalloc's workload 2, 8 threads": [BENCH / "vvmalloc", "--workload", "2", "--threads", "8", "--repeats", "2"],
    # 64 MB of small blocks, all freed, then 64 MB of large ones at once, and again: what waits to go back counts.
    "phases of 64 MB": ["/usr/bin/python3", "-c", """
import ctypes
c = ctypes.CDLL(None)
c.malloc.restype = ctypes.c_void_p
c.free.argtypes = [ctypes.c_void_p]
c.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
for size in (200, 1 << 20, 3000, 1 << 24, 50000, 200):
    blocks = [c.malloc(size) for _ in range((64 << 20) // size)]
    for block in blocks:
        c.memset(block, 1, size)
    for block in blocks:
        c.free(block)
"""],
}


def ends_well(command, library, megabytes):
    (GROUP / "memory.limit_in_bytes").write_text(str(int(megabytes * 2**20)))

    def enter():
        (GROUP / "cgroup.procs").write_text(str(os.getpid()))

    environment = {"PATH": os.environ["PATH"], **({"LD_PRELOAD": str(library)} if library else {})}
    return subprocess.run([str(word) for word in command], preexec_fn=enter, env=environment, check=False,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def least(command, library):
    low, high = 1.0, 512.0
    if not ends_well(command, library, high):
        return None
    while high / low > 1.02:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if ends_well(command, library, middle) else (middle, high)
    return high


def main():
    if not GROUP.parent.is_dir():
        sys.exit("no memory controller of version 1 here")
    GROUP.mkdir(exist_ok=True)
    try:
        print("| MB | " + " | ".join(ALLOCATORS) + " |\n|---|" + "--:|" * len(ALLOCATORS))
        for name, command in PROGRAMS.items():
            found = [least(command, library) for library in ALLOCATORS.values()]
            print(f"| {name} | " + " | ".join("-" if each is None else f"{each:.1f}" for each in found) + " |", flush=True)
    finally:
        GROUP.rmdir()


main()
