"""The pages about the engine say what is so: the tutorial of docs/pdes.md is followed as a new user would, its options
are those of --help, and the table of the window model is what its script prints."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("HMALLOC_BUILD", ROOT / "build" / "release"))
PAGE = (ROOT / "docs" / "pdes.md").read_text()
TUTORIAL, REFERENCE = PAGE.split("\n# Reference\n")
BLOCK = re.compile(r"^```(\S+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def prefix(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("prefix")
    subprocess.run(["cmake", "--install", BUILD, "--prefix", folder], check=True, stdout=subprocess.DEVNULL)
    return folder


def commands(block: str):
    """Each command of a console block with the lines that the page shows under it."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown.splitlines()


def looks_like(shown: str) -> re.Pattern:
    """A shown line as a pattern: `...` is anything, and spaces between columns are as many as there are."""
    words = re.escape(shown.rstrip()).replace(r"\.\.\.", ".*")
    return re.compile(re.sub(r"(\\ )+", " +", words) + r"\s*$")


def missing(shown: list[str], output: str) -> str | None:
    """The first shown line that is not in the output, after those before it; a line `...` stands for any number."""
    lines = iter(output.splitlines())
    for line in shown:
        if line.strip() == "..." or not line.strip():
            continue
        pattern = looks_like(line)
        if not any(pattern.match(candidate) for candidate in lines):
            return line
    return None


def digests(output: str) -> set[str]:
    return set(re.findall(r"\b0x[0-9a-f]{16}\b", output))


def test_the_tutorial_works_as_shown(prefix, tmp_path):
    environment = {**os.environ, "PREFIX": str(prefix), "OMPI_ALLOW_RUN_AS_ROOT": "1",
                   "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    seen = set()
    for kind, name, text in BLOCK.findall(TUTORIAL):
        if name:
            (tmp_path / name).write_text(text)
        if kind != "console":
            continue
        for command, shown in commands(text):
            if command.startswith("mpirun") and shutil.which("mpirun") is None:
                continue
            run = subprocess.run(command, shell=True, cwd=tmp_path, env=environment, timeout=300, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            fails = any(line.startswith("shops: ") and " events in " not in line for line in shown)
            assert (run.returncode != 0) == fails, f"$ {command}\n{run.stdout}"
            absent = missing(shown, run.stdout)
            assert absent is None, f"$ {command}\nnot said: {absent}\n{run.stdout}"
            seen |= set() if fails else digests(run.stdout)
    assert len(seen) == 1 and seen == digests(TUTORIAL)


def test_every_file_of_the_tutorial_is_short():
    for _, name, text in BLOCK.findall(TUTORIAL):
        assert len(text.splitlines()) <= 50, name


def test_options_are_those_of_help_in_its_words():
    """Each row of the table: | `--name UNIT` | `value`, `value`: words of the help |."""
    program = BUILD / "pdes" / "hmalloc-pdes-phold"
    text = subprocess.run([program, "--help"], check=True, capture_output=True, text=True).stdout
    table = REFERENCE.split("\n## Options\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(--[a-z-]+)[^|]*\| (?:`[^|]*`: )?([^|]*[^| ]) *\|$", table, re.MULTILINE)
    assert len(rows) > 15
    flat = " ".join(text.split())
    assert [words for _, words in rows if words not in flat] == []
    common = text[text.index("\nSimulation:"):]
    assert {option for option, _ in rows} == set(re.findall(r"^ +(--[a-z-]+)", common, re.MULTILINE)) - {"--help"}


def test_limits_are_those_of_the_headers(tmp_path):
    table = REFERENCE.split("\n## Limits\n")[1]
    said = {name: number.replace(",", "") for name, number in re.findall(r"^\| ([^|]+) \| ([\d,]+)", table, re.MULTILINE)}
    check = tmp_path / "limits.cc"
    check.write_text(f"""#include <pdes/pdes.h>
        static_assert(pdes::kMaxLps == {said["LPs"]} && pdes::kLastPriority + 1 == {said["priorities"]} &&
                      pdes::kMaxPayload == {said["payload of an event"]});""")
    subprocess.run(["c++", "-std=c++20", "-fsyntax-only", "-I", ROOT / "include", check], check=True)


def test_the_window_model_prints_the_table_that_is_shown():
    design = (ROOT / "docs" / "pdes-design.md").read_text()
    command = re.search(r"^    python3 (bench/studies/window_model\.py.*)$", design, re.MULTILINE).group(1)
    printed = subprocess.run([sys.executable, *shlex.split(command)], cwd=ROOT, check=True, capture_output=True,
                             text=True).stdout
    assert printed in design
