"""The library under test, and how it shows that a program really used it."""

import re
from dataclasses import dataclass
from pathlib import Path

from harness import environment

from baselines import BASELINES, prefix_of


@dataclass(frozen=True)
class Library:
    path: Path
    name: str  # hmalloc, a baseline, or anything else: that one shows nothing
    guards: bool = False  # HMALLOC_GUARD

    def serves(self, **env):
        """The environment in which it serves a program."""
        return environment(self.path, **({"HMALLOC_GUARD": 1} if self.guards else {}), **env)

    def told_to_show(self, folder, **env):
        """The environment under which a program shows it; folder: of the proof alone."""
        if self.name in BASELINES:
            env[prefix_of(self.name) + "STATS_FILE"] = Path(folder) / "stats"
        elif self.name == "hmalloc":
            env["HMALLOC_VERBOSE"] = 1
        return self.serves(**env)

    def not_in_use(self, folder, errors):
        """The complaint, or nothing.  errors: what the program wrote on descriptor 2."""
        if self.name in BASELINES:
            stats = Path(folder) / "stats"
            lines = stats.read_text().splitlines() if stats.exists() else []
            if not any(line.startswith(f'{{"allocator":"{self.name}"') for line in lines):
                return f"{self.name} was not in use: no line of its counters"
        elif self.name == "hmalloc" and not re.search("^hmalloc.*active", errors, re.MULTILINE):
            return "hmalloc was not in use"
        return ""


def without_own_lines(text):
    return "\n".join(line for line in text.splitlines() if not line.startswith("hmalloc"))
