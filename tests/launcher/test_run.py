"""hmalloc run: the program as it is, on hmalloc."""

import re

import pytest
from conftest import ROOT


@pytest.mark.parametrize("words, library", [
    (["--"], "/libhmalloc.so"), (["--checked"], "/libhmalloc-checked.so"),
    (["--hardened"], "/libhmalloc-hardened.so"), (["--allocator", "system"], None)])
def test_the_program_runs_on_what_is_asked_for(hmalloc, words, library):
    shown = hmalloc("run", *words, "cat", "/proc/self/maps")
    assert shown.stderr == "" and (library in shown.stdout if library else "libhmalloc" not in shown.stdout)


@pytest.mark.parametrize("words, variant", [(["--"], ""), (["--checked"], " checked"), (["--hardened"], " hardened")])
def test_verbose_says_which_library_it_is(hmalloc, words, variant):
    said = hmalloc("run", *words, "true", HMALLOC_VERBOSE="1").stderr
    assert re.match(rf"hmalloc [\d.]+\w*{variant}: active in process \d+ \(true\)\n", said), said


@pytest.mark.parametrize("code", [0, 1, 77])
def test_the_exit_code_is_the_programs(hmalloc, code):
    assert hmalloc("run", "--", "sh", "-c", f"exit {code}").returncode == code


def test_a_signal_that_ends_the_program_is_passed_on(hmalloc):
    assert hmalloc("run", "--", "sh", "-c", "kill -TERM $$").returncode == -15


def test_arguments_arrive_unchanged(hmalloc):
    arguments = ["a b", "", "*", "$HOME", "--stats", "'"]
    assert hmalloc("run", "printf", "<%s>", *arguments).stdout == "".join(f"<{text}>" for text in arguments)


def test_what_is_preloaded_already_stays(hmalloc):
    shown = hmalloc("run", "--", "sh", "-c", "echo $LD_PRELOAD", LD_PRELOAD="libm.so.6")
    assert shown.stdout.strip().endswith("libhmalloc.so:libm.so.6")


@pytest.mark.parametrize("library", [f"{ROOT}/build/release/libhmalloc.so", "libhmalloc.so"])
@pytest.mark.parametrize("words, left", [(["--allocator", "system"], "libm.so.6"), (["--"], "/libhmalloc.so:libm.so.6")])
def test_the_library_is_not_preloaded_twice_nor_below_the_systems_malloc(hmalloc, library, words, left):
    shown = hmalloc("run", *words, "sh", "-c", "echo $LD_PRELOAD", LD_PRELOAD=f"{library}:libm.so.6").stdout.strip()
    assert shown.endswith(left) and shown.count("libhmalloc") == left.count("libhmalloc")


def test_the_switch_of_the_launcher_is_no_option_of_the_library(hmalloc):
    assert "HMALLOC_INSTALL_PACKAGES" not in hmalloc("run", "true", HMALLOC_INSTALL_PACKAGES="0").stderr


@pytest.mark.parametrize("option, value", [("--stats", "1"), ("--stats=json", "json"), ("--stats=openmetrics", "openmetrics")])
def test_statistics(hmalloc, option, value):
    assert hmalloc("run", option, "--", "sh", "-c", "echo $HMALLOC_SHOW_STATS").stdout == f"{value}\n"
    assert hmalloc("run", option, "--", "true").stderr != ""


@pytest.mark.parametrize("option, value", [("--profile", "heap"), ("--profile=64K", "heap:rate=64K")])
def test_a_profile(hmalloc, option, value, tmp_path):
    said = hmalloc("run", option, "--", "sh", "-c", "echo $HMALLOC_PROFILE", HMALLOC_PROFILE_FILE="/dev/null").stdout
    assert said == f"{value}\n"
    result = hmalloc("run", option, "--", "true", folder=tmp_path)
    assert (result.stdout, result.stderr) == ("", "")
    assert len(list(tmp_path.glob("hmalloc.*.pb"))) == 1
    wrong = hmalloc("run", "--profile=much", "--", "true", folder=tmp_path)
    assert (wrong.returncode, wrong.stderr) == (0, "hmalloc: HMALLOC_PROFILE=heap:rate=much is not understood; ignored\n")
