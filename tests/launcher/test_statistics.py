"""Statistics at the end of a process: which ends, whose process, and how they share a file."""

import json
import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from conftest import ROOT

LIBRARY = ROOT / "build/release/libhmalloc.so"


@pytest.fixture(scope="session")
def endings(hmalloc, build):
    return build("endings.c", "endings", "-pthread", "-fno-builtin")


@pytest.fixture
def start(endings):
    """Starts a way to end, under hmalloc, with statistics as JSON."""
    running = []

    def begin(way, *prefix, **environment):
        environment = {"LD_PRELOAD": str(LIBRARY), "HMALLOC_SHOW_STATS": "json"} | environment
        process = subprocess.Popen([*prefix, endings, way], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env=environment)
        running.append(process)
        return process

    yield begin
    for process in running:
        process.kill()
        process.wait()


def records(text):
    return [json.loads(line) for line in text.splitlines()]


def terminated(process):
    """What it says at the end, once it was ready to be terminated."""
    assert process.stdout.readline() == "ready\n"
    process.terminate()
    return process.communicate(timeout=300)[1]


def test_a_record_says_whose_it_is(start):
    process = start("")
    record, = records(process.communicate()[1])
    assert (record["pid"], record["program"]) == (process.pid, "endings")
    process = start("", HMALLOC_SHOW_STATS="1")
    assert f"statistics of process {process.pid} (endings), bytes" in process.communicate()[1].splitlines()[0]


def test_any_name_is_json(build, tmp_path):
    odd = tmp_path / 'a "name"\\ with \u00e4 \n'
    odd.write_bytes(build("nothing.c", "nothing").read_bytes())
    odd.chmod(0o755)
    shown = subprocess.run([odd], capture_output=True, text=True,
                           env={"LD_PRELOAD": str(LIBRARY), "HMALLOC_SHOW_STATS": "json"})
    assert json.loads(shown.stderr)["program"].encode("latin-1") == os.fsencode(odd.name)


def test_sigterm_is_an_end_with_statistics(start):
    process = start("sleep")
    record, = records(terminated(process))
    assert record["pid"] == process.pid and process.returncode == -signal.SIGTERM


def test_without_statistics_nothing_is_installed(start):
    process = start("sleep", HMALLOC_SHOW_STATS="0")
    assert process.stdout.readline() == "ready\n"
    caught = re.search(r"SigCgt:\t(\w+)", Path(f"/proc/{process.pid}/status").read_text())[1]
    assert int(caught, 16) & 1 << signal.SIGTERM - 1 == 0
    process.terminate()
    assert process.communicate(timeout=300)[1] == ""


def test_sigterm_in_the_middle_of_allocations(start):
    """A hundred times, at any moment: the handler may interrupt whoever holds a lock that others wait for."""
    for number in range(100):
        process = start("busy")
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.0003 * (number % 40))
        process.terminate()
        assert len(records(process.communicate(timeout=300)[1])) == 1 and process.returncode == -signal.SIGTERM


def test_a_handler_of_the_program_is_left_alone(start):
    process = start("handler")
    assert terminated(process) == "" and process.returncode == 7


def test_an_ignored_sigterm_stays_ignored(start):
    process = start("sleep", "sh", "-c", 'trap "" TERM; exec "$0" "$@"')
    assert process.stdout.readline() == "ready\n"
    process.terminate()
    time.sleep(0.2)
    assert process.poll() is None


def test_no_statistics_of_those_that_leave_no_time(start):
    assert start("_exit").communicate()[1] == ""


def test_exit_in_a_handler_does_not_hang(start):
    for _ in range(20):
        text = start("exit-in-handler").communicate(timeout=300)[1]
        assert "pid" in text or "no report: the process was ended in the middle" in text


@pytest.mark.parametrize("way", ["fork", "exec"])
def test_a_child_speaks_for_itself(start, way):
    process = start(way)
    child, parent = records(process.communicate()[1])
    assert parent["pid"] == process.pid and child["pid"] != process.pid


def test_a_terminated_child_speaks_for_itself(start):
    process = start("fork-sleep")
    assert process.stdout.readline() == "ready\n"
    child = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text())
    os.kill(child, signal.SIGTERM)
    first, second = records(process.communicate(timeout=300)[1])
    assert (first["pid"], second["pid"]) == (child, process.pid)


def test_a_file_for_each_process(start, tmp_path):
    process = start("fork", HMALLOC_STATS_FILE=str(tmp_path / "%p-100%%.json"))
    assert process.communicate()[1] == ""
    files = {path.name: json.loads(path.read_text())["pid"] for path in tmp_path.iterdir()}
    assert len(files) == 2 and files[f"{process.pid}-100%.json"] == process.pid
    assert all(name == f"{pid}-100%.json" for name, pid in files.items())


def test_a_file_that_cannot_be_written(start):
    name = "/no/such/%p" + "/x" * 100
    assert start("", HMALLOC_STATS_FILE=name).communicate()[1] == f"hmalloc: cannot write HMALLOC_STATS_FILE={name}\n"


def test_whole_records_in_one_file(start, tmp_path):
    """Forty processes that end at once: whole lines only, one of each."""
    programs = [start("sleep", HMALLOC_STATS_FILE=str(tmp_path / "all")) for _ in range(40)]
    for program in programs:
        assert program.stdout.readline() == "ready\n"
    for program in programs:
        program.terminate()
    for program in programs:
        program.communicate(timeout=300)
    assert sorted(record["pid"] for record in records((tmp_path / "all").read_text())) == sorted(each.pid for each in programs)


@pytest.mark.parametrize("format", ["json", "1"])
def test_a_record_is_one_write(endings, format):
    # A socket of datagrams keeps apart what was written apart.
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, theirs:
        environment = {"LD_PRELOAD": str(LIBRARY), "HMALLOC_SHOW_STATS": format}
        subprocess.run([endings, "blocks"], env=environment, stderr=theirs, check=True)
        ours.setblocking(False)
        assert len(ours.recv(1 << 20)) > 600
        with pytest.raises(BlockingIOError):
            ours.recv(1)


def test_a_full_disk_is_told_of(start):
    process = start("", HMALLOC_STATS_FILE="/dev/full")
    assert process.communicate()[1] == "hmalloc: cannot write HMALLOC_STATS_FILE=/dev/full\n"
    assert process.returncode == 0
