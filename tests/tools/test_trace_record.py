"""hmalloc trace record: nothing of a program's calls is lost, however it ends."""

import os
import shutil
import signal
import subprocess
import time

import pytest
from tracing import COUNTS, HMALLOC, TRACE, call, info, programs, record, replay, trace_is_built  # noqa: F401

pytestmark = trace_is_built


TOTALS = (*COUNTS, "threads", "never_freed")
KEYS = (*COUNTS, "cross_thread_frees", "never_freed", "foreign_frees", "implied_frees")


@pytest.fixture
def counted(record):
    """What a program's own calls were: without those that libc makes for it."""

    def run(what, number, code=0, preload=None):
        with_calls, without = (info(record("calls", what, each, code=code, preload=preload).file) for each in (number, 0))
        return {key: with_calls[key] - without[key] for key in KEYS if with_calls[key] != without[key]}

    return run


def test_threads_and_hand_over(record, counted):
    assert counted("hand-over", 1000) == {"mallocs": 8000, "frees": 8000, "cross_thread_frees": 4000}
    assert info(record("calls", "hand-over", 1000).file)["threads"] == 5


@pytest.mark.parametrize("number, late", [(20000, False), (2000, True)])
def test_an_address_that_goes_to_and_fro_is_never_in_use_twice(programs, counted, number, late):
    """With an allocator that dawdles, whoever stamped too early or too late would be found out."""
    calls = counted("ping", number, preload=programs / "late.so" if late else None)
    assert calls == {"mallocs": number, "frees": number, "cross_thread_frees": number}


def test_every_function_of_the_family(counted):
    assert counted("family", 100) == {"mallocs": 1200, "frees": 1100, "reallocs": 400, "never_freed": 100}


@pytest.mark.parametrize("preload", [None, HMALLOC])
def test_new_and_delete_count_under_every_allocator(record, preload):
    with_calls, without = (info(record("news", rounds, preload=preload).file) for rounds in (100, 0))
    assert with_calls["mallocs"] - without["mallocs"] == with_calls["frees"] - without["frees"] == 800
    assert with_calls["implied_frees"] == with_calls["foreign_frees"] == 0
    assert ("libhmalloc.so" in with_calls["allocator"]) == (preload is not None)


@pytest.mark.parametrize("what, number, code, mallocs", [
    ("exit", 5000, 7, 5000), ("kill", 5000, 128 + signal.SIGKILL, 5000), ("crash", 5000, 128 + signal.SIGSEGV, 5000),
    ("make", 5000, 0, 5000), ("alive", 3000, 0, 4 * 3000), ("close", 20000, 0, 2 * 20000)])
def test_no_end_loses_a_call_and_the_exit_code_is_the_programs(counted, what, number, code, mallocs):
    assert counted(what, number, code=code)["mallocs"] == mallocs


def test_many_short_threads_need_little_room(record, counted):
    # Each takes at least one page of the spool.
    assert counted("churn", 500)["frees"] >= 500
    assert info(record("calls", "churn", 500, options=["--limit", "4M"]).file)["stopped"] == ""


def test_a_forked_child_has_its_own_file(record):
    recorded = record("calls", "fork", 1000)
    [child] = recorded.others
    parent, child = info(recorded.file), info(child)
    assert 1000 <= parent["mallocs"] < 1100 and 2000 <= child["mallocs"] < 2100
    assert child["parent"] == parent["pid"] and child["foreign_frees"] == 1
    assert "1 further process" in recorded.ending.stderr


def test_the_program_after_an_exec_is_the_one_that_counts(record):
    recorded = record("calls", "exec", 1000)
    [before] = recorded.others
    assert 1000 <= info(before)["mallocs"] < 1100
    assert 2000 <= info(recorded.file)["mallocs"] < 2100
    assert info(before)["pid"] == info(recorded.file)["pid"]


def test_a_process_left_behind_is_recorded_up_to_the_programs_end(record):
    recorded = record("calls", "leave", 1000)
    [child] = map(info, recorded.others)
    os.kill(child["pid"], signal.SIGKILL)
    assert child["mallocs"] > 1000 and child["implied_frees"] == 0 and child["never_freed"] < 200


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_are_passed_on(programs, tmp_path, number):
    file = tmp_path / "it.hmtrace"
    recorder = subprocess.Popen([TRACE, "record", "-o", file, "--", programs / "calls", "wait", "1000"],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert recorder.stdout.readline() == "up\n"
    recorder.send_signal(number)
    assert recorder.wait(20) == 128 + number
    assert info(file)["mallocs"] >= 1000


def test_the_limit_ends_the_record_and_not_the_program(record):
    recorded = record("calls", "hand-over", 20000, options=["--limit", "1M"])
    said = info(recorded.file)
    assert said["stopped"] == "limit" and 10_000 < said["operations"] < 45_000
    assert "limit" in recorded.ending.stderr
    assert replay(recorded.file)["ops"] == said["operations"]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_full_disk_ends_the_record_and_not_the_program(programs, tmp_path):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", tmp_path], check=True)
    try:
        ending = call("record", "-o", tmp_path / "it.hmtrace", "--", programs / "calls", "hand-over", "50000")
        assert ending.returncode == 0 and "No space left on device" in ending.stderr, ending
        said = info(tmp_path / "it.hmtrace")
        assert said["operations"] > 10_000 and said["stopped"] == "No space left on device"
        assert said["implied_frees"] == 0
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_the_default_name_is_the_programs(programs, tmp_path):
    assert call("record", "--", programs / "calls", "make", "10", cwd=tmp_path).returncode == 0
    assert [file.name for file in tmp_path.iterdir()] == ["calls.hmtrace"]


@pytest.mark.skipif(not shutil.which("redis-server") or not shutil.which("redis-benchmark"), reason="no redis")
def test_redis_with_io_threads(tmp_path):
    file, socket = tmp_path / "redis.hmtrace", tmp_path / "socket"
    recorder = subprocess.Popen(
        [TRACE, "record", "-o", file, "--", "redis-server", "--port", "0", "--unixsocket", socket, "--save", "",
         "--io-threads", "4", "--io-threads-do-reads", "yes", "--dir", tmp_path],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        while subprocess.run(["redis-cli", "-s", socket, "ping"], capture_output=True, text=True).stdout != "PONG\n":
            assert recorder.poll() is None
            time.sleep(0.05)
        subprocess.run(["redis-benchmark", "-s", socket, "-n", "10000", "-r", "10000", "-d", "200", "-P", "8", "-c", "40",
                        "-t", "set,get,lpush,sadd", "-q"], check=True, timeout=300, stdout=subprocess.DEVNULL)
    finally:
        recorder.terminate()
    _, said = recorder.communicate(timeout=300)
    assert recorder.returncode == 0, said
    recorded = info(file)
    assert recorded["threads"] >= 4 and recorded["mallocs"] > 50_000 and recorded["cross_thread_share"] > 0.01
    assert recorded["implied_frees"] == 0
    for preload in (None, HMALLOC):
        done = replay(file, preload=preload)
        assert [done[key] for key in TOTALS] == [recorded[key] for key in TOTALS]
