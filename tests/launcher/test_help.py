"""Every command explains itself, and what it explains is what it takes."""

import re

import pytest
from conftest import ROOT

COMMANDS = ["compare", "run", "profile", "doctor", "test", "bench", "trace", "pdes", "install"]
WIDTH = 80


def options_in(text):
    return set(re.findall(r"(?<!\w)--[a-z][a-z-]*", text))


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["help"], []])
def test_the_overview_names_every_command(hmalloc, arguments):
    shown = hmalloc(*arguments)
    assert shown.returncode == 0 and shown.stderr == ""
    for command in COMMANDS:
        assert f"hmalloc {command}" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= WIDTH


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(hmalloc, command):
    shown = hmalloc(command, "--help")
    assert shown.returncode == 0 and shown.stderr == ""
    assert shown.stdout.startswith(f"hmalloc {command}")
    assert max(map(len, shown.stdout.splitlines())) <= WIDTH


def test_the_help_of_compare_and_its_options_agree(hmalloc):
    import typer.main
    from hmalloc_lab.cli import app

    command = typer.main.get_command(app).commands["compare"]
    taken = {name for parameter in command.params for name in parameter.opts if name.startswith("--")}
    assert taken - {"--help"} == options_in(hmalloc("compare", "--help").stdout)


@pytest.mark.parametrize("words", [["compare", "-n", "3"], ["test", "fuzz"], ["test", "all"], ["bench", "quick"]])
def test_help_after_other_words_is_the_same(hmalloc, words):
    assert hmalloc(*words, "--help").stdout == hmalloc(words[0], "--help").stdout


def test_every_option_is_in_the_man_page():
    page = (ROOT / "docs/man/hmalloc.1.scd").read_text()
    for command in COMMANDS:
        text = (ROOT / f"lab/help/{command}.txt").read_text()
        assert options_in(text) - {"--help"} <= options_in(page)


def test_version(hmalloc):
    assert re.fullmatch(r"hmalloc \d+\.\d+\.\d+\n", hmalloc("--version").stdout)
