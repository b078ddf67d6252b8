"""Makes up a campaign: a database as `hmalloc bench` writes it, without measuring anything.

  fabricate.py FILE.db [--profile quick|paper|full|baselines] [--rounds N] [--seed N]

The numbers are plausible, noisy, and the same for the same seed.  They prove nothing about any allocator.
"""

import argparse
import hashlib
import sys
import zlib
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
from hdrh.histogram import HdrHistogram

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "lab"))

from hmalloc_lab.bench import baselines, store  # noqa: E402
from hmalloc_lab.bench.catalogue import ALL_SHARED, EXPLICIT, NO_ALLOCATOR, Cell, cells  # noqa: E402
from hmalloc_lab.bench.store import AllocatorRow, RoundRow, Run, Store  # noqa: E402

_CPUS = 2
_BEGIN = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)
_NOISY = (3, 7)  # rounds in which others had the CPUs

# name: kind, version, its time and its memory next to the best there could be
_KNOWN = {
    "glibc": ("system", "2.36", 2.6, 1.05),
    "hmalloc": ("hmalloc", "0.1.0", 1.05, 1.15),
    "hmalloc-explicit": ("explicit", "0.1.0", 0.7, 1.2),
    "hmalloc-all-shared": ("explicit", "0.1.0", 1.3, 1.4),
    "mimalloc2": ("peer", "2.3.2", 1.2, 1.3),
    "mimalloc3": ("peer", "3.3.2", 1.15, 1.25),
    "snmalloc": ("peer", "0.7.6", 1.1, 1.5),
    "jemalloc": ("peer", "5.3.1", 1.6, 1.2),
    "rpmalloc": ("peer", "1.4.3", 1.15, 1.8),
    "tcmalloc": ("peer", "0.1.14", 1.4, 2.2),
    "gperftools": ("peer", "2.10", 1.5, 1.6),
    "no-allocator": ("no-allocator", "", 0.35, 0.9),
}
DEFAULT = tuple(_KNOWN)
# The same, and whose library it is.
_BASELINES = {
    "one_lock": ("baseline", "one_lock", 9.0, 1.0),
    "hoard": ("baseline", "hoard", 2.2, 1.3),
    "hoard-f8": ("variant", "hoard", 2.2, 1.3),
    "ar_malloc-nocache": ("variant", "ar_malloc", 2.6, 1.4),
    "hoard-f2": ("variant", "hoard", 2.3, 1.4),
    "vvmalloc-1": ("baseline", "vvmalloc-1", 12.0, 1.0),
    "vvmalloc-2": ("baseline", "vvmalloc-2", 3.5, 2.0),
    "vvmalloc-3": ("baseline", "vvmalloc-3", 3.4, 2.0),
    "vvmalloc-4": ("baseline", "vvmalloc-4", 2.4, 2.4),
    "ar_malloc": ("baseline", "ar_malloc", 1.8, 1.6),
    "ar_malloc-lock": ("baseline", "ar_malloc-lock", 9.5, 1.6),
    "hmalloc_paper": ("baseline", "hmalloc_paper", 1.5, 2.6),
    "hmalloc_paper-explicit": ("explicit", "hmalloc_paper", 0.9, 2.6),
    "hmalloc_paper-all-shared": ("explicit", "hmalloc_paper", 1.5, 2.6),
}
BASELINES = tuple(_BASELINES)
_ONLY_WITH_API = {"hmalloc-explicit": EXPLICIT, "hmalloc-all-shared": ALL_SHARED, "no-allocator": NO_ALLOCATOR,
                  "hmalloc_paper-explicit": EXPLICIT, "hmalloc_paper-all-shared": ALL_SHARED}
_WITH_ARENAS = ("glibc", "jemalloc", "ar_malloc", "ar_malloc-nocache")


def fabricate(path: Path, profile: str = "paper", rounds: int = 10, allocators: tuple[str, ...] = DEFAULT,
              seed: int = 1, slow: dict[str, float] | None = None, failing: bool = True) -> Path:
    """Writes a new database.  slow: allocator -> factor on its times; failing: with a crash, a hang, a library that was
    not loaded."""
    plan = baselines.cells() if profile == baselines.PROFILE else cells(profile)
    rows = [_allocator(name) for name in allocators]
    with Store(path, create=True) as db:
        number = db.begin(_BEGIN.isoformat(), profile, f"hmalloc bench {profile}", seed, rounds, _environment(), plan,
                          rows)
        for each in range(1, rounds + 1):
            noisy = each in _NOISY
            lost_share, longest_gap_us = (0.08, 9000.0) if noisy else (0.004, 120.0)
            db.add_round(number, RoundRow(each, _when(each), lost_share, longest_gap_us, noisy))
        failures = _failures(plan) if failing else {}
        for cell in plan:
            for row in rows:
                if _can_run(row.name, cell):
                    for run in _Made(cell, row.name, seed, (slow or {}).get(row.name, 1.0)).runs(rounds):
                        db.add(number, failures.get((run.round, run.cell, run.allocator), run))
        db.finish(number, _when(rounds + 1))
    return path


def _when(number: int) -> str:
    return (_BEGIN + timedelta(minutes=2 * number)).isoformat()


def _allocator(name: str) -> AllocatorRow:
    if name in _BASELINES:
        kind, of, _, _ = _BASELINES[name]
        return AllocatorRow(name, kind, "from the paper", f"build/release/baselines/lib{of}.so", "00", {})
    kind, version, _, _ = _KNOWN.get(name, ("user", "as given", 1.3, 1.3))
    if kind == "no-allocator":
        return AllocatorRow(name, kind, version)
    environment = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"} if name == "tcmalloc" else {}
    libraries = {"system": "libc.so.6", "peer": f"build/peers/{name}/lib{name}.so"}
    library = libraries.get(kind, "build/release/libhmalloc.so")
    return AllocatorRow(name, kind, version, library, hashlib.sha256(library.encode()).hexdigest(), environment)


def _environment() -> dict:
    return {"CPU": "Made-up CPU at 3.0 GHz", "CPUs": _CPUS, "memory": "8.0 GiB", "virtual machine": "no",
            "frequency governor": "performance", "kernel": "6.1.0", "transparent huge pages": "madvise",
            "cgroup CPU limit": "max 100000", "cgroup memory limit": "max", "glibc": "2.36",
            "load before": "0.10 0.12 0.09"}


def _can_run(name: str, cell: Cell) -> bool:
    if cell.only or "share" in cell.point and name == "glibc":
        return name in cell.only
    if name in _BASELINES and _BASELINES[name][0] == "variant":
        return name in cell.variants
    if name in _ONLY_WITH_API:
        return _ONLY_WITH_API[name] in cell.apis and not (name in _BASELINES and cell.family == "simulation")
    return "arenas" not in cell.point or name in _WITH_ARENAS


def _failures(plan: list[Cell]) -> dict[tuple[int, str, str], Run]:
    def one(number: int, workload: str, name: str, status: str, reason: str) -> Run:
        cell = [cell.name for cell in plan if cell.workload == workload][-1]
        return Run(number, cell, name, _when(number), status, reason)

    made = [one(2, "larson", "rpmalloc", store.CRASHED, "killed by signal 11 (SIGSEGV)"),
            one(5, "barnes-hut", "gperftools", store.HUNG, "no end after 900 s"),
            one(1, "replay", "snmalloc", store.NOT_LOADED, "glibc served it: libsnmalloc.so is not in the process")]
    return {(run.round, run.cell, run.allocator): run for run in made}


class _Made:
    """The runs of one cell on one allocator.  Drawn from its own stream: changing one changes no other."""

    def __init__(self, cell: Cell, name: str, seed: int, slow: float) -> None:
        self._cell, self._name = cell, name
        self._random = np.random.default_rng([seed, zlib.crc32(cell.name.encode()), zlib.crc32(name.encode())])
        self._mood = np.random.default_rng([seed, zlib.crc32(cell.name.encode())])  # the machine's: met by all
        _, _, time, memory = (_KNOWN | _BASELINES).get(name, ("user", "", 1.3, 1.3))
        # What an allocator is like in this cell is true for every campaign; only the noise comes from the seed.
        taste = np.random.default_rng([zlib.crc32(cell.name.encode()), zlib.crc32(name.encode())])
        difficulty = np.random.default_rng(zlib.crc32(cell.name.encode()))
        across = 2.0 if name == "glibc" and cell.family in ("shared", "mixed") else 1.0
        self._time = time * across * taste.lognormal(0, 0.2) * slow
        self._memory = memory * taste.lognormal(0, 0.1)
        self._base_ns = difficulty.uniform(6, 30) / min(cell.threads, _CPUS)
        self._base_kb = difficulty.uniform(3_000, 30_000)

    def runs(self, rounds: int) -> Iterator[Run]:
        for number in range(1, min(rounds, self._cell.most_rounds) + 1):
            mood = self._mood.lognormal(0, 0.02) * (1.12 if number in _NOISY else 1)
            outlier = 1.5 if self._random.random() < 0.03 else 1
            ns = self._base_ns * self._time * mood * self._random.lognormal(0, 0.015) * outlier
            kb = self._base_kb * self._memory * self._random.lognormal(0, 0.004)
            metrics = self._common(ns, kb) | self._special(ns, kb) | self._counters(ns, kb)
            latency = {}
            if self._cell.family == "latency":
                latency, percentiles = self._latency(ns)
                metrics |= percentiles
            rounded = {key: round(value, 6) if isinstance(value, float) else value for key, value in metrics.items()}
            yield Run(number, self._cell.name, self._name, _when(number), metrics=rounded,
                      resident=self._resident(metrics["wall_s"], kb), latency=latency)

    def _common(self, ns: float, kb: float) -> dict:
        ops = 4_000_000
        seconds, faults = ops * ns / 1e9, int(kb / 4)
        cpu = seconds * min(self._cell.threads, _CPUS)
        return {"threads": self._cell.threads, "ops": ops, "ns_per_op": ns, "seconds": seconds, "cpu_share": 0.99,
                "vm_peak_kb": int(kb * 3), "vm_hwm_kb": int(kb), "minor_faults": faults, "wall_s": seconds + 0.01,
                "user_s": cpu * 0.95, "system_s": cpu * 0.05, "cpu_s": cpu, "peak_kb": int(kb), "major_faults": 0,
                "voluntary_switches": 4 * self._cell.threads, "involuntary_switches": int(self._random.poisson(5)),
                "instructions": int(ops * ns * 6)}

    def _special(self, ns: float, kb: float) -> dict:
        threads, leanness = self._cell.threads, kb / self._base_kb
        if self._cell.metric in ("allocator_share", "drift_rss_kb"):
            return {self._cell.metric: 3 * self._time if "share" in self._cell.point else leanness}
        match self._cell.workload:
            case "linux-false-sharing":
                # Objects below a cache line share one; aligned ones do not.
                shared = 0 if self._cell.point["aligned"] else 12 * (threads - 1)
                return {"series": [[size, round(ns / 4 + shared * max(0, 1 - size / 40), 3)] for size in range(3, 53)]}
            case "linux-successors":
                predicted = 14 + 1.1 * threads * int(self._cell.point["rounds"]) + 127.6 * threads
                faults = int(predicted * (0.9 + 0.2 * leanness) + self._random.poisson(3))
                return {"predicted_faults": predicted, "faults_since_start": faults, "minor_faults": faults + 90}
            case "unequal":
                # Eight times as long as one after the other, with a lock around everything.
                lock = 4.0 if self._name in ("one_lock", "vvmalloc-1") and threads > 1 else 1.0
                return {"thread_ns_per_op": ns * min(threads, _CPUS) * lock, "payload_kb": 7715.0}
            case "linux-workers":
                return {"worker_s_mean": 4_000_000 * ns / 1e9 * 0.97}
            case "footprint":
                return {"footprint": 1.1 * leanness}
            case "idle":
                return {"kb_per_thread": 12 * leanness}
            case "nothing":
                return {"rss_kb": int(1500 * leanness)}
            case "drain":
                return {"end_ratio": 0.1 * leanness}
            case "replay":
                return self._replay(ns, leanness)
        return {}

    def _counters(self, ns: float, kb: float) -> dict:
        """What a baseline says at its end, under the names that it has there."""
        if self._name not in _BASELINES:
            return {}
        found = {"mapped": int(kb * 1200), "allocated": 0}
        match _BASELINES[self._name][1].partition("-")[0]:
            case "hoard":
                found |= {"objects": 4_000_000, "objects_from_used_superblocks": 0, "transfers_to_global": 40,
                          "transfers_from_global": 25, "max_allocated": int(kb * 1100), "max_in_use": int(kb * 900)}
            case "vvmalloc":
                busy = int(4e6 * ns * min(self._cell.threads, _CPUS))
                found |= {"heap_wait_ns": busy // 7, "queue_wait_ns": busy // 30, "heap_lock_ns": busy // 10,
                          "extensions": 900, "enqueues": 1200, "dequeues": 1100, "retries": 12}
            case "hmalloc_paper":
                found |= {"superblocks_64k": 60, "superblocks_4m": 3, "local_superblocks": 20, "ssl_walk_steps": 9000}
        return {f"counter_{key}": value for key, value in found.items()}

    def _replay(self, ns: float, leanness: float) -> dict:
        objects, mean_size = 250_000, 96
        in_use = int(self._base_kb * 1024 / 2)
        return {"kops_per_s": 1e6 / ns, "max_in_use": in_use, "max_allocated": int(in_use * 1.2 * leanness),
                "a_over_u": 1.2 * leanness, "objects": objects, "mean_size": mean_size, "cross_thread_share": 0.04}

    def _latency(self, ns: float) -> tuple[dict, dict]:
        both, encoded, percentiles = _histogram(), {}, {"clock_ns": 22}
        for kind, factor in (("malloc", 1.3), ("free", 0.9)):
            one = _histogram()
            tail = [(1, 200_000), (4, 30_000), (15, 3_000)]  # times the usual, of a million
            for times, count in [*tail, (60, 600), (400, 60), (4_000, int(self._random.poisson(5)))]:
                one.record_value(max(1, int(ns * factor * times * self._random.lognormal(0, 0.05))), count)
            both.add(one)
            encoded[kind] = one.encode().decode()
            percentiles |= _percentiles(f"latency_{kind}", one)
        return encoded, percentiles | _percentiles("latency", both)

    def _resident(self, seconds: float, kb: float) -> list:
        """Grows for a third of the time, then stays."""
        end = max(1.0, seconds * 1000)
        return [[round(end * at / 20, 2), int(kb * min(1, 0.15 + at / 7))] for at in range(21)]


def _histogram() -> HdrHistogram:
    return HdrHistogram(1, 10**10, 3)


def _percentiles(name: str, histogram: HdrHistogram) -> dict:
    points = {"p50": 50, "p99": 99, "p999": 99.9, "p9999": 99.99}
    return {f"{name}_{key}_ns": histogram.get_value_at_percentile(value) for key, value in points.items()} | {
        f"{name}_max_ns": histogram.get_max_value()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--profile", choices=("quick", "paper", "full", "baselines"), default="paper")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.file.unlink(missing_ok=True)
    everybody = DEFAULT + (BASELINES if options.profile in ("full", "baselines") else ())
    fabricate(options.file, options.profile, options.rounds, everybody, options.seed)
