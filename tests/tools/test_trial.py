"""One run: its cost, and every way in which it can end."""

import os
import time
from dataclasses import dataclass

import pytest
from hmalloc_lab.bench import participants, store, trial
from hmalloc_lab.bench.store import AllocatorRow

_JSON = '{"workload":"made-up","ns_per_op":7.5,"threads":1,"malloc_library":"%s","series":[[1,2]]}'


@dataclass(frozen=True)
class Tried:
    status: str
    reason: str
    metrics: dict
    resident: list


def tried(built, command: list[str], who: AllocatorRow, limit_s: float, environment: dict) -> Tried:
    try:
        return Tried(store.OK, "", *trial.measure(built.measurer, command, who, environment, limit_s))
    except trial.Discounted as why:
        return Tried(why.status, str(why), {}, [])


@pytest.fixture
def glibc(built):
    return next(row for row in participants.everybody(built, with_peers=False) if row.name == "glibc")


@pytest.fixture
def run(built, glibc):
    def call(script: str, who: AllocatorRow = glibc, limit_s: float = 10, **environment) -> Tried:
        return tried(built, ["/bin/sh", "-c", script], who, limit_s, environment)

    return call


def test_a_good_run_has_what_the_program_says_and_what_it_cost(run, glibc):
    outcome = run(f"sleep 0.2; echo some words; echo '{_JSON % glibc.library}'")
    assert (outcome.status, outcome.reason) == (store.OK, "")
    assert outcome.metrics["ns_per_op"] == 7.5
    assert outcome.metrics["series"] == [[1, 2]]
    assert 0.2 <= outcome.metrics["wall_s"] < 5
    assert {"user_s", "system_s", "cpu_s", "peak_kb", "minor_faults", "major_faults", "voluntary_switches",
            "involuntary_switches"} <= outcome.metrics.keys()
    assert "malloc_library" not in outcome.metrics


def test_the_resident_set_is_sampled(run, glibc):
    samples = run(f"sleep 0.3; echo '{_JSON % glibc.library}'").resident
    assert len(samples) > 20
    assert all(kb > 100 for _, kb in samples[1:-1])  # the first and the last may see hardly a process
    times = [at for at, _ in samples]
    assert times == sorted(times) and times[0] < 100


def test_a_long_run_leaves_no_more_samples_than_a_short_one(run, glibc):
    samples = run(f"sleep 2.5; echo '{_JSON % glibc.library}'").resident
    assert 100 <= len(samples) <= 200
    assert samples[-1][0] > 2000
    assert 600 < samples[len(samples) // 2][0] < 1800, "evenly spread"


def test_resident_memory_that_grows_is_seen_growing(built, glibc):
    program = "import time\nkept = []\nfor _ in range(5):\n kept.append(b'x' * 20_000_000); time.sleep(0.05)\n" \
              f"print('''{_JSON % glibc.library}''')"
    outcome = tried(built, ["/usr/bin/python3", "-I", "-c", program], glibc, 20, {})
    assert outcome.status == store.OK, outcome.reason
    sizes = [kb for _, kb in outcome.resident]
    assert max(sizes) - min(sizes) > 80_000


def test_a_crash_has_its_signal_and_its_last_words(run):
    outcome = run("echo all is lost >&2; kill -SEGV $$")
    assert (outcome.status, outcome.reason) == (store.CRASHED, "killed by SIGSEGV: all is lost")


def test_a_failure_has_its_exit_code_and_its_last_words(run):
    outcome = run("echo one >&2; echo '  two ' >&2; exit 3")
    assert (outcome.status, outcome.reason) == (store.FAILED, "exit code 3: two")


def test_a_hung_program_is_ended_with_its_children(run, tmp_path):
    pids = tmp_path / "pids"
    begin = time.monotonic()
    outcome = run(f"sleep 60 & echo $! >{pids}; echo $$ >>{pids}; wait", limit_s=0.3)
    assert (outcome.status, outcome.reason) == (store.HUNG, "no end within 0.3 s")
    assert time.monotonic() - begin < 5
    time.sleep(0.1)
    assert not [pid for pid in pids.read_text().split() if _lives(pid)]


def _lives(pid: str) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_what_a_crashed_program_leaves_behind_is_ended(run, tmp_path):
    pids = tmp_path / "pids"
    assert run(f"sleep 60 & echo $! >{pids}; kill -ABRT $$").status == store.CRASHED
    time.sleep(0.1)
    assert not _lives(pids.read_text().strip())


@pytest.mark.parametrize("said", ["true", "echo words", "echo '[1]'", "echo 7"])
def test_a_program_without_a_result_has_failed(run, said):
    outcome = run(said)
    assert (outcome.status, outcome.reason) == (store.FAILED, "printed no result")


def test_a_program_that_is_not_there(built, glibc):
    outcome = tried(built, ["/nowhere/program"], glibc, 5, {})
    assert (outcome.status, outcome.reason) == (store.FAILED, "could not be started: no such file or directory")


def test_a_result_counts_only_if_the_right_library_served_it(run, built):
    outcome = run(f"echo '{_JSON % '/usr/lib/libother.so'}'")
    assert (outcome.status, outcome.reason) == (store.NOT_LOADED, "malloc came from /usr/lib/libother.so")


def test_what_the_loader_refuses_is_not_loaded(run, tmp_path):
    text = tmp_path / "libtext.so"
    text.write_text("not an ELF file")
    outcome = run("exit 0", AllocatorRow("text", "user", "", str(text)))
    assert (outcome.status, outcome.reason) == (store.NOT_LOADED, "the loader refuses it: file too short")


def test_a_library_by_another_path_is_the_same(run, glibc, tmp_path):
    link = tmp_path / "libc-by-another-name.so"
    os.symlink(glibc.library, link)
    assert run(f"echo '{_JSON % link}'").status == store.OK


def test_nothing_of_the_users_environment_reaches_the_program(run, glibc, monkeypatch):
    monkeypatch.setenv("MALLOC_ARENA_MAX", "1")
    monkeypatch.setenv("LD_PRELOAD", "/nowhere.so")
    outcome = run(f'[ -z "$MALLOC_ARENA_MAX$LD_PRELOAD" ] && [ "$OWN" = 1 ] && echo \'{_JSON % glibc.library}\'', OWN="1")
    assert outcome.status == store.OK
