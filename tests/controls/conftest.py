"""What the positive controls share.  Each plants a fault, and asks the gate that should keep it out."""

import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).resolve().parent / "programs"
for folder in (ROOT / "lab", ROOT / "tests" / "tools", ROOT / "tests" / "codegen", ROOT / "tests" / "lint"):
    sys.path.insert(0, str(folder))


@pytest.fixture
def said():
    """Calls what prints on a console: its answer, and the text."""

    def call(function, *arguments, **options):
        text = StringIO()
        return function(Console(file=text, width=120, highlight=False), *arguments, **options), text.getvalue()

    return call
