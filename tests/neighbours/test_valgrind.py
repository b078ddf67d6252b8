"""valgrind puts a malloc of its own in the place of every other: on hmalloc it finds what it finds anywhere."""

import re
import xml.etree.ElementTree as xml

import pytest
from conftest import LOST_BYTES, need

WAYS = ["preloaded", "shared", "static"]
WRONG = {("InvalidRead", "reads_freed", 0), ("InvalidWrite", "writes_past_the_end", 0),
         ("Leak_DefinitelyLost", "loses", LOST_BYTES)}


@pytest.fixture(autouse=True)
def valgrind():
    need("valgrind")


def found(program, tmp_path, *options, served=False):
    """{(kind, the program's innermost function, bytes lost)}"""
    file = tmp_path / "found.xml"
    program.run_by(["valgrind", "--leak-check=full", "--xml=yes", f"--xml-file={file}", *options], "1000", "1000", "wrong",
                   served=served)
    return {(error.findtext("kind"),
             next((frame.findtext("fn") for frame in error.iter("frame") if frame.findtext("file") == "known.c"), None),
             int(error.findtext("xwhat/leakedbytes", "0")))
            for error in xml.parse(file).iter("error")}


@pytest.mark.parametrize("way", WAYS)
def test_memcheck_finds_what_is_wrong_and_nothing_else(built, tmp_path, way):
    assert found(built(way), tmp_path) == WRONG


def test_the_spelling_with_a_star_is_the_same(built, tmp_path):
    assert found(built("preloaded"), tmp_path, "--soname-synonyms=somalloc=libhmalloc.so*") == WRONG


@pytest.mark.parametrize("way, name", [*[(way, "nouserintercepts") for way in WAYS], ("preloaded", "libhmalloc.so")])
def test_hmalloc_itself_may_run_under_memcheck(built, tmp_path, way, name):
    """Which then knows of no block, and has nothing to say of how hmalloc goes about its memory."""
    assert found(built(way), tmp_path, f"--soname-synonyms=somalloc={name}", served=True) == set()


def test_who_mixes_names_needs_hmalloc_itself(built):
    program = built("shared", "mixed.c")
    quiet = program.run_by(["valgrind", "--error-exitcode=9", "--soname-synonyms=somalloc=nouserintercepts"])
    assert "ERROR SUMMARY: 0 errors" in quiet.stderr


@pytest.mark.parametrize("way", WAYS)
def test_massif_knows_the_peak_and_whose_it_is(built, tmp_path, way):
    file = tmp_path / "massif"
    built(way).run_by(["valgrind", "--tool=massif", "--detailed-freq=1", f"--massif-out-file={file}"], "1000", "1000",
                      served=False)
    text = file.read_text()
    assert max(map(int, re.findall(r"^mem_heap_B=(\d+)$", text, re.MULTILINE))) == pytest.approx(LOST_BYTES + 1000, abs=16)
    assert re.search(rf"n1: {LOST_BYTES} 0x\w+: loses \(known\.c:\d+\)", text)
