"""hmalloc test fuzz: which inputs a fuzzer reads, and that none is lost; the fuzzer is played."""

import fcntl
import subprocess

import pytest
from conftest import ROOT

SECONDS = 10
PLAYED = r"""
set -eu
say() { :; }
here=$1 state=$1/build fuzz_state=$1/build/fuzz failed='' only='' builds=plain
. "$2/lab/shell/fuzz.sh"
run_fuzzer "$3" plain slices slices
"""
REFUSING = 'die() { shift; echo "$@" >&2; exit 2; }; '
# Says how many inputs it was given beside its own folder, and finds one more.
FUZZER = r"""#!/bin/sh
for folder; do case $folder in /*/new/*) own=$folder ;; /*/old/*) old=$folder ;; esac; done
echo "stat::number_of_executed_units: $(ls "$old" | wc -l)"
echo found >"$own/one-more"
"""


@pytest.fixture
def state(tmp_path):
    fuzzer = tmp_path / "build/fuzz/tests/fuzz/hm_fuzz_slices"
    fuzzer.parent.mkdir(parents=True)
    fuzzer.write_text(FUZZER)
    fuzzer.chmod(0o755)
    (tmp_path / "build/fuzz/logs").mkdir()
    return tmp_path / "build/fuzz"


@pytest.mark.parametrize("kept, read", [(0, 0), (7, 7), (300, 2 * SECONDS)])
def test_a_fuzzer_reads_as_many_inputs_as_its_time_allows_and_none_is_lost(state, kept, read):
    corpus = state / "corpus/slices"
    corpus.mkdir(parents=True)
    for number in range(kept):
        (corpus / f"input {number}").write_text(str(number))
    subprocess.run(["sh", "-c", PLAYED, "sh", state.parent.parent, ROOT, str(SECONDS)], check=True)
    assert f"| slices | plain | 0 | {read} |" in (state / "log.md").read_text()
    assert {path.name for path in corpus.iterdir()} == {"one-more", *(f"input {number}" for number in range(kept))}


def test_two_campaigns_do_not_write_into_each_others_logs(state):
    played = PLAYED.replace("run_fuzzer", "need_fuzzers() { :; }; run_fuzzers # run_fuzzer")
    with open(state / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        run = subprocess.run(["sh", "-c", REFUSING + played, "sh", state.parent.parent, ROOT, "1"], capture_output=True, text=True)
    assert run.returncode == 2 and "another campaign writes to" in run.stderr, run


def test_what_a_stopped_run_had_found_is_kept(state):
    left = state / "new/plain-slices"
    left.mkdir(parents=True)
    (left / "of a stopped run").write_text("found")
    subprocess.run(["sh", "-c", PLAYED, "sh", state.parent.parent, ROOT, str(SECONDS)], check=True)
    assert {path.name for path in (state / "corpus/slices").iterdir()} == {"one-more", "of a stopped run"}
