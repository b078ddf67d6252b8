"""The wheel, made and installed as a user does: with the library in it, and of the same answer."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[3] / "pdes" / "python"
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "HM_", "HMALLOC_"))}


def must(*command, **more):
    done = subprocess.run([*map(str, command)], env=CLEAN, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="session")
def python(tmp_path_factory):
    """Of an environment that has the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    must(sys.executable, "-m", "venv", "--system-site-packages", folder / "venv")
    python = folder / "venv" / "bin" / "python"
    must(python, "-m", "pip", "wheel", "--disable-pip-version-check", "--no-deps", "-w", folder, SOURCES, timeout=600)
    [wheel] = folder.glob("*.whl")
    assert re.fullmatch(r"hmalloc_pdes-[\d.]+-py3-none-\w+\.whl", wheel.name)
    names = zipfile.ZipFile(wheel).namelist()
    assert "hmalloc_pdes/libhmalloc-pdes.so" in names and not any(name.endswith((".a", ".h", ".cmake")) for name in names)
    must(python, "-m", "pip", "install", "--disable-pip-version-check", "--no-deps", wheel)
    return python


def test_installed_it_has_the_answer_of_the_build(python):
    from models import phold

    text = "from models import phold; print(hex(phold.run(lps=100, end=10).digest), phold.run.__func__.__code__.co_filename)"
    digest, place = must(python, "-B", "-c", text, cwd=Path(__file__).parent).split()
    assert digest == hex(phold.run(lps=100, end=10).digest)
    assert "site-packages" in place
