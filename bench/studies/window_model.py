"""What a window of the simulation engine costs on T threads: a model, put together from measured parts.

    python3 bench/studies/window_model.py [--setting NAME:EVENTS:NANOSECONDS:REMOTE]... [--handover NS] ...

docs/pdes-design.md, "Threads and windows", derives the formula and shows the table that this prints.
"""

import argparse
import math
from dataclasses import dataclass


@dataclass
class Setting:
    """A model as the engine sees it: events in a window, their cost on one thread, the share sent to any LP."""

    name: str
    events: float
    nanoseconds: float
    remote: float

    @staticmethod
    def parse(text: str) -> "Setting":
        name, events, nanoseconds, remote = text.split(":")
        return Setting(name, float(events), float(nanoseconds), float(remote))


# PHOLD A, B and C of docs/pdes-models.md: events in a window are exact; the cost is that of one thread's best round in
# docs/results/engine-november-30.md.
MEASURED = [Setting("A", 12967, 24.3, 0.10), Setting("B", 819, 23.1, 0.25), Setting("C", 102, 24.0, 0.25)]


def expected_largest(n: int) -> float:
    """The mean of the largest of n standard normal numbers."""
    def beyond(x: float) -> float:
        return 1 - (0.5 * (1 + math.erf(x / math.sqrt(2)))) ** n

    step = 1e-3
    grid = [i * step for i in range(int(10 / step))]
    return step * sum(beyond(x) - (1 - beyond(-x)) for x in grid)


def window(setting: Setting, threads: int, parts: argparse.Namespace) -> float:
    """Nanoseconds from the opening of one window to the opening of the next."""
    share = setting.events / threads
    working = share * setting.nanoseconds
    if threads == 1:
        return working
    waiting = parts.spread * math.sqrt(share) * expected_largest(threads) * setting.nanoseconds
    crossing = share * setting.remote * (1 - 1 / threads) * parts.handover
    return working + waiting + crossing + parts.fixed + (threads - 1) * (parts.rendezvous + parts.partner)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--setting", type=Setting.parse, action="append", metavar="NAME:EVENTS:NS:REMOTE",
                        help="events of a window, cost of one on one thread, share that may go to any LP")
    parser.add_argument("--rendezvous", type=float, default=230, help="ns of the rendezvous for each other thread")
    parser.add_argument("--partner", type=float, default=50, help="ns to look into another thread's empty outbox")
    parser.add_argument("--handover", type=float, default=22, help="ns more for an event that changes the thread")
    parser.add_argument("--fixed", type=float, default=0, help="ns of a window that do not depend on its events")
    parser.add_argument("--spread", type=float, default=1, help="of a thread's events in a window: 1 is Poisson's")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    return parser.parse_args()


def main() -> None:
    parts = arguments()
    print("| setting | events of a window | " + " | ".join(f"T = {n}" for n in parts.threads) + " |")
    print("|---|--:|" + "--:|" * len(parts.threads))
    for setting in parts.setting or MEASURED:
        one = window(setting, 1, parts)
        times = [window(setting, n, parts) for n in parts.threads]
        cells = [f"{time / 1000:.2f} µs, {one / time:.1f}" for time in times]
        print(f"| {setting.name} | {setting.events:.0f} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
