"""The pages about the engine say what is so: the tutorial of docs/pdes.md and the newcomer's hour are followed as a new user
would, its options are those of --help, the library of models shows the code and the results that they have, and the table of
the window model is what its script prints."""

import re
import shlex
import shutil
import subprocess
import sys

import pytest
from programs import BUILD, CLEAN, ROOT, model, run

PAGE = (ROOT / "docs" / "pdes.md").read_text()
TUTORIAL, REFERENCE = PAGE.split("\n# Reference\n")
MODELS = [(ROOT / "docs" / page).read_text() for page in ("pdes-library.md", "pdes-models.md")]
BLOCK = re.compile(r"^```(\S+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", BUILD, "--prefix", folder, check=True, capture_output=False)
    return folder


def commands(block: str):
    """Each command of a console block with the lines that the page shows under it."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown.splitlines()


def missing(shown: list[str], output: str) -> str | None:
    """The first shown line that is not in the output, after those before it; `...` is anything, a line of its own any
    number of lines, and spaces between columns are as many as there are."""
    lines = iter(output.splitlines())
    for line in shown:
        words = re.escape(line.rstrip()).replace(r"\.\.\.", ".*")
        pattern = re.compile(re.sub(r"(\\ )+", " +", words) + r"\s*$")
        if line.strip() not in ("", "...") and not any(pattern.match(candidate) for candidate in lines):
            return line
    return None


def digests(output: str) -> set[str]:
    return set(re.findall(r"\b0x[0-9a-f]{16}\b", output))


def followed(page: str, prefix, tmp_path) -> set[str]:
    """Does what the page shows; returns the digests."""
    seen = set()
    for kind, name, text in BLOCK.findall(page):
        if name:
            (tmp_path / name).write_text(text)
        for command, shown in commands(text) if kind == "console" else ():
            if command.startswith("mpirun") and shutil.which("mpirun") is None:
                continue
            done = run(command, shell=True, cwd=tmp_path, env=CLEAN | {"PREFIX": str(prefix)}, timeout=300,
                       capture_output=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            fails = any(line.startswith("shops: ") and " events in " not in line for line in shown)
            assert (done.returncode != 0) == fails, f"$ {command}\n{done.stdout}"
            absent = missing(shown, done.stdout)
            assert absent is None, f"$ {command}\nnot said: {absent}\n{done.stdout}"
            seen |= set() if fails else digests(done.stdout)
    return seen


def test_the_tutorial_works_as_shown(prefix, tmp_path):
    assert len(digests(TUTORIAL)) == 1 and followed(TUTORIAL, prefix, tmp_path) == digests(TUTORIAL)


def test_what_the_newcomer_did_works_as_shown(prefix, tmp_path):
    page = (ROOT / "docs" / "pdes-newcomer.md").read_text()
    assert len(digests(page)) == 1 and followed(page, prefix, tmp_path) == digests(page)


def test_the_template_is_a_project_by_itself(prefix, tmp_path):
    source, build = tmp_path / "template", tmp_path / "build"
    shutil.copytree(ROOT / "pdes" / "models" / "template", source)
    run("cmake", "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", check=True, capture_output=False)
    run("cmake", "--build", build, check=True, capture_output=False)
    answers = [run(build / "my-model", "--end", "50", *how, check=True).stdout
               for how in ([], ["--threads", "2"], ["--threads", "3", "--sync", "neighbours"])]
    assert len(digests("".join(answers))) == 1 and all(map(digests, answers))


def test_options_are_those_of_help_in_its_words():
    """Each row of the table: | `--name UNIT` | `value`, `value`: words of the help |."""
    text = run(model("phold"), "--help", check=True).stdout
    table = REFERENCE.split("\n## Options\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(--[a-z-]+)[^|]*\| (?:`[^|]*`: )?([^|]*[^| ]) *\|$", table, re.MULTILINE)
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
    run("c++", "-std=c++20", "-fsyntax-only", "-I", ROOT / "include", check, check=True)


def test_the_window_model_prints_the_table_that_is_shown():
    design = (ROOT / "docs" / "pdes-design.md").read_text()
    command = re.search(r"^    python3 (bench/studies/window_model\.py.*)$", design, re.MULTILINE).group(1)
    assert run(sys.executable, *shlex.split(command), cwd=ROOT, check=True).stdout in design


@pytest.mark.parametrize("page", MODELS, ids=("library", "models"))
def test_code_of_a_model_that_is_shown_is_in_it(page):
    def lines(text):
        return "\n".join(line.strip() for line in text.splitlines())

    shown = re.findall(r"^```cpp (\S+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    models = re.findall(r"^    \$ \./hmalloc pdes (\S+)", page, re.MULTILINE)
    assert {name.partition(".")[0] for name, _ in shown} == set(models) and len(shown) == len(set(models))
    for name, code in shown:
        assert lines(code) in lines((ROOT / "pdes" / "models" / name).read_text()), name


# Those with a file are left out: it comes from a registry.
@pytest.mark.parametrize("words, said", [
    run for run in re.findall(r"^    \$ \./hmalloc pdes (.*)\n((?:    .+\n)+)", "".join(MODELS), re.MULTILINE)
    if ".csv" not in run[0]], ids=lambda text: text if "\n" not in text else "")
def test_a_model_says_what_is_shown(words, said):
    name, *options = words.split()
    output = run(model(name), *options, check=True).stdout
    assert missing(said.splitlines(), output) is None, output
