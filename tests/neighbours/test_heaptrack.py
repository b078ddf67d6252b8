"""heaptrack comes before hmalloc, or into a process that runs on it, and counts each call."""

import re
import subprocess

import pytest
from conftest import LOST, beside, end, need, work

PAIRS = 20000
LOST_OF_ONE = "123.45K", str(LOST), "loses"


@pytest.fixture(autouse=True)
def heaptrack():
    need("heaptrack", "heaptrack_print")


def told(folder):
    """[calls, bytes lost, peak], and who has lost how much by how many calls."""
    file, = folder.glob("record.*")
    text = subprocess.run(["heaptrack_print", "--print-leaks=1", file], check=True, capture_output=True, text=True).stdout
    calls, lost, peak = (re.search(rf"^{name}: (\S+)", text, re.MULTILINE)[1] for name in (
        "calls to allocation functions", "total memory leaked", "peak heap memory consumption"))
    return [int(calls), lost, peak], re.findall(r"^(\S+) leaked over (\d+) calls from\n(\w+)", text, re.MULTILINE)


@pytest.mark.parametrize("way", ["preloaded", "shared"])
def test_it_counts_on_hmalloc_what_it_counts_on_glibc(built, tmp_path, way):
    found = {}
    for each in (way, "glibc"):
        (tmp_path / each).mkdir()
        built(each).run_by(["heaptrack", "--output", tmp_path / each / "record"], str(PAIRS), "1000")
        found[each] = told(tmp_path / each)
    (calls, *others), lost = found[way]
    # One more: with HMALLOC_VERBOSE hmalloc calls malloc to see whose it is.  heaptrack's own C++ library has a block, too.
    assert calls == found["glibc"][0][0] + 1 and PAIRS + LOST < calls < PAIRS + LOST + 4
    assert (others, lost) == (found["glibc"][0][1:], found["glibc"][1])
    assert LOST_OF_ONE in lost and others[0] == LOST_OF_ONE[0]


def test_it_comes_into_a_process_that_runs(built, tmp_path):
    need("gdb")
    with (built("preloaded").waiting(str(PAIRS), "1000") as process,
          beside("heaptrack", "--output", tmp_path / "record", "--pid", str(process.pid)) as tracker):
        said = ""
        for line in tracker.stdout:
            said += line
            if line == "injection finished\n":
                break
        if "ptrace" in said and "not permitted" in said:
            pytest.skip("nothing may be traced here")
        if "Couldn't write extended state status" in said:
            pytest.skip("this gdb cannot call functions on this processor, whose registers are more than it knows (on glibc neither)")
        assert said.endswith("injection finished\n"), said
        work(process)
        end(process)
        tracker.communicate()
    (calls, total, _), lost = told(tmp_path)
    assert (calls, total) == (PAIRS + LOST, LOST_OF_ONE[0]) and LOST_OF_ONE in lost
