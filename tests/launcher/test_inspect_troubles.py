"""hmalloc inspect, where something stands in its way: it says so in one line or shows what it can, and nothing is lost."""

import os
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import LAUNCHER, ROOT
from heap_truth import LIBRARY, Held, environment, tools

LOST = 70


def test_what_nobody_has_written_to_is_not_read(truth_program, tmp_path, inspect):
    found = Held([truth_program], tmp_path / "truth", "sparse", LD_PRELOAD=str(LIBRARY))

    def in_kilobytes():
        status = Path(f"/proc/{found.number}/status").read_text()
        return [int(re.search(rf"{name}:\s*(\d+)", status)[1]) for name in ("VmRSS", "VmPTE")]

    try:
        if not Path(f"/proc/{found.number}/pagemap").exists():
            pytest.skip("this kernel does not say which pages are there")
        before = in_kilobytes()
        _, document, _ = inspect(found.number, "--leaks")
        assert document["leaks"]["blocks"] == 2 * LOST and document["leaks"]["searched"] < 256 << 20
        assert all(now - then < 1024 for now, then in zip(in_kilobytes(), before, strict=True))
    finally:
        found.end()


def test_no_signal_is_lost_while_it_is_stopped(held, hmalloc):
    sent = 0
    with subprocess.Popen([sys.executable, "-c", f"import subprocess\nfor i in range(3): subprocess.run(['{LAUNCHER}', "
                           f"'inspect', '{held.number}', '--stop', '--leaks'], stdout=subprocess.DEVNULL, check=True)"],
                          env=environment()) as looks:
        while looks.poll() is None:
            held.process.send_signal(signal.SIGRTMIN)
            sent += 1
            select.select([], [], [], 0.001)
        assert looks.returncode == 0
    # A real-time signal is queued as often as it is sent; some may come while the answer is made up.
    for _ in range(600):
        if (arrived := int(held.ask("signals"))) == sent:
            break
        time.sleep(0.1)
    assert arrived == sent


def test_threads_of_a_container_are_named_as_they_are_seen_from_here(truth_program, tmp_path, inspect):
    if subprocess.run(["unshare", "--pid", "--fork", "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no namespaces of processes here")
    found = Held(["unshare", "--pid", "--fork", truth_program], tmp_path / "truth", LD_PRELOAD=str(LIBRARY))
    try:
        inside = int(Path(f"/proc/{found.number}/task/{found.number}/children").read_text())
        _, document, _ = inspect(inside)
        named = {heap["thread"] for heap in document["heaps"] if heap["thread"]}
        assert named == {f"{(each / 'comm').read_text().strip()} ({each.name})" for each in Path(f"/proc/{inside}/task").iterdir()}
    finally:
        found.end()


def test_a_thread_that_cannot_be_stopped(truth_program, tmp_path, hmalloc):
    found = Held([truth_program], tmp_path / "truth", "vfork", LD_PRELOAD=str(LIBRARY))
    try:
        while Path(f"/proc/{found.number}/stat").read_text().split()[2] != "D":
            time.sleep(0.01)
        shown = hmalloc("inspect", found.number, "--stop")
        assert shown.returncode == 2 and shown.stdout == ""
        assert re.fullmatch(r"hmalloc: \d+: one of its threads waits in the kernel .*, and cannot be stopped\n", shown.stderr)
        found.process.stdin.write("the child ends\n")
        assert found.ask("signals") == "0"
    finally:
        found.end()


def test_two_at_once_and_one_that_is_traced(held, hmalloc):
    tracer = subprocess.Popen([sys.executable, "-B", "-c", f"""
import sys
sys.path.insert(0, {str(ROOT / "lab")!r})
from hmalloc_lab.inspect.process import ProcessMemory
with ProcessMemory({held.number}).standing_still():
    print("holds", flush=True)
    sys.stdin.readline()
"""], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if tracer.stdout.readline() != "holds\n":
        pytest.skip("this Python lacks what the tool needs")
    shown = hmalloc("inspect", held.number, "--stop")
    assert shown.returncode == 2
    assert shown.stderr == f"hmalloc: {held.number}: process {tracer.pid} traces it already, perhaps a debugger\n"
    assert hmalloc("inspect", held.number).returncode == 0
    tracer.communicate("\n", timeout=300)
    assert held.ask("signals") == "0"


# ---- Whatever it looks at. --------------------------------------------------------------------------------------------


def test_a_process_that_ends_or_goes_on_meanwhile(held):
    errors, process = tools()
    from hmalloc_lab.inspect import heap, layout

    memory = process.ProcessMemory(held.number)
    found = layout.find(memory)
    held.process.send_signal(signal.SIGSTOP)
    os.waitpid(held.number, os.WUNTRACED)
    read, places = memory.read, []

    def read_and_let_it_go_on(address, size):
        places.append(address)
        if len(places) == 5:
            held.process.send_signal(signal.SIGCONT)
            while memory.stands_still:
                pass
        return read(address, size)

    assert heap.take(memory, found).exact
    memory.read = read_and_let_it_go_on
    assert not heap.take(memory, found).exact
    memory.read = read
    held.end()
    with pytest.raises(errors.Failure, match=rf"heap_truth \(process {held.number}\) has ended"):
        heap.take(memory, found)
    memory.close()


def test_names_that_no_terminal_should_see(truth_program, inspect, tmp_path):
    copy = os.fsencode(tmp_path) + b"/\x1b[2J[red]\n\xff"
    shutil.copy(truth_program, copy)
    found = Held([copy], tmp_path / "truth", LD_PRELOAD=str(LIBRARY))
    shown, document, _ = inspect(found.number, "--stop", "--picture", tmp_path / "heap.svg")
    name = "?[2J[red]?\N{REPLACEMENT CHARACTER}"
    assert shown.startswith(f"{name} (process {found.number})") and "\x1b" not in shown
    assert f"{name} ({found.number})" in [heap["thread"] for heap in document["heaps"]]
    assert "\x1b" not in (tmp_path / "heap.svg").read_text(encoding="utf-8")
    found.end()


def test_a_terminal_without_the_signs_of_the_picture(held):
    tools()
    shown = subprocess.run([sys.executable, "-B", ROOT / "lab", "inspect", str(held.number)], capture_output=True, check=False,
                           env=environment(PYTHONIOENCODING="ascii"))
    assert shown.returncode == 0 and shown.stderr == b"" and b"MMMM" in shown.stdout


def test_what_is_no_process_with_hmalloc(hmalloc, tmp_path):
    ended = subprocess.Popen(["true"])
    ended.wait()
    with subprocess.Popen(["sleep", "100"], env=environment()) as other:
        text = tmp_path / "text"
        text.write_text("no core")
        for what, why in ((ended.pid, "no such process"), (other.pid, "no hmalloc in it, neither as a library nor linked in"),
                          ("nothing", "neither the number of a process nor a core file"), (text, "no core file"),
                          (tmp_path, "no core file"), ("/bin/sh", "no core file of a 64-bit program")):
            shown = hmalloc("inspect", what)
            assert shown.returncode == 2 and shown.stdout == ""
            assert shown.stderr.startswith("hmalloc: ") and shown.stderr.endswith(f"{why}\n"), shown.stderr
        other.kill()


@pytest.mark.parametrize("arguments, message", [
    ([], "inspect: which process, or which core file? (hmalloc inspect --help)"),
    (["1", "--diff"], "inspect: --diff compares with the look before: say --every how long"),
    (["1", "--every", "soon"], "--every soon: not a length of time (10s, 500ms, 2m)"),
    (["1", "--every", "1s", "--leaks"], "inspect: --every shows tables; no --leaks, --block or file"),
    (["1", "--block", "here"], "--block here: not an address (0x7f0012345670)"),
    (["1", "--nonsense"], "inspect: No such option: --nonsense (hmalloc inspect --help)")])
def test_wrong_options(hmalloc, arguments, message):
    shown = hmalloc("inspect", *arguments)
    assert (shown.returncode, shown.stderr) == (2, f"hmalloc: {message}\n")


def test_another_user_may_not_look(held, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root has another user")
    errors, process = tools()
    message = tmp_path / "message"
    message.touch(), message.chmod(0o666), tmp_path.chmod(0o777)
    file = message.open("w")
    child = os.fork()
    if child == 0:
        os.setgroups([]), os.setgid(65534), os.setuid(65534)
        try:
            process.ProcessMemory(held.number)
        except errors.Failure as failure:
            print(failure, file=file, end="", flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    assert message.read_text() == f"{held.number}: it belongs to another user (0): try as that user, or with sudo"


def test_a_damaged_heap_ends_in_a_message(held, hmalloc):
    """Words of the allocator's own memory are overwritten at random; the process is put right again."""
    errors, process = tools()
    from hmalloc_lab.inspect import census, heap, layout, leaks, picture

    memory = process.ProcessMemory(held.number)
    draw, outcomes = random.Random(7), []
    with memory.standing_still():
        found = layout.find(memory)
        snapshot = heap.take(memory, found)
        kinds = [[found["heaps"], found["regions"], found["extents"]],
                 [each.address + at for each in snapshot.heaps for at in range(0, 2048, 8)],
                 [start + found["region.descriptors"] + at for start in snapshot.regions for at in range(0, 1 << 16, 8)],
                 [start + at for start, end in snapshot.own for at in range(0, min(end - start, 4096), 8)]]
        file = os.open(f"/proc/{held.number}/mem", os.O_RDWR)
        for _ in range(80):
            place, other = draw.choice(draw.choice(kinds)), draw.choice(draw.choice(kinds))
            value = draw.choice([0, 1, draw.getrandbits(64), place, other, 1 << 63, memory.word(place) ^ 1 << 20])
            before = os.pread(file, 8, place)
            os.pwrite(file, value.to_bytes(8, "little"), place)
            try:
                taken = heap.take(memory, found)
                census.count(taken), picture.svg(taken), leaks.Search(memory, taken).run()
                outcomes.append(True)
            except errors.Failure as failure:
                assert "damaged" in str(failure) and "\n" not in str(failure)
                outcomes.append(False)
            finally:
                os.pwrite(file, before, place)
        os.close(file)
    memory.close()
    assert True in outcomes and False in outcomes


def test_each_row_of_the_record_matters(truth_program, tmp_path):
    """If one were wrong, something else would be shown."""
    errors, process = tools()
    from hmalloc_lab.inspect import census, document, gauges, heap, layout, leaks

    def look(found):
        try:
            snapshot = heap.take(memory, found)
        except (errors.Failure, OverflowError, MemoryError) as failure:
            return str(failure)
        counted = census.count(snapshot)
        roots = [*leaks.root_ranges(memory, snapshot)]
        return document.document(snapshot, counted, None), gauges.gauges(snapshot, counted), roots, snapshot.chunks, \
            [each.states for each in snapshot.superblocks], snapshot.huge

    held = Held([truth_program], tmp_path / "truth", LD_PRELOAD=str(LIBRARY), HMALLOC_PROFILE="heap:rate=64K",
                HMALLOC_PROFILE_FILE="/dev/null")
    memory = process.ProcessMemory(held.number)
    with memory.standing_still():
        found = layout.find(memory)
        truth = look(found)
        idle = {name for name, value in found.rows.items()
                if all(look(layout.Layout(found.library, found.module, found.rows | {name: value + change})) == truth
                       for change in (8, -1, 1 << 20, *range(-64, 64, 8)))}
    memory.close()
    held.end()
    # A bound; what descriptors without an extent happen to contain; what there may be none of.
    mays = {"heap.most_runs", "extent.is_unused", "counter.foreign_frees", "chunk.dirty", "chunk.dirty_before", "chunk.guards"}
    # This program has no heap of its own.
    assert idle <= mays | {name for name in found.rows if "own" in name.split(".")}


def test_a_record_of_another_version_is_refused(held, tmp_path, hmalloc):
    """The library as another release of it may be: its record has another number."""
    if shutil.which("readelf") is None:
        pytest.skip("there is no readelf")
    data = LIBRARY.read_bytes()
    at = data.index(b"hmalloc layout\0\0")
    for change, message in ((b"\x63", "describes its heap in form 99; this tool knows form "), (None, "is damaged")):
        copy = tmp_path / "libhmalloc.so"
        copy.write_bytes(data[:at + 16] + change + data[at + 17:] if change else data[:at] + b"X" + data[at + 1:])
        with subprocess.Popen(["sleep", "100"], env=environment(LD_PRELOAD=str(copy))) as other:
            for _ in range(100):
                shown = hmalloc("inspect", other.pid)
                if "no hmalloc" not in shown.stderr:
                    break
            other.kill()
        assert shown.returncode == 2 and message in shown.stderr and shown.stderr.count("\n") == 1
