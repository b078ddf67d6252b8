"""bpftrace and perf, from outside, at the functions and at the probes of a process that knows nothing of them."""

import math
import os
import re
import select
import signal
import subprocess

import pytest
from conftest import LIBRARY, LOST, LOST_BYTES, beside, end, need, work

PAIRS, SIZE = 20000, 100_000
TOTAL, RATE = PAIRS * SIZE + LOST_BYTES, 512 << 10
# Of a sample that is drawn by bytes: six standard errors.
TOLERANCE = 6 * math.sqrt(TOTAL * (RATE + SIZE))
CALLER = {"x86_64": '*(uint64*)reg("sp")', "aarch64": 'reg("lr")'}


@pytest.fixture(scope="session")
def bpf():
    need("bpftrace")
    tried = subprocess.run(["bpftrace", "-e", "BEGIN { exit(); }"], capture_output=True, text=True, timeout=300)
    if tried.returncode != 0:
        pytest.skip(f"bpftrace may not run here: {' '.join(tried.stderr.split())}")


def lists(what):
    return set(subprocess.run(["bpftrace", "-l", what], check=True, capture_output=True, text=True, timeout=300).stdout.split())


@pytest.fixture(scope="session")
def probes(bpf):
    found = lists(f"usdt:{LIBRARY}:*")
    if not found:
        pytest.skip("the library was built without sys/sdt.h")
    return found


def test_what_there_is_to_attach_to(probes):
    assert probes == {f"usdt:{LIBRARY}:otel_memory:{name}" for name in ("alloc", "free")}
    assert {f"uprobe:{LIBRARY}:{name}" for name in ("malloc", "free", "calloc", "realloc")} <= lists(f"uprobe:{LIBRARY}:*")


def traced(program, script):
    """What bpftrace prints of a run.  One of bpftrace 0.17 lacked a map that every call adds to, while all others were right:
    it is run again then, up to three times."""
    names = re.findall(r"@(\w+) = ", script)
    for _ in range(3):
        shown = traced_once(program, script)
        if all(re.search(rf"^@{name}: ", shown, re.MULTILINE) for name in names):
            break
    return shown


def traced_once(program, script):
    """Its maps, while the process is there to name functions.  PID in a script is the process.
    bpftrace begins to read what a script says when all its probes are attached."""
    with (program.waiting(str(PAIRS), str(SIZE)) as process,
          beside("bpftrace", "-p", str(process.pid), "-e",
                 script.replace("PID", str(process.pid)) + ' interval:ms:50 { print("attached"); }') as tracer):
        said = []
        for line in tracer.stdout:
            said.append(line)
            if line == "attached\n":
                break
        assert said[-1:] == ["attached\n"], said
        work(process)
        tracer.send_signal(signal.SIGINT)
        shown, _ = tracer.communicate()
        end(process)
    return shown


def number(shown, name):
    return int(re.search(rf"^@{name}: (\d+)$", shown, re.MULTILINE)[1])


@pytest.mark.skipif(os.uname().machine not in CALLER, reason="another processor")
def test_every_call_of_a_function(built, bpf):
    shown = traced(built("preloaded"), f"""
        uprobe:{LIBRARY}:malloc /pid == PID/ {{ @[usym({CALLER[os.uname().machine]})] = sum(arg0); @calls = count(); }}
        uprobe:{LIBRARY}:free /pid == PID/ {{ @frees = count(); }}""")
    assert (number(shown, "calls"), number(shown, "frees")) == (PAIRS + LOST, PAIRS)
    assert dict(re.findall(r"^@\[(\w+)(?:\+\d+)?\]: (\d+)$", shown, re.MULTILINE)) == {
        "loses": str(LOST_BYTES), "gives_back": str(PAIRS * SIZE)}


def test_a_sample_of_the_bytes_at_the_probes(built, probes):
    shown = traced(built("preloaded"), f"""
        usdt:{LIBRARY}:otel_memory:alloc {{ @[comm, arg1] = sum(arg2); @bytes = sum(arg2); }}
        usdt:{LIBRARY}:otel_memory:free {{ @frees = count(); }}""")
    assert abs(number(shown, "bytes") - TOTAL) < TOLERANCE
    assert abs(int(re.search(rf"^@\[known-preloaded, {SIZE}\]: (\d+)$", shown, re.MULTILINE)[1]) - TOTAL) < TOLERANCE
    assert number(shown, "frees") > 100


def test_perf_has_the_stacks(built, probes, tmp_path):
    need("perf")

    def perf(*words):
        return subprocess.run(["perf", "--buildid-dir", tmp_path / "ids", *words], capture_output=True, text=True, timeout=300)

    added = perf("buildid-cache", "--add", LIBRARY), perf("probe", "sdt_otel_memory:alloc")
    if any(each.returncode for each in added):
        pytest.skip(f"perf may not add a probe here: {added[1].stderr.strip()}")
    data, control, answer = (tmp_path / name for name in ("data", "control", "answer"))
    for pipe in (control, answer):
        os.mkfifo(pipe)
    try:
        with (built("preloaded").waiting("5000", str(SIZE)) as process,
              beside("perf", "record", "--output", data, "--event", "sdt_otel_memory:alloc", "--call-graph", "dwarf",
                     "--delay=-1", f"--control=fifo:{control},{answer}", "--pid", str(process.pid)) as recorder):
            with open(control, "rb+", 0) as asks, open(answer, "rb+", 0) as said:
                asks.write(b"enable\n")
                assert select.select([said], [], [], 60)[0], "it has not begun"
            work(process)
            recorder.send_signal(signal.SIGINT)
            recorder.communicate()
            end(process)
    finally:
        perf("probe", "-d", "sdt_otel_memory:alloc")
    events = perf("script", "-i", data).stdout.split("\n\n")
    weights = {int(found[1]) for event in events if "gives_back" in event and (found := re.search(r"arg3=(\d+)", event))}
    assert len(weights) == 1 and weights.pop() == pytest.approx(-SIZE / math.expm1(-SIZE / RATE), abs=1)
