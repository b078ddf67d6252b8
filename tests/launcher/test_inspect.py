"""hmalloc inspect: what it shows is what lies in the heap, and whatever it looks at, it says so in one line or shows it."""

import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import LAUNCHER, ROOT
from heap_truth import LIBRARY, Held, environment, tools

ARCHIVE = ROOT / "build/release/libhmalloc.a"
THREADS, LOST = 3, 70
TRACED = 320  # what glibc allocates for each thread's variables, at most


def assert_is_the_truth(truth, document, rows, most_others=THREADS, largest=TRACED):
    live = {address: size for address, size, state in rows if state in ("live", "sampled")}
    assert len(live) == document["live_blocks"] and sum(live.values()) == document["live_bytes"]
    assert truth.keys() <= live.keys()
    assert all(live[address] >= size for address, size in truth.items())
    others = [size for address, size in live.items() if address not in truth]
    assert len(others) <= most_others and all(size <= largest for size in others)
    assert document["exact"] and document["changing"] == 0


def test_every_block_that_the_program_holds_and_no_other_is_live(held, inspect):
    shown, document, rows = inspect(held.number, "--stop")
    assert_is_the_truth(held.truth, document, rows)
    assert sum(state == "cached" for _, _, state in rows) > 100
    assert {heap["thread"] for heap in document["heaps"] if heap["thread"]} == \
        {f"heap_truth ({held.number})", *(f"worker {at} ({number})" for at, number in enumerate(
            int(each) for each in os.listdir(f"/proc/{held.number}/task") if int(each) != held.number))}
    assert max(len(line) for line in shown.splitlines()) <= 80


def test_it_is_exact_of_a_process_that_somebody_has_stopped(held, inspect):
    held.process.send_signal(signal.SIGSTOP)
    os.waitpid(held.number, os.WUNTRACED)
    _, document, rows = inspect(held.number)
    assert_is_the_truth(held.truth, document, rows)
    inspect(held.number, "--stop")
    assert Path(f"/proc/{held.number}/stat").read_text().split()[2] == "T"


@pytest.mark.parametrize("options", [["--checked"], ["sampled"], ["stripped"], ["static"]], ids=lambda each: each[0].strip("-"))
def test_of_every_library_and_of_programs_without_symbols(options, truth_program, build, tmp_path, inspect):
    command, more = [truth_program], {"LD_PRELOAD": str(LIBRARY)}
    if options == ["--checked"]:
        command, more = [LAUNCHER, "run", "--checked", "--", truth_program], {}
    elif options == ["sampled"]:
        more["HMALLOC_PROFILE"] = "heap:rate=16K"
        more["HMALLOC_PROFILE_FILE"] = str(tmp_path / "profile.pb")
    elif options == ["static"]:
        if not ARCHIVE.exists():
            pytest.skip("there is no static library")
        command, more = [build("heap_truth.c", "static", "-static", "-s", "-pthread", "-fno-builtin", ARCHIVE)], {}
    else:
        copy = tmp_path / "libhmalloc.so"
        subprocess.run(["strip", "--strip-all", LIBRARY, "-o", copy], check=True)
        more["LD_PRELOAD"] = str(copy)
    found = Held(command, tmp_path / "truth", **more)
    try:
        _, document, rows = inspect(found.number, "--stop", "--leaks")
        if options == ["sampled"]:
            assert sum(state == "sampled" for _, _, state in rows) > 50
            truth, live = found.truth, {address for address, _, state in rows if state in ("live", "sampled")}
            assert truth.keys() <= live
        elif options == ["static"]:
            assert_is_the_truth(found.truth, document, rows, 16, 2048)  # what static programs set up for themselves
        else:
            assert_is_the_truth(found.truth, document, rows)
        assert document["leaks"]["blocks"] == 2 * LOST
    finally:
        found.end()


def test_lost_blocks_are_those_to_which_nothing_refers(held, inspect):
    _, document, _ = inspect(held.number, "--leaks")
    leaks = document["leaks"]
    assert leaks["blocks"] == len(held.lost) == 2 * LOST and leaks["roots"] == LOST
    assert [(row["size"], row["blocks"]) for row in leaks["by_size"]] == [(448, LOST), (384, LOST)]
    assert all(address in held.lost for row in leaks["by_size"] for address in row["first"])


def test_a_reference_in_half_a_vector_register(build, tmp_path, hmalloc):
    if " avx2 " not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor has no such registers")
    program = build("vector_reference.c", "vector_reference", "-fno-builtin", "-mavx2")
    with subprocess.Popen([program], stdout=subprocess.PIPE, text=True, env=environment(LD_PRELOAD=str(LIBRARY))) as process:
        assert process.stdout.readline() == "ready\n"
        while " R " not in Path(f"/proc/{process.pid}/stat").read_text():
            pass
        shown = hmalloc("inspect", process.pid, "--leaks")
        process.kill()
    assert "No block is lost" in shown.stdout


def test_two_copies_in_one_process_are_told_of(hmalloc, build):
    program = build("two_copies.c", "two_copies", "-fno-builtin", "-ldl")
    with subprocess.Popen([program, LIBRARY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          env=environment(LD_PRELOAD=str(LIBRARY))) as process:
        assert process.stdout.readline() == "ready\n"
        shown = hmalloc("inspect", process.pid).stdout
    assert re.search(r"^note: 2 copies of hmalloc are in use; this is the one in /\S+ at 0x[0-9a-f]+$", shown, re.MULTILINE)
    assert process.returncode == 0


def test_what_a_fork_has_left_behind_is_neither_live_nor_lost(truth_program, tmp_path, inspect):
    found = Held([truth_program], tmp_path / "truth", "fork", LD_PRELOAD=str(LIBRARY))
    try:
        child = int(subprocess.check_output(["pgrep", "-P", str(found.number)]))
        _, document, rows = inspect(child, "--leaks")
        assert_is_the_truth(found.truth, document, rows)
        assert document["leaks"]["blocks"] == 2 * LOST
        assert [heap["thread"] for heap in document["heaps"] if heap["thread"]] == [f"heap_truth ({child})"]
        assert_gauges_agree(child, json.loads(found.ask("statistics")))
    finally:
        found.end()


def core_of(program, folder, library, kinds="0x33"):
    pattern = Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if pattern.startswith(("|", "/")):
        pytest.skip(f"core files go elsewhere here: {pattern}")
    crash = f'ulimit -c unlimited; echo {kinds} > /proc/self/coredump_filter; LD_PRELOAD="$2" exec "$0" "$1" crash'
    subprocess.run(["sh", "-c", crash, program, folder / "truth", library], cwd=folder, env=environment(),
                   stdout=subprocess.DEVNULL, check=False)
    core = next((each for each in folder.iterdir() if each.name.startswith("core")), None)
    if core is None:
        pytest.skip("the system has written no core file")
    return core


def test_a_core_file_says_the_same(truth_program, tmp_path, inspect, hmalloc):
    core, truth = core_of(truth_program, tmp_path, LIBRARY), tmp_path / "truth"
    _, document, rows = inspect(core, "--leaks")
    assert_is_the_truth({int(line.split()[0], 16): int(line.split()[1]) for line in truth.read_text().splitlines()},
                        document, rows)
    assert document["leaks"]["blocks"] == 2 * LOST
    assert len([heap for heap in document["heaps"] if heap["thread"]]) == THREADS + 1
    whole = core.read_bytes()
    for length in (len(whole) // 2, 4000, 100, 0):
        core.write_bytes(whole[:length])
        shown = hmalloc("inspect", core)
        assert shown.returncode == 2 and re.fullmatch(r"hmalloc: .*(cut off|no core file|damaged).*\n", shown.stderr)
    core.write_bytes(whole[:39] + b"\xff" + whole[40:])  # where the table of segments is
    assert hmalloc("inspect", core).stderr == f"hmalloc: {core}: the core file is damaged\n"


def test_a_core_file_without_what_stands_in_files(truth_program, tmp_path, hmalloc):
    library = shutil.copy(LIBRARY, tmp_path / "libhmalloc.so")
    core = core_of(truth_program, tmp_path, library, "0x3")
    assert "140 of 56.9K" in hmalloc("inspect", core, "--leaks").stdout
    library.unlink()
    os.mkfifo(library)  # to read it would wait for ever
    shown = hmalloc("inspect", core)
    assert (shown.returncode, shown.stderr) == (
        2, f"hmalloc: core file {core}: it lacks the beginning of {library}, and that is not there any more\n")


def test_an_address_is_explained(held, inspect, hmalloc):
    def said(address):
        shown = hmalloc("inspect", held.number, "--stop", "--block", hex(address))
        assert shown.returncode == 0, shown.stderr
        return shown.stdout

    block = next(address for address in sorted(held.lost) if held.truth[address] == 384)
    refers = next(line for line in said(block + 8).splitlines() if " is the start of " in line)
    assert f"{block + 8:#x}: 8 bytes into a block of 384 bytes, live" in said(block + 8)
    assert int(re.search(r"0x[0-9a-f]+", refers)[0], 16) in held.lost
    huge, size = next((address, size) for address, size in held.truth.items() if size > 1 << 20)
    assert f"{huge + 5:#x}: 5 bytes into a huge block of {size} bytes, live" in said(huge + 5)
    region = block >> 24 << 24
    assert "metadata of the allocator's" in said(region + 0x10000)
    assert "nothing is mapped there" in said(16)
    stack = next(line for line in Path(f"/proc/{held.number}/maps").read_text().splitlines() if line.endswith("[stack]"))
    assert "stack of thread" in said(int(stack.split("-")[1].split()[0], 16) - 64)


def test_growth_shows_what_has_changed(held):
    with subprocess.Popen([LAUNCHER, "inspect", str(held.number), "--every", "200ms", "--diff"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, env=environment(PYTHONUNBUFFERED="1")) as watcher:
        seen = ""
        while "look 2" not in seen:
            seen = watcher.stdout.readline()
        held.ask("grow")
        grown = []
        while sum(int(blocks) for _, blocks in grown) < 100:
            seen = watcher.stdout.readline()
            assert seen, "it ended"
            if seen.split()[2:3] == ["5120"]:
                grown.append(seen.split()[:2])
        assert grown == [["+500K", "+100"]] or len(grown) > 1, "in two lines if it was looked at in the middle"
        held.end()
        rest = watcher.communicate(timeout=300)
        assert watcher.returncode == 0 and "has ended" in rest[1]


def test_a_picture_and_files_that_cannot_be_written(held, hmalloc, tmp_path):
    picture = tmp_path / "heap.svg"
    assert hmalloc("inspect", held.number, "--picture", picture).returncode == 0
    text = picture.read_text()
    assert text.startswith("<svg") and text.count("<rect") > 20
    shown = hmalloc("inspect", held.number, "--picture", tmp_path / "no/heap.svg")
    assert shown.returncode == 2 and shown.stderr.count("\n") == 1
    if os.access("/dev/full", os.W_OK):
        shown = hmalloc("inspect", held.number, "--json", "/dev/full")
        assert shown.returncode == 1 and "No space left" in shown.stderr


def test_gauges_are_those_that_the_library_counts(held):
    assert_gauges_agree(held.number, json.loads(held.ask("statistics")))


def assert_gauges_agree(number, library):
    _, process = tools()
    from hmalloc_lab.inspect import census, gauges, heap, layout

    memory = process.ProcessMemory(number)
    with memory.standing_still():
        snapshot = heap.take(memory, layout.find(memory))
    memory.close()
    found = gauges.gauges(snapshot, census.count(snapshot))
    assert found == {name: library[name] for name in found} and found["allocated"] > 1 << 20
