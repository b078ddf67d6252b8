"""What the servers' programs share: the environment of a server, what the kernel knows of it, the allocator's share."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path


def arguments(**options):
    """--library LIB, --share, and whole numbers by name with their defaults."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--library", required=True, help="the allocator, to be preloaded")
    parser.add_argument("--share", type=int, default=0, help="1: measure the allocator's share of the CPU time")
    for name, value in options.items():
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=value)
    return parser.parse_args()


def client_environment():
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


@contextmanager
def folder():
    """In memory where there is such a place: a disk is not what is measured."""
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="hmalloc-", dir=shared if os.access(shared, os.W_OK) else None) as path:
        yield Path(path)


def status_kb(pid, field):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    return 0


def mapped(pid, library):
    """The library, if the process has it in its address space: what the laboratory checks a result by."""
    wanted = os.path.realpath(library)
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    return wanted if any(line.endswith(" " + wanted) for line in lines) else ""


def served(command, given, where):
    """The command with the allocator in front, to be started in the client's environment; where its share is asked for,
    under a sampler that has none of it."""
    sampled = ["perf", "record", "-q", "-e", "cpu-clock", "-F", "997", "-o", str(where / "perf.data"), "--"]
    return [*(sampled if given.share else []), "env", f"LD_PRELOAD={given.library}", *command]


def share(where, library):
    """Percent of the samples in user mode that lie in the library."""
    report = subprocess.run(["perf", "report", "-i", str(where / "perf.data"), "--stdio", "-q", "--no-children",
                             "--sort", "dso", "-F", "sample,dso", "-t", "|"],
                            capture_output=True, text=True, check=False, env=client_environment()).stdout
    samples = {}
    for line in report.splitlines():
        count, _, dso = line.partition("|")
        if count.strip().isdigit():
            samples[dso.strip()] = samples.get(dso.strip(), 0) + int(count)
    total = sum(count for dso, count in samples.items() if not dso.startswith("["))
    if total == 0:
        sys.exit("perf took no samples")
    return 100 * samples.get(Path(library).resolve().name, 0) / total


def report(**fields):
    print(json.dumps(fields))
