"""One run: its cost, and every way in which it can end."""

import os
import time
from dataclasses import dataclass

import pytest
from hmalloc_lab.bench import store, trial
from hmalloc_lab.bench.store import AllocatorRow

_JSON = '{"workload":"made-up","ns_per_op":7.5,"threads":1,"malloc_library":"%s","series":[[1,2]]}'


@dataclass(frozen=True)
class Tried:
    status: str
    reason: str
    metrics: dict
    resident: list


@pytest.fixture
def tried(built, glibc):
    def call(*command: str, allocator: AllocatorRow = glibc, limit_s: float = 60, **environment) -> Tried:
        try:
            return Tried(store.OK, "", *trial.measure(built.measurer, [*command], allocator, environment, limit_s))
        except trial.Discounted as why:
            return Tried(why.status, str(why), {}, [])

    return call


@pytest.fixture
def run(tried, glibc):
    """Runs a script of the shell, in which RESULT is a result that counts."""
    result = f"echo '{_JSON % glibc.library}'"
    return lambda script, **more: tried("/bin/sh", "-c", script.replace("RESULT", result), **more)


def test_a_good_run_has_what_the_program_says_and_what_it_cost(run):
    outcome = run("sleep 1; echo some words; RESULT")
    assert (outcome.status, outcome.reason) == (store.OK, "")
    assert outcome.metrics["ns_per_op"] == 7.5
    assert outcome.metrics["series"] == [[1, 2]]
    assert 1 <= outcome.metrics["wall_s"] < 60
    assert {"user_s", "system_s", "cpu_s", "peak_kb", "minor_faults", "major_faults", "voluntary_switches",
            "involuntary_switches"} <= outcome.metrics.keys()
    assert "malloc_library" not in outcome.metrics
    times = [at for at, _ in outcome.resident]
    assert len(times) > 5 and times == sorted(times) and times[0] < 1000
    assert all(kb > 100 for _, kb in outcome.resident[1:-1])  # the first and the last may see hardly a process


def test_a_long_run_leaves_no_more_samples_than_a_short_one(run):
    samples = run("sleep 2.5; RESULT").resident
    assert 50 <= len(samples) <= 200
    assert samples[-1][0] > 2000
    assert 0.25 < samples[len(samples) // 2][0] / samples[-1][0] < 0.75, "evenly spread"


def test_resident_memory_that_grows_is_seen_growing(tried, glibc):
    program = "import time\nkept = []\nfor _ in range(5):\n kept.append(b'x' * 20_000_000); time.sleep(0.05)\n" \
              f"print('''{_JSON % glibc.library}''')"
    outcome = tried("/usr/bin/python3", "-I", "-c", program, limit_s=60)
    assert outcome.status == store.OK, outcome.reason
    sizes = [kb for _, kb in outcome.resident]
    assert max(sizes) - min(sizes) > 80_000


@pytest.mark.parametrize("script, status, reason", [
    ("echo all is lost >&2; kill -SEGV $$", store.CRASHED, "killed by SIGSEGV: all is lost"),
    ("echo one >&2; echo '  two ' >&2; exit 3", store.FAILED, "exit code 3: two"),
    *((said, store.FAILED, "printed no result") for said in ("true", "echo words", "echo '[1]'", "echo 7")),
    (f"echo '{_JSON % '/usr/lib/libother.so'}'", store.NOT_LOADED, "malloc came from /usr/lib/libother.so")])
def test_what_does_not_count_has_its_reason(run, script, status, reason):
    outcome = run(script)
    assert (outcome.status, outcome.reason) == (status, reason)


def _lives(pid: str) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("end, status", [("wait", store.HUNG), ("kill -ABRT $$", store.CRASHED)])
def test_what_a_run_leaves_behind_is_ended(run, tmp_path, end, status):
    pids = tmp_path / "pids"
    begin = time.monotonic()
    outcome = run(f"sleep 600 & echo $! >{pids}; echo $$ >>{pids}; {end}", limit_s=2 if status == store.HUNG else 50)
    assert outcome.status == status
    assert status != store.HUNG or outcome.reason == "no end within 2 s"
    while [pid for pid in pids.read_text().split() if _lives(pid)]:
        assert time.monotonic() - begin < 300  # half of what they would live


def test_a_program_that_is_not_there(tried):
    outcome = tried("/nowhere/program")
    assert (outcome.status, outcome.reason) == (store.FAILED, "could not be started: no such file or directory")


def test_what_the_loader_refuses_is_not_loaded(run, tmp_path):
    text = tmp_path / "libtext.so"
    text.write_text("not an ELF file")
    outcome = run("exit 0", allocator=AllocatorRow("text", "user", "", str(text)))
    assert (outcome.status, outcome.reason) == (store.NOT_LOADED, "the loader refuses it: file too short")


def test_a_library_by_another_path_is_the_same(run, glibc, tmp_path):
    link = tmp_path / "libc-by-another-name.so"
    os.symlink(glibc.library, link)
    assert run(f"echo '{_JSON % link}'").status == store.OK


def test_nothing_of_the_users_environment_reaches_the_program(run, monkeypatch):
    monkeypatch.setenv("MALLOC_ARENA_MAX", "1")
    monkeypatch.setenv("LD_PRELOAD", "/nowhere.so")
    assert run('[ -z "$MALLOC_ARENA_MAX$LD_PRELOAD" ] && [ "$OWN" = 1 ] && RESULT', OWN="1").status == store.OK
