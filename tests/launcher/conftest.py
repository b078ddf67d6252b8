"""What the tests of the launcher share: the launcher itself, and small programs to try it on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = Path(__file__).resolve().parent / "programs"
LAUNCHER = os.environ.get("HMALLOC_LAUNCHER", str(ROOT / "hmalloc"))
sys.path.insert(0, str(ROOT / "lab"))
sys.path.append(str(ROOT / "tests/tools"))  # after this folder, which has a conftest.py, too


@pytest.fixture(scope="session")
def hmalloc():
    """Calls the launcher as a user does, with neither terminal nor input."""

    def call(*arguments, folder=None, **environment):
        own = {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "HMALLOC_"))}
        return subprocess.run(
            [LAUNCHER, *map(str, arguments)], env=own | environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=300, cwd=folder)

    # Whatever has to be built is built before any test looks at the output.
    assert call("doctor", "--", "/bin/sh").returncode == 0
    return call


@pytest.fixture(scope="session")
def build(tmp_path_factory):
    """Compiles a program of programs/ and says where it is."""
    folder = tmp_path_factory.mktemp("programs")

    def compile(source, name, *options):
        program = folder / name
        subprocess.run(["gcc", "-O1", SOURCES / source, "-o", program, *options], check=True)
        return program

    return compile


@pytest.fixture
def script(tmp_path):
    def write(text, name="script", mode=0o755):
        path = tmp_path / name
        path.write_text(text)
        path.chmod(mode)
        return path

    return write
