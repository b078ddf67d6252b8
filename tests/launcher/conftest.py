"""What the tests of the launcher share: the launcher itself, and small programs to try it on."""

import csv
import json
import os
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = Path(__file__).resolve().parent / "programs"
LAUNCHER = os.environ.get("HMALLOC_LAUNCHER", str(ROOT / "hmalloc"))
sys.path.insert(0, str(ROOT / "lab"))
sys.path.append(str(ROOT / "tests/tools"))  # after this folder, which has a conftest.py, too


def environment():
    return {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "HMALLOC_"))}


@pytest.fixture(scope="session")
def hmalloc():
    """Calls the launcher as a user does, with neither terminal nor input."""

    def call(*arguments, folder=None, **variables):
        return subprocess.run(
            [LAUNCHER, *map(str, arguments)], env=environment() | variables, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=600, cwd=folder)

    # Whatever has to be built is built before any test looks at the output.
    assert call("doctor", "--", "/bin/sh").returncode == 0
    return call


@pytest.fixture(scope="session")
def tool(hmalloc):
    """What the launcher starts, in a child of this process, which has read the modules already: that is most of what a call
    takes."""
    import pydantic.type_adapter  # noqa: F401  typer would, at each call
    from hmalloc_lab import cli

    release = ROOT / "build/release"

    def child(arguments, variables, files):
        for number, file in enumerate(files):
            os.dup2(file.fileno(), number)
        sys.stdin, sys.stdout, sys.stderr = (open(number, mode, closefd=False) for number, mode in enumerate("rww"))
        kept = environment() | variables
        os.environ.clear()
        os.environ.update(kept)
        sys.argv = [str(word) for word in (ROOT / "lab", "--library", release / "libhmalloc.so",
                                           "--measurer", release / "hmalloc-measure", *arguments)]
        try:
            cli.main()
        except SystemExit as end:
            return end.code or 0
        except BaseException:
            traceback.print_exc()
        return 1

    def call(*arguments, stdout=None, **variables):
        with open(os.devnull) as nothing, tempfile.TemporaryFile("w+") as shown, tempfile.TemporaryFile("w+") as errors:
            process = os.fork()
            if process == 0:
                code = 1
                try:
                    code = child(arguments, variables, (nothing, stdout or shown, errors))
                    sys.stdout.flush()
                    sys.stderr.flush()
                finally:
                    os._exit(code)
            code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
            texts = [file.seek(0) or file.read() for file in (shown, errors)]
        return subprocess.CompletedProcess(arguments, code, *texts)

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


# ---- What the tests of tools that look at a process from outside share (heap_truth.py). ------------------------------------


@pytest.fixture(scope="session")
def truth_program(hmalloc, build):
    return build("heap_truth.c", "heap_truth", "-g", "-pthread", "-fno-builtin")


@pytest.fixture
def held(truth_program, tmp_path):
    from heap_truth import LIBRARY, Held

    found = Held([truth_program], tmp_path / "truth", LD_PRELOAD=str(LIBRARY))
    yield found
    found.end()


@pytest.fixture
def inspect(hmalloc, tmp_path):
    """The text, the document and the blocks."""

    def call(what, *options):
        document, blocks = tmp_path / "inspect.json", tmp_path / "blocks.csv"
        shown = hmalloc("inspect", what, "--json", document, "--blocks", blocks, *options)
        assert shown.returncode == 0, shown.stderr
        with blocks.open() as file:
            rows = [(int(row["address"], 16), int(row["size"]), row["state"]) for row in csv.DictReader(file)]
        return shown.stdout, json.loads(document.read_text()), rows

    return call
