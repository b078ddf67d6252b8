"""What `hmalloc profile` advises is true of a program that takes the advice: instructions are counted, one by one."""

import json
import os
import subprocess

import pytest
from conftest import ROOT

LIBRARY = ROOT / "build/release/libhmalloc.so"
STEPPED, PROFILED = 500, 200_000


@pytest.fixture(scope="session")
def plain(hmalloc, build):
    return build("advised.c", "plain", "-O2", "-g", "-pthread")


@pytest.fixture(scope="session")
def advised(hmalloc, build):
    return build("advised.c", "advised", "-O2", "-g", "-pthread", "-DADVISED", f"-I{ROOT / 'include'}",
                 LIBRARY, f"-Wl,-rpath,{LIBRARY.parent}")


@pytest.fixture(scope="session")
def steps(build):
    return build("steps.c", "steps", "-O2")


@pytest.fixture(scope="session")
def counted(steps):
    """The instructions of the main thread, which is alone in what is counted.  No memory goes back to the system meanwhile:
    when that falls due depends on the clock, which runs on while others have the processor."""

    def count(program, way):
        own = {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "HMALLOC_"))}
        result = subprocess.run([steps, program, way, str(STEPPED), "marked"], capture_output=True, text=True, timeout=300,
                                env=own | {"LD_PRELOAD": str(LIBRARY), "HMALLOC_DECAY_MS": "3600000"})
        if result.returncode == 77:
            pytest.skip("ptrace is not permitted")
        assert result.returncode == 0, result.stderr
        return int(result.stdout)

    return count


@pytest.fixture
def advice(hmalloc, tmp_path):
    def call(program, way, blocks=PROFILED, rate="4K"):
        file = tmp_path / "map.json"
        shown = hmalloc("profile", "--rate", rate, "--json", file, "--", program, way, blocks)
        assert shown.returncode == 0, shown.stderr
        found = json.loads(file.read_text())
        return [(each, found["sites"][each["site"]]) for each in found["advice"]]

    return call


@pytest.mark.parametrize("way, kind, function", [("own", "local", "own"), ("handed", "shared", "produce")])
def test_it_saves_what_it_says(advice, counted, plain, advised, way, kind, function):
    (given, site), = advice(plain, way)
    assert (given["kind"], site["function"], site["file"]) == (kind, function, "advised.c")
    assert given["blocks"] == pytest.approx(2 * PROFILED, rel=0.15), "each of the two rounds has so many"
    before, after = counted(plain, way), counted(advised, way)
    saved = (before - after) / STEPPED * 2 * PROFILED
    assert 0.85 <= given["saves_instructions"] / saved <= 1.35
    assert counted(plain, way) == pytest.approx(before, rel=0.02), "the count is the same however busy the machine is"


def test_who_has_taken_it_is_not_advised(advice, advised):
    assert advice(advised, "own") == []


def test_few_samples_are_no_evidence(advice, plain):
    assert advice(plain, "own", blocks=200, rate="4K") == []


# ---- Of what was never run. ------------------------------------------------------------------------------------------


def given_for(lives, function="make", taken=False, where="made"):
    """lives: samples, whether another thread freed them, the size of their blocks."""
    from hmalloc_lab.profile.advice import advise
    from hmalloc_lab.profile.sites import Map, Site
    from hmalloc_lab.profile.symbols import Frame

    site = Site(Frame(function, "/src/made.c", 7, where, 0x1000), takes_advice=taken)
    for samples, by_other, size in lives:
        for amount in (site.freed, site.handed_over if by_other else site.kept):
            amount.add(10 * samples, 10 * samples * size, samples)
        site.lives.append((10 * samples, 10 * samples * size))
    return advise(Map(4096, "", [], {}, [], {}, [site]))


@pytest.mark.parametrize("lives, kind", [
    ([(4000, False, 64)], "local"), ([(100, False, 4096)], "local"), ([(99, False, 64)], None),
    ([(4000, False, 64), (1, True, 64)], None), ([(4000, False, 64), (100, False, 128)], "local"),
    ([(100, False, 5120)], None), ([(950, True, 64), (50, False, 64)], "shared"), ([(949, True, 64), (51, False, 64)], None),
    ([(1000, True, 32768)], "shared"), ([(1000, True, 40960)], None), ([(1000, True, 64), (100, True, 80)], None),
    ([(1000, True, 65)], None), ([(1000, True, 4608)], "shared")])
def test_what_the_evidence_is_for(lives, kind):
    assert [each.kind for each in given_for(lives)] == ([kind] if kind else [])


def test_nothing_is_advised_twice_or_to_nobody():
    assert given_for([(4000, False, 64)], taken=True) == []
    assert given_for([(4000, False, 64)], function=None) == []


@pytest.mark.parametrize("library, advised", [
    ("libc.so.6", 0), ("libstdc++.so.6.0.30", 0), ("ld-linux-x86-64.so.2", 0), ("libm-2.31.so", 0), ("libcairo.so.2", 1),
    ("libcrypto.so.3", 1), ("ld", 1)])
def test_libraries_of_the_system_are_not_advised(library, advised):
    assert len(given_for([(4000, False, 64)], where=library)) == advised


def test_it_says_what_the_evidence_is():
    given, = given_for([(4000, False, 64)])
    assert given.text == ("made.c:7 (make): freed by its own thread in 4000 of 4000 samples: "
                          "hm_local_alloc and hm_local_free_sized, about 34 instructions less for each of 40000 blocks")
    assert (given.saves_instructions, given.blocks, given.samples, given.of) == (34 * 40000, 40000, 4000, 4000)


def test_the_sizes_of_small_blocks_are_the_librarys():
    import re

    from hmalloc_lab.profile.advice import _CLASSES

    text = (ROOT / "src/base/size_classes.h").read_text()
    assert len(_CLASSES) == int(re.search(r"kClasses = (\d+);", text)[1]) and _CLASSES[-1] == 32768
