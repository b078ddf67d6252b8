"""hmalloc inspect: what it shows is what lies in the heap, and whatever it looks at, it says so in one line or shows it."""

import csv
import fcntl
import json
import os
import pty
import random
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from conftest import LAUNCHER, ROOT
from heap_truth import LIBRARY, Held, environment

ARCHIVE = ROOT / "build/release/libhmalloc.a"
THREADS, LOST = 3, 70
TRACED = 320  # what glibc allocates for each thread's variables, at most


@pytest.fixture(scope="session")
def program(hmalloc, build):
    return build("heap_truth.c", "heap_truth", "-g", "-pthread", "-fno-builtin")


@pytest.fixture
def held(program, tmp_path):
    found = Held([program], tmp_path / "truth", LD_PRELOAD=str(LIBRARY))
    yield found
    found.end()


@pytest.fixture
def inspect(hmalloc, tmp_path):
    """The text, the document and the blocks."""

    def call(what, *options):
        document, blocks = tmp_path / "inspect.json", tmp_path / "blocks.csv"
        shown = hmalloc("inspect", what, "--json", document, "--blocks", blocks, *options)
        assert shown.returncode == 0, shown.stderr
        with blocks.open() as file:
            rows = [(int(row["address"], 16), int(row["size"]), row["state"]) for row in csv.DictReader(file)]
        return shown.stdout, json.loads(document.read_text()), rows

    return call


def assert_is_the_truth(truth, document, rows, most_others=THREADS, largest=TRACED):
    live = {address: size for address, size, state in rows if state in ("live", "sampled")}
    assert len(live) == document["live_blocks"] and sum(live.values()) == document["live_bytes"]
    assert truth.keys() <= live.keys()
    assert all(live[address] >= size for address, size in truth.items())
    others = [size for address, size in live.items() if address not in truth]
    assert len(others) <= most_others and all(size <= largest for size in others)
    assert document["exact"] and document["changing"] == 0


def tools():
    """The modules, where this Python has what they need."""
    try:
        from hmalloc_lab import errors
        from hmalloc_lab.inspect import process
    except ImportError:
        pytest.skip("this Python lacks what the tool needs")
    return errors, process


# ---- What is shown is what is there. ----------------------------------------------------------------------------------


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
def test_of_every_library_and_of_programs_without_symbols(options, program, build, tmp_path, inspect):
    command, more = [program], {"LD_PRELOAD": str(LIBRARY)}
    if options == ["--checked"]:
        command, more = [LAUNCHER, "run", "--checked", "--", program], {}
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


def test_what_a_fork_has_left_behind_is_neither_live_nor_lost(program, tmp_path, inspect):
    found = Held([program], tmp_path / "truth", "fork", LD_PRELOAD=str(LIBRARY))
    try:
        child = int(subprocess.check_output(["pgrep", "-P", str(found.number)]))
        _, document, rows = inspect(child, "--leaks")
        assert_is_the_truth(found.truth, document, rows)
        assert document["leaks"]["blocks"] == 2 * LOST
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


def test_a_core_file_says_the_same(program, tmp_path, inspect, hmalloc):
    core, truth = core_of(program, tmp_path, LIBRARY), tmp_path / "truth"
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


def test_a_core_file_without_what_stands_in_files(program, tmp_path, hmalloc):
    library = shutil.copy(LIBRARY, tmp_path / "libhmalloc.so")
    core = core_of(program, tmp_path, library, "0x3")
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
        while "5120" not in seen:
            assert seen, "it ended"
            seen = watcher.stdout.readline()
        assert seen.split()[:3] == ["+500K", "+100", "5120"]
        held.end()
        rest = watcher.communicate(timeout=60)
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


@pytest.mark.parametrize("end", [b"q", b"\x1b", signal.SIGTERM], ids=repr)
def test_top_shows_what_changes_and_leaves_the_terminal_as_it_was(held, end):
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 80, 0, 0))
    before = termios.tcgetattr(slave)
    top = subprocess.Popen([LAUNCHER, "top", "--every", "200ms", str(held.number)], stdin=slave, stdout=slave,
                           stderr=subprocess.PIPE, env=environment(TERM="xterm"))
    try:
        seen = read_until(master, "handed over/s")
        held.ask("grow")
        seen += read_until(master, "+500K")
        os.write(master, b"\x1b[A")  # an arrow, which ends nothing
        held.ask("grow")
        seen += read_until(master, "+0.977M")
        if isinstance(end, bytes):
            os.write(master, end)
        else:
            top.send_signal(end)
        seen += read_until_end(master, top)
        assert top.returncode == (0 if isinstance(end, bytes) else 128 + end) and top.stderr.read() == b""
        assert seen.count("\x1b[?1049h") == seen.count("\x1b[?1049l") == 1
        dumb = subprocess.run([LAUNCHER, "top", str(held.number)], stdin=slave, stdout=slave, stderr=subprocess.PIPE,
                              env=environment(TERM="dumb"), timeout=60, check=False)
        assert dumb.returncode == 2 and b"needs a terminal" in dumb.stderr
    finally:
        top.kill(), top.wait(), top.stderr.close()
    lines = [re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", line) for line in seen.replace("\x1b[H", "\n").splitlines()]
    assert max(map(len, lines)) <= 80 and any("allocated" in line for line in lines)
    assert termios.tcgetattr(slave) == before
    os.close(master), os.close(slave)


def read_until(descriptor, text):
    seen, end = "", time.monotonic() + 120
    while text not in seen:
        assert time.monotonic() < end and select.select([descriptor], [], [], 60)[0], seen[-4000:]
        seen += os.read(descriptor, 65536).decode(errors="replace")
    return seen


def read_until_end(descriptor, process):
    """It may write more than the terminal holds before it ends."""
    seen = ""
    while process.poll() is None:
        if select.select([descriptor], [], [], 0.1)[0]:
            seen += os.read(descriptor, 65536).decode(errors="replace")
    return seen


def test_top_needs_a_terminal_and_one_process(held, hmalloc):
    shown = hmalloc("top", held.number)
    assert (shown.returncode, shown.stderr) == (
        2, "hmalloc: top: needs a terminal; without one: hmalloc inspect --every 1s PID\n")
    shown = hmalloc("top")
    assert (shown.returncode, shown.stderr) == (2, "hmalloc: top: which process? (hmalloc top --help)\n")


# ---- The program is none the worse for it. ----------------------------------------------------------------------------


def test_what_nobody_has_written_to_is_not_read(program, tmp_path, inspect):
    found = Held([program], tmp_path / "truth", "sparse", LD_PRELOAD=str(LIBRARY))

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
    while int(held.ask("signals")) < sent:
        pass


def test_a_thread_that_cannot_be_stopped(program, tmp_path, hmalloc):
    found = Held([program], tmp_path / "truth", "vfork", LD_PRELOAD=str(LIBRARY))
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
    tracer.communicate("\n", timeout=60)
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


def test_names_that_no_terminal_should_see(program, inspect, tmp_path):
    copy = os.fsencode(tmp_path) + b"/\x1b[2J[red]\n\xff"
    shutil.copy(program, copy)
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


def test_each_row_of_the_record_matters(program, tmp_path):
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

    held = Held([program], tmp_path / "truth", LD_PRELOAD=str(LIBRARY), HMALLOC_PROFILE="heap:rate=64K",
                HMALLOC_PROFILE_FILE="/dev/null")
    memory = process.ProcessMemory(held.number)
    with memory.standing_still():
        found = layout.find(memory)
        truth = look(found)
        idle = {name for name, value in found.rows.items()
                if all(look(layout.Layout(found.library, found.module, found.rows | {name: value + change})) == truth
                       for change in (8, -1, 1 << 20))}
    memory.close()
    held.end()
    # A bound; what descriptors without an extent happen to contain; what there may be none of.
    assert idle <= {"heap.most_runs", "extent.is_unused", "counter.foreign_frees", "chunk.dirty", "chunk.dirty_before"}


def test_a_record_of_another_version_is_refused(held, tmp_path, hmalloc):
    """The library as another release of it may be: its record has another number."""
    if shutil.which("readelf") is None:
        pytest.skip("there is no readelf")
    data = LIBRARY.read_bytes()
    at = data.index(b"hmalloc layout\0\0")
    for change, message in ((b"\2", "describes its heap in form 2; this tool knows form 1"), (None, "is damaged")):
        copy = tmp_path / "libhmalloc.so"
        copy.write_bytes(data[:at + 16] + change + data[at + 17:] if change else data[:at] + b"X" + data[at + 1:])
        with subprocess.Popen(["sleep", "100"], env=environment(LD_PRELOAD=str(copy))) as other:
            for _ in range(100):
                shown = hmalloc("inspect", other.pid)
                if "no hmalloc" not in shown.stderr:
                    break
            other.kill()
        assert shown.returncode == 2 and message in shown.stderr and shown.stderr.count("\n") == 1
