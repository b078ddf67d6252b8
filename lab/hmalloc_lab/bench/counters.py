"""What a baseline counts while it serves a program: numbers that explain its time and its memory."""

import json
from pathlib import Path


def read(path: Path) -> dict[str, int | float]:
    """Metrics `counter_NAME`; none if nothing was written.  A ValueError says that it cannot be read.

    Every process of a run appends a line when it ends.  The last is the measured program's own: it waits for the
    processes that it starts."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    said = json.loads(lines[-1]) if lines else {}
    if not isinstance(said, dict):
        raise ValueError("no object")
    return {f"counter_{name}": value for name, value in said.items()
            if isinstance(value, (int, float)) and not isinstance(value, bool)}
