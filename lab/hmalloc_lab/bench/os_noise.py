"""Is the machine ours?  Asked before each round."""

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..errors import Failure

# An idle machine loses about half a percent to its own timers.
_NOISY_SHARE = 0.03
_PROBE_MS = 250


@dataclass(frozen=True)
class OsNoise:
    lost_share: float       # of the CPU time of all CPUs
    longest_gap_us: float

    @property
    def noisy(self) -> bool:
        return self.lost_share > _NOISY_SHARE


def probe(natives: Path) -> OsNoise:
    done = subprocess.run([natives / "hmalloc-os-noise", str(_PROBE_MS)], capture_output=True, text=True, check=False)
    rows = [line.split() for line in done.stdout.splitlines()]
    if done.returncode != 0 or not rows:
        raise Failure(f"hmalloc-os-noise failed: {done.stderr.strip() or 'it found no CPU'}", 1)
    return OsNoise(sum(float(lost) for _, lost, _ in rows) / len(rows), max(float(longest) for *_, longest in rows))


def wait_for_quiet(ask: Callable[[], OsNoise], tries: int, pause_s: float) -> OsNoise:
    """The first finding that is not noisy, or the last one."""
    found = ask()
    for _ in range(tries - 1):
        if not found.noisy:
            break
        time.sleep(pause_s)
        found = ask()
    return found
