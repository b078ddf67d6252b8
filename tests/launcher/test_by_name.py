"""The papers' allocators by name, in every command that takes an allocator."""

import json
import re

import pytest
from conftest import ROOT
from hmalloc_lab.allocators import choose, choose_several, told_apart
from hmalloc_lab.build_paths import BuildPaths

NAMES = re.search(r"^baselines='(.+)'$", (ROOT / "lab/shell/allocators.sh").read_text(), re.MULTILINE)[1].split()
BASELINES = ", ".join(NAMES)


@pytest.fixture(scope="module", autouse=True)
def there(hmalloc):
    """Whatever has to be built is built before any test looks at the output."""
    assert hmalloc("run", "--allocator", "one_lock", "--", "true").returncode == 0


@pytest.mark.parametrize("name", NAMES)
def test_a_program_runs_on_it(hmalloc, name):
    shown = hmalloc("run", "--allocator", name, "--", "cat", "/proc/self/maps")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert f"/baselines/lib{name}.so" in shown.stdout and "/libhmalloc.so" not in shown.stdout


def test_the_launcher_knows_all_that_are_built_and_the_help_names_them(hmalloc):
    # Of those that are built anew: what is left of older builds lies beside them.
    rules = (ROOT / "build/release/build.ninja").read_text()
    assert set(re.findall(r"^build baselines/lib(\S+)\.so:", rules, re.MULTILINE)) == set(NAMES)
    text = (ROOT / "lab/help/run.txt").read_text()
    assert all(name in text or re.fullmatch(r"vvmalloc-[23]", name) for name in NAMES)


@pytest.mark.parametrize("words", [
    ["run", "--allocator=one_lock"], ["compare", "-n", "1", "--allocator", "one_lock"],
    ["compare", "-n", "1", "--allocator", "hmalloc,one_lock"], ["compare", "-n", "1", "--against=one_lock"],
    ["pdes", "phold", "--end", "1", "--preload", "one_lock"]],
    ids=lambda words: f"{words[0]} {words[-1]}")
def test_what_is_missing_is_built(hmalloc, words):
    (ROOT / "build/release/baselines/libone_lock.so").unlink()
    shown = hmalloc(*words, *([] if words[0] == "pdes" else ["--", "true"]))
    assert shown.returncode == 0 and re.search(r"building hmalloc \.\.\..* done", shown.stderr)


def test_compare_takes_them_on_both_sides(hmalloc, tmp_path):
    file = tmp_path / "result.json"
    shown = hmalloc("compare", "-n", "1", "--json", file, "--allocator", "one_lock", "--against", "hoard", "--", "true")
    assert shown.returncode == 0, shown.stderr
    result = json.loads(file.read_text())
    assert result["candidates"][0]["library"].endswith("/baselines/libone_lock.so")
    assert result["reference"]["library"].endswith("/baselines/libhoard.so")
    assert "one_lock was in use" in shown.stdout


def test_hmalloc_as_published_is_not_hmalloc(hmalloc):
    shown = hmalloc("compare", "-n", "1", "--allocator", "hmalloc_paper", "--", "true")
    assert re.search("hmalloc_paper was in use: (it was seen in the process|the loader binds malloc to it)",
                     shown.stdout.replace("\n", " "))
    found = hmalloc("compare", "-n", "1", "--show-output", "--against", "hmalloc_paper", "--", "sh", "-c",
                    "echo $LD_PRELOAD", LD_PRELOAD=str(ROOT / "build/release/libhmalloc.so"))
    assert not [line for line in found.stdout.splitlines() if "libhmalloc.so" in line and "libhmalloc_paper.so" in line]


def test_doctor_tells_them_from_hmalloc(hmalloc):
    library = (ROOT / "build/release/baselines/libhmalloc_paper.so").resolve()
    shown = hmalloc("run", "--allocator", "hmalloc_paper", "--", "sh", "-c", 'env -u LD_PRELOAD "$0" doctor $$; exit 0',
                    ROOT / "hmalloc")
    assert "no: hmalloc does not serve sh (process " in shown.stdout
    assert f"It runs with {library}." in shown.stdout.replace("\n", " ")


def test_an_unknown_name_lists_them(hmalloc):
    shown = hmalloc("compare", "--allocator", "frob", "--", "true")
    assert (shown.returncode, shown.stderr.count("\n")) == (2, 1)
    assert shown.stderr.startswith("hmalloc: frob: no such allocator (hmalloc, checked, hardened, system, glibc, ")
    assert all(name in shown.stderr for name in NAMES)


def test_compare_finds_peers_by_name_as_run_does(tmp_path):
    peer = tmp_path / "peers/mine/libmine.so"
    peer.parent.mkdir(parents=True)
    peer.symlink_to(ROOT / "build/release/baselines/libhoard.so")
    assert choose("mine", BuildPaths(None, tmp_path / "release/hmalloc-measure")).library == peer.resolve()


def test_namesakes_are_told_apart_by_their_paths(tmp_path):
    paths = [tmp_path / folder / "libmine.so" for folder in ("one", "two")]
    for path in paths:
        path.parent.mkdir()
        path.write_bytes((ROOT / "build/release/baselines/libhoard.so").read_bytes())
    built = BuildPaths(None, None)
    chosen = choose_several([f"{paths[0]},{paths[1]}", "system,system"], built)
    assert [each.name for each in told_apart(chosen)] == [str(paths[0]), str(paths[1]), "system"]
    assert [each.name for each in told_apart([choose(str(paths[0]), built), choose(str(paths[0]), built)])] == ["mine", "mine"]


def test_two_builds_are_compared_under_two_names(hmalloc, tmp_path):
    other = tmp_path / "libhmalloc.so"
    other.write_bytes((ROOT / "build/release/libhmalloc.so").read_bytes())
    shown = hmalloc("compare", "-n", "1", "--allocator", other, "--against", "hmalloc", "true").stdout
    assert f"{other} / {ROOT}/build/release/libhmalloc.so" in " ".join(shown.split()), shown


def test_they_serve_events_and_traces(hmalloc, tmp_path):
    shown = hmalloc("pdes", "phold", "--preload", "hoard", "--json", "--lps", "64", "--end", "5")
    assert json.loads(shown.stdout.splitlines()[-1])["malloc_library"].endswith("/baselines/libhoard.so"), shown.stderr
    assert hmalloc("trace", "record", "-o", tmp_path / "trace", "--", "ls").returncode == 0
    played = hmalloc("trace", "replay", "--json", "--allocator", "vvmalloc-4", tmp_path / "trace")
    assert json.loads(played.stdout)["malloc_library"].endswith("/baselines/libvvmalloc-4.so"), played.stderr
