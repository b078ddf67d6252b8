"""What the PHOLDs in Python share: options, and the one line of JSON at the end."""

import argparse
import json
import random
import time
from collections.abc import Callable


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    for name, default in (("lps", 8192), ("events-per-lp", 1), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    for name, default in (("remote", 0.25), ("mean", 1.0), ("lookahead", 0.1), ("end", 80.0)):
        parser.add_argument(f"--{name}", type=float, default=default)
    return parser.parse_args()


def draw(given: argparse.Namespace) -> tuple[Callable[[], float], Callable[[int], int]]:
    """Functions for the delay of an event, and for the LP at which one comes that LP `at` sends."""
    numbers = random.Random(given.seed)
    uniform, rate, lookahead = numbers.random, 1 / (given.mean - given.lookahead), given.lookahead
    return (lambda: lookahead + numbers.expovariate(rate),
            lambda at: int(uniform() * given.lps) if uniform() < given.remote else at)


def run(simulate: Callable[[], object], executed: list[int]) -> None:
    """executed: of each LP, when simulate() has returned."""
    began = time.perf_counter()
    simulate()
    seconds = time.perf_counter() - began
    events = sum(executed)
    print(json.dumps({"ops": events, "ns_per_op": seconds * 1e9 / events, "seconds": seconds, "events": events,
                      "events_per_s": events / seconds}))
