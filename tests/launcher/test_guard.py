"""hmalloc run --guard: what a program that makes mistakes is told."""

import re
import subprocess

import pytest


@pytest.fixture(scope="module")
def program(build):
    return build("guarded.c", "guarded", "-g", "-O1")


def test_a_program_without_mistakes_is_as_it_was(hmalloc, program):
    shown = hmalloc("run", "--guard", "--", program)
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, "end\n", "")


@pytest.mark.parametrize("mistake, said", [
    ("read-behind", r"right behind a block of \d+ bytes\n  allocated by"),
    ("read-in-front", r"1 byte in front of a block of \d+ bytes\n  allocated by"),
    ("read-after-free", r"3 bytes into a block of \d+ bytes that was freed\n  freed by")])
def test_a_mistake_ends_the_program_with_an_explanation(hmalloc, program, mistake, said):
    shown = hmalloc("run", "--guard", "--", program, mistake, 10**12)
    assert shown.returncode == -11 and shown.stdout == ""
    assert re.match(r"hmalloc: (read|access) at 0x[0-9a-f]+, " + said, shown.stderr), shown.stderr
    assert hmalloc("run", "--", program, mistake).returncode == 0, "without guards nobody minds"


# As docs/observability.md says: one less than the address, for that is where the call returns to.
def test_the_places_are_those_of_the_source(hmalloc, program):
    said = hmalloc("run", "--guard", "--", program, "read-after-free", 10**12).stderr
    for what, function in ("freed", "free_here"), ("allocated", "allocate_here"):
        offset = re.search(rf"  {what} by thread \d+, from\n    #0 0x[0-9a-f]+ \S*/guarded\+(0x[0-9a-f]+)\n", said)[1]
        place = subprocess.run(["addr2line", "-fe", program, hex(int(offset, 16) - 1)], capture_output=True, text=True).stdout
        assert place.startswith(function), said


def test_an_action_of_the_programs_own_comes_instead(hmalloc, program):
    shown = hmalloc("run", "--guard", "--", program, "handled", 10**12)
    assert shown.returncode == 33 and shown.stderr == "own handler\n"


def test_another_crash_is_a_crash(hmalloc, program):
    shown = hmalloc("run", "--guard", "--", program, "crash")
    assert shown.returncode == -11 and shown.stderr == ""


def test_the_hardened_library_says_that_it_does_not(hmalloc, program):
    shown = hmalloc("run", "--guard", "--hardened", "--", program)
    assert shown.returncode == 0 and "HMALLOC_GUARD ignored" in shown.stderr
