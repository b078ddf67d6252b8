"""The sections of claims.md."""

import re
from pathlib import Path


def section(title: str) -> tuple[str, list[list[str]]]:
    """What it says before its table, and the table's cells."""
    text = Path(__file__).with_name("claims.md").read_text(encoding="utf-8")
    lines = text.split(f"\n## {title}\n")[1].split("\n## ")[0].splitlines()
    rows = [[cell.strip() for cell in re.split(r" \|(?: |$)", line[2:])[:4]] for line in lines if line.startswith("| ")]
    return " ".join(line for line in lines if line and not line.startswith("|")), rows[1:]
