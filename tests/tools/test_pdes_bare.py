"""The engine's yardstick does PHOLD and nothing less: the same events as a few untuned lines of Python."""

import heapq
import json
import math
import os
import subprocess
from pathlib import Path

import pytest

BARE = Path(os.environ.get("HMALLOC_BUILD", Path(__file__).resolve().parents[2] / "build/release")) / "bench" / "bare"
WORD = 2**64 - 1


def run(*words) -> subprocess.CompletedProcess:
    return subprocess.run([BARE, *map(str, words)], capture_output=True, text=True, timeout=300)


def events(**options) -> int:
    words = [word for key, value in options.items() for word in (f"--{key.replace('_', '-')}", value)]
    return json.loads(run(*words).stdout)["events"]


class Stream:
    """splitmix64"""

    def __init__(self, state: int) -> None:
        self.state, self.sent = state, 0

    def bits(self) -> int:
        self.state = (self.state + 0x9E3779B97F4A7C15) & WORD
        z = self.state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & WORD
        z = (z ^ z >> 27) * 0x94D049BB133111EB & WORD
        return z ^ z >> 31

    def uniform(self) -> float:
        return (self.bits() >> 11) * 2.0**-53


DELAYS = {
    "exponential": lambda lp, mean: -mean * math.log(1 - lp.uniform()),
    "uniform": lambda lp, mean: 2 * mean * lp.uniform(),
    "bimodal": lambda lp, mean: (0.1 if lp.uniform() < 0.9 else 9.1) * mean * -math.log(1 - lp.uniform()),
    "ties": lambda lp, mean: mean,
    "pareto": lambda lp, mean: mean / 2 / math.sqrt(1 - lp.uniform()),
}


def phold(lps: int, events_per_lp: int, remote: float, end: float, seed: int, lookahead: float, mean: float,
          distribution: str) -> int:
    streams = [Stream(Stream((seed << 32) + lp).bits()) for lp in range(lps)]
    pending: list[tuple[float, int, int, int]] = []

    def schedule(source: int, to: int, now: float) -> None:
        stream = streams[source]
        time = now + lookahead + DELAYS[distribution](stream, mean - lookahead)
        if time < end:
            heapq.heappush(pending, (time, source, stream.sent, to))
            stream.sent += 1

    for lp in range(lps):
        for _ in range(events_per_lp):
            schedule(lp, lp, 0.0)
    executed = 0
    while pending:
        now, _, _, lp = heapq.heappop(pending)
        executed += 1
        remotely = streams[lp].uniform() < remote
        schedule(lp, streams[lp].bits() * lps >> 64 if remotely else lp, now)
    return executed


@pytest.mark.parametrize("distribution", DELAYS)
@pytest.mark.parametrize("lps, events_per_lp, remote", [(1, 1, 1), (50, 1, 0.25), (17, 9, 0.9), (100, 3, 0)])
def test_it_executes_the_events_of_phold(distribution, lps, events_per_lp, remote):
    model = {"lps": lps, "events_per_lp": events_per_lp, "remote": remote, "end": 9, "seed": 3, "lookahead": 0.2,
             "mean": 1, "distribution": distribution}
    assert events(**model) == phold(**model) > 0


def test_all_events_at_whole_times():
    assert events(lps=100, events_per_lp=16, lookahead=1, mean=1, end=8) == 100 * 16 * 7


@pytest.mark.parametrize("words", [
    "--lps 0", "--end nan", "--end 0", "--lookahead 2", "--mean 0", "--remote 1.5", "--distribution normal", "--threads 2",
    "--lps", "lps"])
def test_nonsense_is_refused_in_one_line(words):
    done = run(*words.split())
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done


def test_it_says_what_the_laboratory_asks_of_a_result():
    said = json.loads(run("--end", 2).stdout)
    assert said["ns_per_op"] == pytest.approx(1e9 / said["events_per_s"], rel=1e-3)
    assert said["ops"] == said["events"] and said["malloc_library"].startswith("/") and said["vm_hwm_kb"] > 0
