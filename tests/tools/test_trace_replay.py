"""hmalloc trace info and replay: what was recorded adds up, and a replay makes the same calls on any malloc."""

from pathlib import Path

import pytest
from tracing import COUNTS, HMALLOC, call, info, programs, record, replay, trace_is_built  # noqa: F401

pytestmark = trace_is_built


def test_sizes_lifetimes_and_memory_add_up(record):
    said = info(record("calls", "hand-over", 1000).file)
    assert said["objects"] == said["mallocs"] + said["reallocs"] == sum(number for _, number in said["sizes"])
    assert sum(number for _, number in said["lifetimes"]) == said["frees"] + said["reallocs"]
    assert dict(map(tuple, said["sizes"]))[128] >= 8000
    assert 4000 * 100 <= said["max_in_use"] < 4000 * 100 + 200_000
    assert said["mean_size"] == pytest.approx(said["requested"] / said["objects"])
    times = [at for at, _ in said["memory"]]
    assert times == sorted(times) and 50 <= len(times) <= 129
    assert max(bytes for _, bytes in said["memory"]) <= said["max_in_use"]


@pytest.mark.parametrize("command, words", [
    ("info", ("5", "cross-thread", "in use", "Sizes", "Lifetimes", "never freed")), ("replay", ("Kops/s", "utilisation"))])
def test_for_people_it_is_short(record, command, words):
    shown = call(command, record("calls", "hand-over", 1000).file)
    assert shown.returncode == 0 and len(shown.stdout.splitlines()) < 50
    assert [word for word in words if word not in shown.stdout] == []


@pytest.mark.parametrize("preload", [None, HMALLOC])
@pytest.mark.parametrize("what, number", [("hand-over", 5000), ("ping", 20000), ("churn", 200), ("family", 500)])
def test_a_replay_makes_the_recorded_calls(record, what, number, preload):
    file = record("calls", what, number).file
    recorded, done = info(file), replay(file, preload=preload)
    for key in (*COUNTS, "threads", "never_freed", "max_in_use"):
        assert done[key] == recorded[key]
    assert done["ops"] == recorded["operations"]
    assert Path(done["malloc_library"]).resolve() == Path(preload or recorded["allocator"]).resolve()


def test_a_replay_uses_the_memory_that_was_in_use(tmp_path):
    # 300 blocks of 100 000 bytes at once, not more and not less.
    rep = tmp_path / "it.rep"
    lines = [f"a {i} 100000" for i in range(300)] + [f"f {i}" for i in range(300)]
    rep.write_text("\n".join(["0", "300", "600", "1", *lines]) + "\n")
    done = replay(rep)
    assert done["max_in_use"] == 30_000_000
    assert 0.95 < done["a_over_u"] < 1.1
    assert done["utilization"] == pytest.approx(1 / done["a_over_u"])
    assert done["minor_faults"] > 7000


def test_a_thread_that_could_run_ahead_keeps_near_the_record(record):
    """The producer needs no consumer, but in the record there was never more than one block in use."""
    file = record("calls", "ping", 200_000).file
    assert info(file)["max_in_use"] < 200_000
    assert replay(file)["max_allocated"] < 6_000_000


def test_repeats_are_counted_in(record):
    file = record("calls", "family", 1000).file
    recorded, once, thrice = info(file), replay(file), replay(file, "--repeats", 3)
    assert thrice["ops"] == 3 * once["ops"]
    assert all(thrice[key] == recorded[key] for key in (*COUNTS, "never_freed"))
    assert thrice["ns_per_op"] == pytest.approx(thrice["seconds"] / thrice["ops"] * 1e9)
    assert thrice["max_allocated"] < 2 * once["max_allocated"]
