"""hmalloc trace: nothing of a program's calls is lost, and a replay makes the same calls on any malloc."""

import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "release"
TRACE = BUILD / "hmalloc-trace"
HMALLOC = BUILD / "libhmalloc.so"
PROGRAMS = Path(__file__).resolve().parent / "programs"
COUNTS = ("mallocs", "frees", "reallocs")

pytestmark = pytest.mark.skipif(not TRACE.exists(), reason="hmalloc-trace is not built")


def call(*words, preload=None, **how):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "HMALLOC_"))}
    if preload:
        environment["LD_PRELOAD"] = str(preload)
    how = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "timeout": 120} | how
    return subprocess.run([str(TRACE), *map(str, words)], env=environment, **how)


def info(file):
    shown = call("info", file, "--json")
    assert shown.returncode == 0, shown.stderr
    return json.loads(shown.stdout)


def replay(file, *words, preload=None):
    shown = call("replay", file, "--json", *words, preload=preload)
    assert shown.returncode == 0, shown.stderr
    return json.loads(shown.stdout)


def refused(shown, *words, code=1):
    """One line, with these words in it."""
    assert shown.returncode == code, shown
    assert shown.stdout == "" and len(shown.stderr.splitlines()) == 1, shown
    for word in words:
        assert str(word) in shown.stderr, shown.stderr
    return True


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    # -O0: the compiler would leave out calls whose block nobody reads.
    for compiler, source, name, *more in (("gcc", "calls.c", "calls", "-pthread"), ("g++", "news.cc", "news"),
                                          ("gcc", "calls.c", "static", "-pthread", "-static"),
                                          ("gcc", "late.c", "late.so", "-shared", "-fPIC")):
        subprocess.run([compiler, "-O0", "-w", PROGRAMS / source, "-o", folder / name, *more], check=True)
    return folder


@dataclass
class Recorded:
    file: Path
    ending: subprocess.CompletedProcess

    @property
    def others(self):
        """The files of further processes."""
        return sorted(set(self.file.parent.glob("*.hmtrace")) - {self.file})


@pytest.fixture
def record(programs, tmp_path):
    def run(program, *words, options=(), code=0, preload=None):
        folder = tmp_path / f"run{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        file = folder / "it.hmtrace"
        ending = call("record", "-o", file, *options, "--", programs / program, *words, preload=preload)
        assert ending.returncode == code, ending
        assert not list(folder.glob("*spools*")), "the spools are still there"
        return Recorded(file, ending)

    return run


@pytest.fixture
def counted(record):
    """What a program's own calls were: without those that libc makes for it."""

    def run(what, number, code=0, preload=None):
        with_calls = info(record("calls", what, number, code=code, preload=preload).file)
        without = info(record("calls", what, 0, code=code, preload=preload).file)
        return {key: with_calls[key] - without[key]
                for key in (*COUNTS, "cross_thread_frees", "never_freed", "foreign_frees", "implied_frees")}

    return run


# ---- Recording: nothing is lost. -------------------------------------------------------------------------------------


def test_threads_and_hand_over(record, counted):
    calls = counted("hand-over", 1000)
    assert (calls["mallocs"], calls["frees"], calls["reallocs"]) == (8000, 8000, 0)
    assert calls["cross_thread_frees"] == 4000
    assert calls["foreign_frees"] == calls["implied_frees"] == 0
    assert info(record("calls", "hand-over", 1000).file)["threads"] == 5


@pytest.mark.parametrize("number, late", [(20000, False), (2000, True)])
def test_an_address_that_goes_to_and_fro_is_never_in_use_twice(programs, counted, number, late):
    """With an allocator that dawdles, whoever stamped too early or too late would be found out."""
    calls = counted("ping", number, preload=programs / "late.so" if late else None)
    assert calls["mallocs"] == calls["frees"] == calls["cross_thread_frees"] == number
    assert calls["foreign_frees"] == calls["implied_frees"] == calls["never_freed"] == 0


def test_every_function_of_the_family(counted):
    calls = counted("family", 100)
    assert (calls["mallocs"], calls["frees"], calls["reallocs"]) == (1200, 1100, 400)
    assert calls["never_freed"] == 100
    assert calls["foreign_frees"] == calls["implied_frees"] == 0


@pytest.mark.parametrize("preload", [None, HMALLOC])
def test_new_and_delete_count_under_every_allocator(record, preload):
    with_calls, without = (info(record("news", rounds, preload=preload).file) for rounds in (100, 0))
    assert with_calls["mallocs"] - without["mallocs"] == with_calls["frees"] - without["frees"] == 800
    assert with_calls["implied_frees"] == with_calls["foreign_frees"] == 0
    assert ("libhmalloc.so" in with_calls["allocator"]) == (preload is not None)


@pytest.mark.parametrize("what, code", [("exit", 7), ("kill", 128 + signal.SIGKILL), ("crash", 128 + signal.SIGSEGV),
                                        ("make", 0)])
def test_no_end_loses_a_call_and_the_exit_code_is_the_programs(counted, what, code):
    assert counted(what, 5000, code=code)["mallocs"] == 5000


def test_threads_that_are_alive_at_the_end(counted):
    assert counted("alive", 3000)["mallocs"] == 4 * 3000


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


def test_a_program_may_close_every_descriptor(counted):
    assert counted("close", 20000)["mallocs"] == 40000


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


# ---- Packing: one order out of many. ---------------------------------------------------------------------------------

MALLOC, CALLOC, ALIGNED, FREE, OLD, NEW = range(1, 7)
PAGE = 4096
LAST = 1 << 62  # a spool of the program that began latest is the one that counts


@pytest.fixture
def packed(tmp_path):
    """Packs a spool made by hand: lists of (time, call, address, size) of threads, or None for a hole; replays it."""

    def pack(*chunks, stopped_at=0):
        header = struct.pack("<QQIiiiQIiQ", 0x316c6f6f707368, LAST, PAGE, 0, 0, 0, PAGE * (1 + len(chunks)),
                             len(chunks), 0, stopped_at).ljust(PAGE, b"\0")
        spool = header
        for number, records in enumerate(chunks, 1):
            body = b"".join(struct.pack("<QQQ", at, address, size | call << 48)
                            for at, call, address, size in records or [])
            begin = struct.pack("<IIII", 0x6b6e6863, number, 1, len(records)) if records is not None else b""
            spool += (begin + body).ljust(PAGE, b"\0")
        (tmp_path / "spool").write_bytes(spool)
        writer = tmp_path / "writer.py"
        writer.write_text(
            "import os, pathlib, struct\n"
            f"spool = bytearray(pathlib.Path({str(tmp_path / 'spool')!r}).read_bytes())\n"
            "spool[20:24] = struct.pack('<i', os.getpid())\n"
            "(pathlib.Path(os.environ['HM_TRACE_SPOOLS']) / 'by-hand').write_bytes(spool)\n")
        file = tmp_path / "it.hmtrace"
        ending = call("record", "-o", file, "--", "/usr/bin/python3", writer)
        assert ending.returncode == 0, ending
        done, said = replay(file), info(file)
        assert [done[key] for key in (*COUNTS, "never_freed")] == [said[key] for key in (*COUNTS, "never_freed")]
        return said

    return pack


def test_equal_stamps_are_put_in_an_order_that_can_be(packed):
    """A coarse clock: thread 2 makes a block that 1 frees, 1 gets its address again and 3 frees it, all at one time."""
    said = packed([(9, FREE, 16, 0), (9, MALLOC, 16, 8)], [(9, MALLOC, 16, 8)], [(9, FREE, 16, 0)])
    assert (said["mallocs"], said["frees"], said["never_freed"]) == (2, 2, 0)
    assert said["foreign_frees"] == said["implied_frees"] == 0 and said["max_in_use"] == 8


def test_a_realloc_lets_go_of_the_old_address_before_it_has_the_new(packed):
    said = packed([(1, MALLOC, 16, 8), (2, OLD, 16, 0), (5, NEW, 32, 50)], [(3, MALLOC, 16, 8), (4, FREE, 16, 0)],
                  [(6, FREE, 32, 0)])
    assert (said["mallocs"], said["frees"], said["reallocs"], said["cross_thread_frees"]) == (2, 2, 1, 1)
    assert said["foreign_frees"] == said["implied_frees"] == said["never_freed"] == 0


def test_a_realloc_that_the_process_did_not_survive_changed_nothing(packed):
    said = packed([(1, MALLOC, 16, 8), (2, OLD, 16, 0)], [(3, FREE, 16, 0)])
    assert (said["mallocs"], said["frees"], said["reallocs"], said["foreign_frees"]) == (1, 1, 0, 0)


def test_a_block_of_no_size_is_a_block(packed):
    """An allocator may give one out for realloc(block, 0) too; another must not lose it in the replay."""
    said = packed([(1, MALLOC, 16, 0), (2, OLD, 16, 0), (3, NEW, 16, 0), (4, FREE, 16, 0)])
    assert (said["mallocs"], said["frees"], said["reallocs"], said["never_freed"]) == (1, 1, 1, 0)


def test_what_comes_after_the_stop_does_not_count(packed):
    """One thread found no room at 5; what others did later would be half of the truth."""
    said = packed([(1, MALLOC, 16, 8), (2, MALLOC, 32, 8)], [(3, FREE, 16, 0), (6, MALLOC, 32, 8)], stopped_at=5)
    assert (said["mallocs"], said["frees"], said["implied_frees"]) == (2, 1, 0)


def test_what_happens_beside_the_record_is_harmless(packed):
    said = packed([(1, FREE, 16, 0), (2, OLD, 32, 0), (3, NEW, 48, 10), (4, MALLOC, 48, 20), (5, FREE, 48, 0)])
    assert (said["mallocs"], said["frees"], said["reallocs"]) == (2, 2, 0)
    assert (said["foreign_frees"], said["implied_frees"]) == (2, 1)


def test_a_hole_between_chunks_is_stepped_over(packed):
    said = packed([(1, MALLOC, 16, 8)], None, [(2, FREE, 16, 0)])
    assert (said["mallocs"], said["frees"], said["threads"]) == (1, 1, 2)


# ---- What is in it. --------------------------------------------------------------------------------------------------


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


def test_info_for_people_is_short(record):
    shown = call("info", record("calls", "hand-over", 1000).file)
    assert shown.returncode == 0 and len(shown.stdout.splitlines()) < 50
    for word in ("5", "cross-thread", "in use", "Sizes", "Lifetimes", "never freed"):
        assert word in shown.stdout


# ---- Replay. ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preload", [None, HMALLOC])
@pytest.mark.parametrize("what, number", [("hand-over", 5000), ("ping", 20000), ("churn", 200), ("family", 500)])
def test_a_replay_makes_the_recorded_calls(record, what, number, preload):
    file = record("calls", what, number).file
    recorded, done = info(file), replay(file, preload=preload)
    for key in (*COUNTS, "threads", "never_freed"):
        assert done[key] == recorded[key]
    assert done["ops"] == recorded["operations"]
    assert done["max_in_use"] == recorded["max_in_use"]
    assert Path(done["malloc_library"]).resolve() == Path(preload or recorded["allocator"]).resolve()


def test_a_replay_uses_the_memory_that_was_in_use(record):
    # 300 blocks of 100 000 bytes at once, not more and not less.
    rep = record("calls", "make", 10).file.with_suffix(".rep")
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


def test_replay_for_people(record):
    shown = call("replay", record("calls", "make", 100).file)
    assert shown.returncode == 0 and "Kops/s" in shown.stdout and "utilisation" in shown.stdout


# ---- The malloc lab's format. ----------------------------------------------------------------------------------------


@pytest.fixture
def rep(tmp_path):
    def write(text, name="it.rep"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


GOOD_REP = "20000\n3\n7\n1\na 0 100\na 1 200\nr 0 1000\nf 1\na 1 10\nf -1\nf 0\n"


@pytest.mark.parametrize("name", ["it.rep", "it.txt"])
def test_rep_files_are_read(rep, name):
    said, done = info(rep(GOOD_REP, name)), replay(rep(GOOD_REP, name))
    for counts in (said, done):
        assert [counts[key] for key in COUNTS] == [3, 2, 1]
    assert said["max_in_use"] == 1200 and said["never_freed_bytes"] == 10 and said["unit"] == "operations"


@pytest.mark.parametrize("text, line, words", [
    ("20000\n3\n7\n1\na 0 100\na 1\n", 6, "a size"),
    ("20000\n3\n7\n1\nx 0 100\n", 5, "'x'"),
    ("20000\n3\n7\n1\na 0 100\na 0 100\n", 6, "already"),
    ("20000\n3\n7\n1\nf 0\n", 5, "not allocated"),
    ("20000\n3\n7\n1\na 0 100 5\n", 5, "'5'"),
    ("20000\n3\n7\n1\na 0 -100\n", 5, "'-100'"),
    ("20000\nthree\n7\n1\n", 2, "'three'"),
    ("20000\n3\n2\n1\na 0 100\n", 6, "truncated"),
    ("20000\n3\n1\n1\na 0 100\nf 0\n", 6, "more operations"),
])
def test_a_bad_rep_line_is_named(rep, text, line, words):
    file = rep(text)
    for command in ("info", "replay"):
        assert refused(call(command, file), file, f"line {line}: ", words)


# ---- Bad input. ------------------------------------------------------------------------------------------------------


@pytest.fixture
def broken(record, tmp_path):
    """A good trace, changed."""

    def change(how):
        file = tmp_path / "broken.hmtrace"
        file.write_bytes(how(record("calls", "hand-over", 1000).file.read_bytes()))
        return file

    return change


@pytest.mark.parametrize("how, words", [
    (lambda whole: whole[:-100], "truncated"),
    (lambda whole: whole[:len(whole) // 2], "truncated"),
    (lambda whole: whole[:20], "truncated"),
    (lambda whole: whole[:-50] + bytes([whole[-50] ^ 1]) + whole[-49:], "damaged"),
    (lambda whole: whole.replace(b"hmalloc trace 1\n", b"hmalloc trace 9\n"), "version 9"),
    (lambda whole: re.sub(rb'"frees":\d+', b'"frees":1', whole), "damaged"),
    (lambda whole: whole.replace(b'{"allocator"', b'["allocator"'), "damaged"),
    (lambda whole: b"\x7fELF" + whole, "not a trace"),
    (lambda whole: b"", "not a trace"),
])
def test_a_broken_trace_is_refused(broken, how, words):
    file = broken(how)
    for command in ("info", "replay"):
        assert refused(call(command, file), file, words)


def test_the_events_carry_a_checksum(record):
    """Bit 2 of a zstd frame's descriptor: no changed byte goes unnoticed."""
    frame = record("calls", "make", 10).file.read_bytes().split(b"\n", 2)[2]
    assert frame[:4] == bytes.fromhex("28b52ffd") and frame[4] & 4


def test_missing_files_and_folders(tmp_path):
    for command in ("info", "replay"):
        assert refused(call(command, tmp_path / "none.hmtrace"), "none.hmtrace", "No such file")
        assert refused(call(command, tmp_path), tmp_path, "folder")


def test_programs_that_cannot_be_run(tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("text")
    file = tmp_path / "it.hmtrace"
    assert refused(call("record", "-o", file, "--", "no-such-program"), "no-such-program", "not found", code=127)
    assert refused(call("record", "-o", file, "--", plain), plain, "Permission denied", code=126)
    assert refused(call("record", "-o", tmp_path / "none" / "it.hmtrace", "--", "true"), "No such file")
    assert [path.name for path in tmp_path.iterdir()] == ["plain"]


def test_a_static_program_cannot_be_recorded(record):
    recorded = record("static", "make", 100, code=1)
    assert "nothing recorded" in recorded.ending.stderr and "statically" in recorded.ending.stderr
    assert not recorded.file.exists()


def test_its_own_failure_comes_before_that_of_recording(record):
    assert "nothing recorded" in record("static", "exit", 1, code=7).ending.stderr


@pytest.mark.parametrize("words", [[], ["record"], ["info"], ["replay"], ["play", "x"], ["info", "--nonsense", "x"],
                                   ["replay", "x", "--repeats", "0"], ["record", "--limit", "some", "--", "true"],
                                   ["record", "--limit", "5", "--", "true"]])
def test_wrong_usage(words):
    assert refused(call(*words), code=2)


# ---- A server. -------------------------------------------------------------------------------------------------------


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@pytest.mark.skipif(not shutil.which("redis-server") or not shutil.which("redis-benchmark"), reason="no redis")
def test_redis_with_io_threads(tmp_path):
    file, port = tmp_path / "redis.hmtrace", free_port()
    recorder = subprocess.Popen(
        [TRACE, "record", "-o", file, "--", "redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "",
         "--io-threads", "4", "--io-threads-do-reads", "yes", "--dir", tmp_path],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", int(port))) == 0:
                    break
            time.sleep(0.05)
        subprocess.run(["redis-benchmark", "-h", "127.0.0.1", "-p", port, "-n", "10000", "-r", "10000", "-d", "200",
                        "-P", "8", "-c", "40", "-t", "set,get,lpush,sadd", "-q"], check=True, timeout=120,
                       stdout=subprocess.DEVNULL)
    finally:
        recorder.terminate()
    _, said = recorder.communicate(timeout=60)
    assert recorder.returncode == 0, said
    recorded = info(file)
    assert recorded["threads"] >= 4 and recorded["mallocs"] > 50_000 and recorded["cross_thread_share"] > 0.01
    assert recorded["implied_frees"] == 0
    for preload in (None, HMALLOC):
        done = replay(file, preload=preload)
        for key in (*COUNTS, "threads", "never_freed"):
            assert done[key] == recorded[key]
