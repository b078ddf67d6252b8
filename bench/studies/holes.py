"""What stays resident of much memory of which little is still live: 278 MB in blocks of 512 B to 2 KB, 19 of 20 freed at
random; then malloc_trim, or a pause and a few calls.

  python3 bench/studies/holes.py NAME=LIBRARY...      a table of these allocators, each preloaded, five times; glibc is added
"""

import ctypes
import os
import random
import statistics
import subprocess
import sys
import time

ROUNDS, COUNT = 5, 228_000
PAUSES = {"malloc_trim": None, "a pause of 1 s": 1.0, "a pause of 0.2 s": 0.2}


def resident_mb():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def program(pause):
    """In a process with the allocator: resident MB before and after, and the milliseconds of the calls between."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.argtypes, libc.memset.argtypes = [ctypes.c_void_p], [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
    chance = random.Random(7)
    start = resident_mb()
    blocks = []
    for _ in range(COUNT):
        size = 512 + chance.randrange(1536)
        blocks.append(libc.malloc(size))
        libc.memset(blocks[-1], 1, size)
    for block in blocks:
        if chance.randrange(20):
            libc.free(block)
    own = resident_mb() - start
    if pause:
        time.sleep(pause)
    begun = time.perf_counter()
    if pause:
        few = [libc.malloc(100 + i) for i in range(600)]
        for block in few:
            libc.free(block)
    else:
        libc.malloc_trim(0)
    print(own, resident_mb() - start, 1000 * (time.perf_counter() - begun))


def measured(library, pause):
    environment = os.environ | ({"LD_PRELOAD": library} if library else {})
    words = [sys.executable, __file__, "--program", *([str(pause)] if pause else [])]
    return [float(word) for word in subprocess.run(words, env=environment, check=True, capture_output=True).stdout.split()]


def shown(values):
    return f"{statistics.median(values):.0f} [{min(values):.0f}, {max(values):.0f}]"


def main(arguments):
    allocators = {"glibc": ""} | dict(word.split("=", 1) for word in arguments)
    found = {(name, when): [] for name in allocators for when in PAUSES}
    for _ in range(ROUNDS):
        for (name, when), runs in found.items():
            runs.append(measured(allocators[name], PAUSES[when]))
    print("| resident MB [least, most]; ms | after the frees |", " | ".join(PAUSES), "|")
    print("|---|--:|" + "--:|" * len(PAUSES))
    for name in allocators:
        cells = [shown([run[0] for when in PAUSES for run in found[name, when]])]
        for when in PAUSES:
            _, resident, took = zip(*found[name, when], strict=True)
            cells.append(f"{shown(resident)}; {statistics.median(took):.0f}")
        print(f"| {name} |", " | ".join(cells), "|")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--program"]:
        program(float(sys.argv[2]) if len(sys.argv) > 2 else None)
    elif all("=" in word for word in sys.argv[1:]):
        main(sys.argv[1:])
    else:
        sys.exit(f"usage: {sys.argv[0]} NAME=LIBRARY...")
