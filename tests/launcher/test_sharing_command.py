"""hmalloc profile: what it shows is what the program did, and whatever is wrong is said in one line."""

import gzip
import importlib.util
import json
import os
import pty
import re
import select
import signal
import subprocess
import time

import pytest
from conftest import LAUNCHER, ROOT, SOURCES

RATE = ["--rate", "8K"]
NEEDS_PAGE = pytest.mark.skipif(importlib.util.find_spec("hmalloc_lab.profile.page") is None, reason="no page is made")


def line_of(text):
    return next(at for at, line in enumerate((SOURCES / "sharing.c").read_text().splitlines(), 1) if text in line)


FEED, CONSUME = f"feed (sharing.c:{line_of('xmalloc(kBlock)')})", f"consume (sharing.c:{line_of('free(passed[i])')})"


@pytest.fixture(scope="session")
def sharing(hmalloc, build):
    return build("sharing.c", "sharing", "-g", "-pthread", "-fno-builtin")


@pytest.fixture
def profiled(hmalloc, tmp_path):
    """The tables and the document of a run."""

    def call(*arguments, code=0, **environment):
        file = tmp_path / "map.json"
        shown = hmalloc("profile", "--json", file, *arguments, **environment)
        assert shown.returncode == code, shown.stderr
        return shown.stdout, json.loads(file.read_text())

    return call


def environment():
    return {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "HMALLOC_"))}


# ---- A run. ----------------------------------------------------------------------------------------------------------


def test_who_allocates_who_frees_and_where(profiled, sharing):
    shown, found = profiled(*RATE, "--", sharing)
    names = [thread["name"] for thread in found["threads"]]
    feeder, eater = names.index("feeder"), names.index("eater")
    cells = {(cell["allocated_by"], cell["freed_by"]): cell["amount"] for cell in found["matrix"]}
    assert cells[feeder, eater]["objects"] == pytest.approx(20000, rel=0.2)
    assert cells[feeder, feeder]["objects"] == pytest.approx(20000, rel=0.2)
    site = found["sites"][0]
    assert f"{site['function']} ({site['file']}:{site['line']})" == FEED, "xmalloc only passes on what it got"
    assert site["object"] == "sharing" and site["stack"][:2] == [FEED, f"run_feed (sharing.c:{line_of(' feed();')})"]
    assert site["handed_over"] == site["freed"] and site["block_bytes"] == pytest.approx(224, rel=1e-3)  # of its class
    assert [each["by_other"] for each in site["freed_at"]] == [True]
    assert site["freed_at"][0]["place"] == CONSUME
    for part in (FEED, CONSUME, "feeder", "eater", "handed over", "under 1 us"):
        assert part in shown


def test_what_a_profile_does_not_know_stands_below_the_advice(profiled, sharing):
    from hmalloc_lab.profile.advice import RESERVATIONS

    shown, found = profiled(*RATE, "--", sharing)
    kinds = {each["kind"] for each in found["advice"]}
    assert kinds and [text in shown for text in RESERVATIONS.values()] == [kind in kinds for kind in RESERVATIONS]


def test_the_document_has_its_schema(profiled, sharing):
    _, found = profiled(*RATE, "--", sharing, "pool")
    amount = {"objects": float, "bytes": float, "samples": int}
    site = {"function": (str, None), "file": (str, None), "line": (int, None), "path": (str, None),
            "object": str, "address": str, "stack": [str], "block_bytes": float,
            "allocated": amount, "held": amount, "freed": amount, "handed_over": amount,
            "ages": [{"from_ns": int, "to_ns": int, "amount": amount}],
            "freed_at": [{"place": str, "by_other": bool, "amount": amount}]}
    schema = {"schema": str, "version": int, "program": str, "period": int, "missing": str,
              "total": dict.fromkeys(("allocated", "held", "freed", "handed_over"), amount),
              "threads": [{"name": str, "id": int}], "matrix": [{"allocated_by": int, "freed_by": int, "amount": amount}],
              "sites": [site],
              "advice": [{"kind": str, "site": int, "samples": int, "of": int, "blocks": float, "saves_instructions": float,
                          "text": str}]}

    def check(value, form, where):
        if isinstance(form, dict):
            assert set(value) == set(form), where
            for key, part in form.items():
                check(value[key], part, f"{where}.{key}")
        elif isinstance(form, list):
            for each in value:
                check(each, form[0], f"{where}[]")
        elif isinstance(form, tuple):
            assert value is None or type(value) is form[0], where
        else:
            assert type(value) is form or (form is float and type(value) is int), where

    check(found, schema, "map")
    assert (found["schema"], found["version"], found["program"], found["period"]) == ("hmalloc-sharing-map", 1, "sharing", 8192)
    assert len(found["sites"]) >= 2 and found["advice"]
    freed = found["total"]["freed"]
    for parts in (found["matrix"], [age for each in found["sites"] for age in each["ages"]],
                  [place for each in found["sites"] for place in each["freed_at"]]):
        assert sum(part["amount"]["samples"] for part in parts) == freed["samples"]
        assert sum(part["amount"]["bytes"] for part in parts) == pytest.approx(freed["bytes"])
    sites = found["sites"]
    assert sites == sorted(sites, key=lambda each: (-each["handed_over"]["bytes"], -each["allocated"]["bytes"]))


def test_many_threads_of_one_name_are_a_row(profiled, sharing):
    shown, found = profiled(*RATE, "--", sharing, "pool")
    assert len(found["threads"]) > 8
    assert re.search(r"^\d io_thd_\* \(12 threads\)", shown, re.MULTILINE)
    assert re.search(r"^\d eater \(13 threads\)", shown, re.MULTILINE)
    assert re.search(r"^\d are io_thd_1 \(\d+\), io_thd_2 \(\d+\), ", shown, re.MULTILINE)


def test_names_of_threads_do_not_reach_the_terminal_raw(profiled, sharing):
    shown, found = profiled(*RATE, "--", sharing, "odd-name")
    assert "\\x1b[31m\\nred" in shown and "\x1b" not in shown
    assert "\\x1b[31m\\nred" in [thread["name"] for thread in found["threads"]]


def test_functions_to_skip(profiled, sharing):
    _, found = profiled(*RATE, "--skip", "^feed$", "--", sharing)
    assert found["sites"][0]["function"] == "run_feed"


def test_without_debug_information_there_are_functions_and_without_those_addresses(profiled, sharing, build):
    _, found = profiled(*RATE, "--", build("sharing.c", "no-lines", "-pthread", "-fno-builtin"))
    assert {(site["function"], site["line"]) for site in found["sites"][:2]} == {("feed", None), ("keep_to_itself", None)}
    shown, found = profiled(*RATE, "--", build("sharing.c", "stripped", "-pthread", "-fno-builtin", "-s"))
    site = found["sites"][0]
    assert site["function"] is None and site["object"] == "stripped" and int(site["address"], 16) > 0
    assert f"stripped+{site['address']}" in shown
    assert found["advice"] == [], "there is no place to name"


def test_a_program_may_be_called_anything(profiled, sharing, tmp_path):
    folder = tmp_path / "two\nlines"
    folder.mkdir()
    program = folder / "a \x1b[31mname\u00a0\u00fc"
    program.write_bytes(sharing.read_bytes())
    program.chmod(0o755)
    shown, found = profiled(*RATE, "--", program)
    assert found["sites"][0]["function"] == "feed" and found["sites"][0]["object"] == "a \\x1b[31mname\\xa0\u00fc"
    assert "\x1b" not in shown


@pytest.mark.parametrize("options", [
    ["-no-pie"], ["-pie", "-Wl,-z,noseparate-code"], ["-Wl,-Ttext-segment=0x20000000", "-no-pie"]])
def test_addresses_are_the_files_own(profiled, build, options):
    program = build("sharing.c", "-".join(options), "-g", "-pthread", "-fno-builtin", *options)
    _, found = profiled(*RATE, "--", program)
    assert found["sites"][0]["function"] == "feed"


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_the_standard_library_passes_on(profiled, build, level):
    _, found = profiled(*RATE, "--", build("records.cc", f"records{level}", "-g", level, "-pthread", "-lstdc++"))
    handed_over = [site for site in found["sites"] if site["handed_over"]["bytes"]]
    assert {(site["function"], site["file"]) for site in handed_over} == {("make_record", "records.cc")}
    places = {each["place"].split(" ")[0] for site in handed_over for each in site["freed_at"] if each["by_other"]}
    assert places <= {"delete_all", "Record::~Record", "~Record"}, "not ~vector and the like"


def test_the_allocator_may_be_linked_in(profiled, build):
    library = ROOT / "build/release/libhmalloc.a"
    if not library.exists():
        pytest.skip(f"{library.name} has not been built")
    program = build("sharing.c", "linked", "-g", "-pthread", "-fno-builtin", "-Wl,--whole-archive", library,
                    "-Wl,--no-whole-archive", "-ldl")
    _, found = profiled(*RATE, "--", program)
    site = found["sites"][0]
    assert f"{site['function']} ({site['file']}:{site['line']})" == FEED and site["freed_at"][0]["place"] == CONSUME


def test_without_binutils_there_are_functions(profiled, sharing, tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()
    for folder in filter(os.path.isdir, os.environ["PATH"].split(":")[::-1]):
        for path in os.scandir(folder):
            (tools / path.name).unlink(missing_ok=True)
            if path.name not in ("addr2line", "c++filt"):
                (tools / path.name).symlink_to(path.path)
    shown, found = profiled(*RATE, "--", sharing, PATH=str(tools))
    assert "install binutils" in shown
    assert (found["sites"][0]["function"], found["sites"][0]["line"]) == ("feed", None)


def test_a_file_that_has_changed_names_nothing(hmalloc, sharing, build, tmp_path):
    program, kept = tmp_path / "program", tmp_path / "kept.pb"
    program.write_bytes(sharing.read_bytes())
    program.chmod(0o755)
    assert hmalloc("profile", *RATE, "--pprof", kept, "--", program).returncode == 0
    assert FEED in hmalloc("profile", "--from", kept).stdout
    program.write_bytes(build("touch.c", "touch").read_bytes())
    shown = hmalloc("profile", "--from", kept)
    assert shown.returncode == 0 and f"{program}: has changed since" in shown.stdout
    assert "program+0x" in shown.stdout and "feed (" not in shown.stdout


def test_the_program_has_its_own_input_output_and_exit_code(hmalloc, sharing):
    result = subprocess.run([LAUNCHER, "profile", "--", sharing, "echo", "10"], input="first\n", capture_output=True, text=True,
                            env=environment(), timeout=60)
    assert result.returncode == 0 and result.stdout.startswith("first\nsharing: one sample in 512K")
    assert hmalloc("profile", *RATE, "--", sharing, "code").returncode == 5


def test_too_few_samples_are_none(hmalloc, sharing):
    shown = hmalloc("profile", "--rate", "1G", "--", sharing, "", "1")
    assert shown.returncode == 0 and "There are no samples" in shown.stdout


def test_of_several_processes_the_first_is_shown(hmalloc, sharing):
    shown = hmalloc("profile", *RATE, "--", sharing, "fork")
    assert shown.returncode == 0 and FEED in shown.stdout
    assert shown.stderr == "hmalloc: 2 more processes wrote a profile; this is of the one that was started\n"


def test_a_script_without_a_first_line_runs(hmalloc, script):
    assert hmalloc("profile", "--", script("exit 4\n")).returncode == 4


def test_a_killed_program_has_no_profile(hmalloc, sharing):
    shown = hmalloc("profile", *RATE, "--", sharing, "killed")
    assert shown.returncode == 137 and shown.stdout == ""
    assert shown.stderr == f"hmalloc: {sharing} wrote no profile: signal 9 ended it (Killed)\n"


@pytest.mark.parametrize("words, code, said", [
    (["killed"], 3, "it ended by _exit, or another program took its place"),
    (["", "10"], 3, "it ended by _exit, or another program took its place; 1 more process did: name their program")])
def test_a_shell_leaves_without_a_profile_and_the_programs_that_it_starts_have_theirs(hmalloc, sharing, build, words, code, said):
    leaves = build("started.c", "started")  # as some shells do
    shown = hmalloc("profile", *RATE, "--", leaves, sharing, *words)
    assert (shown.returncode, shown.stdout) == (code, "")
    assert shown.stderr == f"hmalloc: {leaves} wrote no profile: {said}\n"


def test_a_program_out_of_reach_is_not_run(hmalloc, build):
    shown = hmalloc("profile", "--", build("nothing.c", "static", "-static"))
    assert shown.returncode == 1 and "statically linked" in shown.stderr and shown.stdout == ""


def test_what_happens_to_the_folder_of_profiles_is_no_traceback(hmalloc, script, tmp_path):
    """Children that live on may write into it while it is taken away."""
    takes = script('rm -r "${HMALLOC_PROFILE_FILE%/*}"; : > "${HMALLOC_PROFILE_FILE%/*}"; exit 4\n')
    shown = hmalloc("profile", "--", takes, TMPDIR=str(tmp_path))
    assert shown.returncode == 4 and "Traceback" not in shown.stderr


def test_without_a_folder_for_the_profile_there_is_a_line(monkeypatch):
    import tempfile

    from hmalloc_lab.errors import Failure
    from hmalloc_lab.profile import running

    def fail(**_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryDirectory", fail)
    with pytest.raises(Failure, match="^no folder for the profile: No space left on device$") as failure:
        running._folder()
    assert failure.value.code == 1


# ---- Signals. --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way, number, code", [
    ("wait", signal.SIGINT, 130), ("wait", signal.SIGTERM, 143), ("handles", signal.SIGINT, 9)])
def test_a_signal_ends_the_program_and_the_map_is_shown(hmalloc, sharing, way, number, code):
    process = subprocess.Popen([LAUNCHER, "profile", *RATE, "--", sharing, way], stdin=subprocess.DEVNULL, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    shown, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (code, "") and FEED in shown


def test_a_program_that_leaves_at_once_has_no_profile(hmalloc, sharing):
    process = subprocess.Popen([LAUNCHER, "profile", "--", sharing, "leaves"], stdin=subprocess.DEVNULL, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    assert process.stdout.readline() == "ready\n"
    process.terminate()
    shown, errors = process.communicate(timeout=60)
    assert (process.returncode, shown) == (7, "")
    assert errors == f"hmalloc: {sharing} wrote no profile: it ended by _exit, or another program took its place\n"


def on_a_terminal(words, keys, columns=80):
    """What is shown on a terminal, and the exit code; keys are pressed when the program is ready."""
    import fcntl
    import struct
    import termios

    child, terminal = pty.fork()
    if child == 0:
        os.execve(words[0], list(map(str, words)), environment() | {"TERM": "dumb"})
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    shown, end = b"", time.monotonic() + 60
    while time.monotonic() < end and select.select([terminal], [], [], 60)[0]:
        try:
            shown += os.read(terminal, 65536)
        except OSError:
            break
        if keys and b"ready" in shown:
            os.write(terminal, keys)
            keys = b""
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(terminal)
    return shown.decode().replace("\r\n", "\n"), code


@pytest.mark.parametrize("way, code", [("wait", 130), ("handles", 9)])
def test_control_c_ends_the_program_and_the_map_is_shown(hmalloc, sharing, way, code):
    shown, ended = on_a_terminal([LAUNCHER, "profile", *RATE, "--", sharing, way], b"\x03")
    assert ended == code and FEED in shown and "Traceback" not in shown


def test_it_fits_80_columns(hmalloc, sharing):
    shown, code = on_a_terminal([LAUNCHER, "profile", *RATE, "--", sharing, "pool"], b"")
    assert code == 0 and "Advice" in shown and max(map(len, shown.splitlines())) <= 80
    piped = hmalloc("profile", *RATE, "--", sharing, "pool").stdout
    tables = piped[:piped.index("Advice")].splitlines()
    assert max(len(line) for line in tables if " are " not in line) <= 80


def test_a_wide_terminal_is_not_filled_with_spaces(hmalloc, kept):
    shown = hmalloc("profile", "--from", kept, COLUMNS="400").stdout
    assert max(map(len, shown[:shown.index("Advice")].splitlines())) < 200


# ---- Where it writes to. ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["--json", "--pprof", pytest.param("--html", marks=NEEDS_PAGE)])
def test_a_full_disk_is_one_line_and_the_map_is_shown(hmalloc, sharing, tmp_path, option):
    full = tmp_path / "full"  # root, who writes a file anew where the device is, would replace only this
    full.symlink_to("/dev/full")
    shown = hmalloc("profile", *RATE, option, full, "--", sharing)
    assert (shown.returncode, shown.stderr) == (1, f"hmalloc: {full}: No space left on device\n")
    assert FEED in shown.stdout


@NEEDS_PAGE
def test_nothing_is_written_over(hmalloc, kept, tmp_path):
    whole, out, said = kept.read_bytes(), tmp_path / "out", "named twice, and would be written over\n"
    (tmp_path / "link").symlink_to(kept)
    for file, options in ((kept, ["--from", kept, "--json", kept]), (kept, ["--from", tmp_path / "link", "--html", kept]),
                          (out, ["--from", kept, "--json", out, "--html", out]), (out, ["--pprof", out, "--json", out, "true"])):
        shown = hmalloc("profile", *options)
        assert (shown.returncode, shown.stdout, shown.stderr) == (2, "", f"hmalloc: {file}: {said}")
    assert kept.read_bytes() == whole and not out.exists()
    nowhere = tmp_path / "nowhere"  # what is no file may be named twice
    nowhere.symlink_to("/dev/null")
    assert hmalloc("profile", "--from", kept, "--json", nowhere, "--html", nowhere).returncode == 0


def test_where_nothing_comes_of_it_no_file_is_made(hmalloc, sharing, tmp_path):
    file = tmp_path / "map.json"
    (tmp_path / "link").symlink_to(file)
    for name in ("map.json", "link"):
        assert hmalloc("profile", "--json", tmp_path / name, "--", sharing, "killed").returncode == 137
    assert not file.exists() and (tmp_path / "link").is_symlink()


@pytest.mark.parametrize("options, mode, code, said", [
    (["--from"], 0o200, 2, "cannot be read: Permission denied"), (["--json"], 0o400, 2, "Permission denied"),
    (["--json"], 0o200, 0, None)])
def test_it_asks_for_no_more_than_it_needs(sharing, tmp_path, options, mode, code, said):
    weak = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    if weak and subprocess.run([*weak, "true"], capture_output=True).returncode != 0:
        pytest.skip("root cannot be made weaker here")
    file = tmp_path / "file"
    file.touch()
    file.chmod(mode)
    program = [] if options == ["--from"] else ["--", sharing]
    shown = subprocess.run([*weak, LAUNCHER, "profile", *options, file, *program], stdin=subprocess.DEVNULL, env=environment(),
                           capture_output=True, text=True, timeout=60)
    assert (shown.returncode, shown.stderr) == (code, f"hmalloc: {file}: {said}\n" if said else "")


def test_who_reads_from_a_pipe_gets_all(hmalloc, kept, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE, text=True)
    assert hmalloc("profile", "--from", kept, "--json", tmp_path / "pipe").returncode == 0
    assert json.loads(reader.communicate(timeout=60)[0])["program"] == "sharing"


@NEEDS_PAGE
def test_a_page_is_written(hmalloc, sharing, tmp_path):
    page = tmp_path / "map.html"
    assert hmalloc("profile", *RATE, "--html", page, "--", sharing).returncode == 0
    assert "</html>" in page.read_text() and "consume (sharing.c:" in page.read_text()


@pytest.fixture(scope="session")
def kept(hmalloc, sharing, tmp_path_factory):
    file = tmp_path_factory.mktemp("kept") / "kept.pb"
    assert hmalloc("profile", *RATE, "--pprof", file, "--", sharing).returncode == 0
    return file


COMMANDS = [["profile", "--from", None], ["doctor", "--", "/bin/sh"], ["compare", "-n", "1", "--", "true"]]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_full_standard_output_is_one_line(hmalloc, kept, words):
    with open("/dev/full", "w") as full:
        result = subprocess.run([LAUNCHER, *[word or kept for word in words]], stdin=subprocess.DEVNULL, stdout=full,
                                stderr=subprocess.PIPE, text=True, env=environment(), timeout=60)
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == "hmalloc: standard output: No space left on device"
    assert "Traceback" not in result.stderr and "Exception" not in result.stderr


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_reader_that_has_left_is_no_error_to_tell(hmalloc, kept, words):
    reading, writing = os.pipe()
    os.close(reading)
    result = subprocess.run([LAUNCHER, *[word or kept for word in words]], stdin=subprocess.DEVNULL, stdout=writing,
                            stderr=subprocess.PIPE, text=True, env=environment(), timeout=60)
    os.close(writing)
    assert result.returncode == 141 and "Traceback" not in result.stderr and "hmalloc: " not in result.stderr


def test_a_closed_standard_output_is_no_traceback(hmalloc, kept):
    result = subprocess.run(["sh", "-c", '"$0" profile --from "$1" >&-', LAUNCHER, kept], stderr=subprocess.PIPE, text=True,
                            env=environment(), timeout=60)
    assert "Traceback" not in result.stderr and "Exception" not in result.stderr


# ---- Profiles that are there. ----------------------------------------------------------------------------------------


def varint(number):
    out = b""
    while number >= 0x80:
        out, number = out + bytes([number & 0x7f | 0x80]), number >> 7
    return out + bytes([number])


def number(field, value):
    return varint(field << 3) + varint(value)


def part(field, content):
    return varint(field << 3 | 2) + varint(len(content)) + content


class Encoder:
    """A profile as hmalloc writes it, of what a test says: no file is named, so that places are addresses."""

    TYPES = ("alloc_objects", "alloc_space", "inuse_objects", "inuse_space", "freed_objects", "freed_space", "freed_samples")

    def __init__(self, types=TYPES, packed=True):
        self.strings, self.out, self.packed, self.seen = [], b"", packed, set()
        self.text("")
        for name in types:
            self.put(1, number(1, self.text(name)) + number(2, self.text("count")))

    def put(self, field, content):  # what it names is written by now
        self.out += part(field, content)

    def text(self, string):
        if string not in self.strings:
            self.strings.append(string)
            self.out += part(6, string.encode())
        return self.strings.index(string)

    def repeated(self, field, values):
        if self.packed:
            return part(field, b"".join(map(varint, values)))
        return b"".join(number(field, value) for value in values)

    def located(self, addresses):
        for address in set(addresses) - self.seen:
            self.seen.add(address)
            self.put(4, number(1, address) + number(3, address))

    def sample(self, stack, values, labels=b""):
        self.located(stack)
        self.put(2, self.repeated(1, stack) + self.repeated(2, values) + labels)

    def life(self, stack, by, freer, objects, size, samples, age=0, freed_at=()):
        self.located(freed_at)
        labels = b"".join(part(3, number(1, self.text(key)) + number(2, self.text(text)))
                          for key, text in (("allocated_by", by), ("freed_by", freer)))
        labels += part(3, number(1, self.text("age")) + number(3, age) + number(4, self.text("nanoseconds")))
        for address in freed_at:
            labels += part(3, number(1, self.text("freed_at")) + number(3, address) + number(4, self.text("address")))
        self.sample(stack, [0, 0, 0, 0, objects, size, samples], labels)

    def bytes(self, comment=""):
        if comment:
            text = self.text(comment)
            self.out += number(13, text)
        return self.out + number(12, 4096) + number(9, 1)


@pytest.mark.parametrize("packed", [True, False])
def test_what_stands_in_a_profile_is_shown(profiled, tmp_path, packed):
    made = Encoder(packed=packed)
    made.sample([0x1000, 0x2000], [10, 640, 4, 256, 0, 0, 0])
    made.life([0x1000, 0x2000], "one (11)", "two (12)", 5, 320, 5, 10**6, [0x3000])
    made.life([0x1000, 0x2000], "one (11)", "renamed (11)", 1, 64, 1)
    made.life([0x1000, 0x2000], "other threads", "other threads", 3, 192, 3)
    file = tmp_path / "made.pb"
    file.write_bytes(made.bytes("7 samples are missing: no memory, or no stack"))
    shown, found = profiled("--from", file)
    assert "7 samples are missing" in shown and found["missing"].startswith("7 samples")
    site, = found["sites"]
    assert site["allocated"] == {"objects": 10, "bytes": 640, "samples": 0} and site["held"]["bytes"] == 256
    assert site["freed"]["samples"] == 9 and site["handed_over"]["samples"] == 5, "who is not known may be the same"
    assert [(age["from_ns"], age["to_ns"]) for age in site["ages"]] == [(0, 1000), (10**6, 10**7)]
    assert site["freed_at"][0] == {"place": "0x3000", "by_other": True, "amount": {"objects": 5, "bytes": 320, "samples": 5}}
    assert {(thread["name"], thread["id"]) for thread in found["threads"]} == {("one", 11), ("two", 12), ("other threads", 0)}


def test_threads_without_a_number_are_told_by_their_names(profiled, tmp_path):
    made = Encoder()
    ends = [("many (0)", "many (0)", 1), ("many (0)", "another of many (0)", 2), ("many (0)", "few (0)", 4),
            ("many (0)", "other threads", 8), ("one (11)", "other threads", 16), ("other threads", "other threads", 32)]
    for at, (by, freer, samples) in enumerate(ends, 1):
        made.life([0x1000 * at], by, freer, samples, 64 * samples, samples)
    file = tmp_path / "made.pb"
    file.write_bytes(made.bytes())
    _, found = profiled("--from", file)
    names = [(thread["name"], thread["id"]) for thread in found["threads"]]
    assert set(names) == {("many", 0), ("another of many", 0), ("few", 0), ("one", 11), ("other threads", 0)}
    cells = {(names[cell["allocated_by"]][0], names[cell["freed_by"]][0]): cell["amount"]["samples"] for cell in found["matrix"]}
    assert cells["many", "many"] == 1 and cells["many", "another of many"] == 2 and cells["many", "few"] == 4
    assert found["total"]["handed_over"]["samples"] == 2 + 4 + 16, "one of the other threads may be one of the many"


def test_a_row_without_a_number_is_of_several_threads(hmalloc, tmp_path):
    made = Encoder()
    for number in range(1, 10):
        made.life([0x1000], f"many{number} ({number})", f"many{number} ({number})", 1, 64, 1)
    made.life([0x1000], "many1 (0)", "many1 (0)", 1, 64, 1)
    file = tmp_path / "made.pb"
    file.write_bytes(made.bytes())
    assert "1 many* (10 threads and more)" in hmalloc("profile", "--from", file).stdout


def test_a_profile_may_be_compressed(hmalloc, kept, tmp_path):
    packed = tmp_path / "kept.pb.gz"
    packed.write_bytes(gzip.compress(kept.read_bytes()))
    assert hmalloc("profile", "--from", packed).stdout == hmalloc("profile", "--from", kept).stdout


def test_a_part_of_a_profile_is_told_wherever_it_ends(kept):
    from hmalloc_lab.errors import Failure
    from hmalloc_lab.profile.reader import parse

    whole = kept.read_bytes()
    for form, data in (("plain", whole), ("gzip", gzip.compress(whole))):
        for end in [*range(2, 300), *range(300, len(data), 7), len(data) - 1]:
            with pytest.raises(Failure, match="truncated"):
                parse(data[:end], f"{form} {end}")


NO_FREES = Encoder(Encoder.TYPES[:4]).bytes()
FOREIGN = Encoder(("samples", "cpu")).bytes()


@pytest.mark.parametrize("content, said", [
    (b"", "not a profile, it is empty"), (b"some text\n", "not a profile"), (b"\x7fELF\x02\x01", "not a profile"),
    (FOREIGN, "not a profile of the heap by hmalloc"), (gzip.compress(FOREIGN), "not a profile of the heap by hmalloc"),
    (NO_FREES, "a profile without frees (HMALLOC_PROFILE_FREES=1 was not set)"),
    (gzip.compress(b"some text\n"), "not a profile"), (b"\x1f\x8b but no gzip", "cannot be read: damaged gzip"),
    (gzip.compress(NO_FREES)[:-9], "truncated")],
    ids=["empty", "text", "ELF", "another profile", "another one, packed", "without frees", "packed text", "no gzip",
         "a part, packed"])
def test_other_files_are_told_by_what_they_are(hmalloc, tmp_path, content, said):
    file = tmp_path / "a file"
    file.write_bytes(content)
    shown = hmalloc("profile", "--from", file)
    assert (shown.returncode, shown.stdout, shown.stderr) == (2, "", f"hmalloc: {file}: {said}\n")


def test_a_damaged_profile_is_no_traceback(kept):
    import random

    from hmalloc_lab.errors import Failure
    from hmalloc_lab.profile.reader import parse

    whole, chance = kept.read_bytes(), random.Random(1)
    for _ in range(3000):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            parse(bytes(data), "damaged")
        except Failure as failure:
            assert str(failure).startswith("damaged: ")


# ---- Names. ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("full, short, passes_on", [
    ("feed", "feed", False), ("void feed<Server>(Server&, int) const [clone .cold]", "feed", False),
    ("operator new(unsigned long)", "operator new", True), ("operator delete[](void*)", "operator delete[]", True),
    ("std::vector<int, std::allocator<int> >::_M_insert<int const&>(int const&)", "std::vector::_M_insert", True),
    ("(anonymous namespace)::Parser::parse(char const*)", "Parser::parse", False),
    ("main::{lambda(int)#1}::operator()(int) const", "main::{lambda}::operator()", False),
    ("Ostream& operator<< <int>(Ostream&, int)", "operator<<", False),
    ("Foo::operator bool() const", "Foo::operator bool", False),
    ("Foo::operator->() const", "Foo::operator->", False), ("Foo<(Bar)1>::f()", "Foo::f", False),
    ("__GI___strdup", "__strdup", True), ("parse.constprop.0", "parse", False), ("malloc@@GLIBC_2.2.5", "malloc", True),
    ("<alloc::vec::Vec<T> as core::iter::FromIterator<T>>::from_iter", "from_iter", True),
    *[(name, name, True) for name in ("xmalloc", "zcalloc_num", "g_malloc0", "strdup", "PyObject_Malloc", "_PyMem_RawMalloc")],
    *[(name, name, False) for name in ("PyUnicode_New", "freeze", "mallocate", "<<<<")], ("x<", "x", False)])
def test_names_are_short_and_wrappers_are_known(full, short, passes_on):
    from hmalloc_lab.profile.names import Wrappers, shorten

    assert shorten(full) == short
    assert Wrappers().passes_on(full) == passes_on


@pytest.mark.parametrize("part, whole, said", [
    (0, 0, "-"), (0, 9, "0%"), (9, 9, "100%"), (1, 999, "<1%"), (998, 999, ">99%"), (0.995, 100, "1%"), (1, 2, "50%")])
def test_all_and_nothing_are_said_of_all_and_nothing(part, whole, said):
    from hmalloc_lab.printing import in_percent

    assert in_percent(part, whole) == said


# ---- Wrong options. --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code, message, arguments", [
    (2, "profile: which program? (hmalloc profile --help)", []),
    (2, "profile: which program? (hmalloc profile --help)", ["--"]),
    (2, "profile: which program? (hmalloc profile --help)", ["--top", "3"]),
    (2, "profile: No such option: --nonsense (hmalloc profile --help)", ["--nonsense", "ls"]),
    (2, "--rate 0: not a size (512K, 64K, 1M)", ["--rate", "0", "ls"]),
    (2, "--rate fast: not a size (512K, 64K, 1M)", ["--rate=fast", "ls"]),
    (2, "--rate 99999999999G: not a size (512K, 64K, 1M)", ["--rate=99999999999G", "ls"]),
    (2, "--skip (: not a regular expression: missing ), unterminated subpattern at position 0", ["--skip", "(", "ls"]),
    (2, "profile: --from reads what is there: no program, --rate or --pprof (hmalloc profile --help)",
     ["--from", "/dev/null", "--", "ls"]),
    (2, "/no/such: cannot be read: No such file or directory", ["--from", "/no/such"]),
    (2, "/etc: cannot be read: Is a directory", ["--from", "/etc"]),
    (2, "/no/such.json: No such file or directory", ["--json", "/no/such.json", "ls"]),
    (2, "/no/such.pb: No such file or directory", ["--pprof", "/no/such.pb", "ls"]),
    (127, "no-such-program: program not found", ["--", "no-such-program"]),
    (127, "no-such-program: program not found", ["--top", "3", "no-such-program"]),
    (126, "/etc: is a directory", ["--", "/etc"]),
    (126, "/etc/passwd: not executable", ["--", "/etc/passwd"]),
])
def test_one_line_says_what_is_wrong(hmalloc, code, message, arguments):
    failed = hmalloc("profile", *arguments)
    assert failed.stderr == f"hmalloc: {message}\n"
    assert (failed.returncode, failed.stdout) == (code, "")


def test_the_help_and_the_options_agree(hmalloc):
    import typer.main
    from hmalloc_lab.cli import app

    command = typer.main.get_command(app).commands["profile"]
    taken = {name for parameter in command.params for name in parameter.opts if name.startswith("--")}
    assert taken - {"--help"} == set(re.findall(r"(?<!\w)--[a-z][a-z-]*", hmalloc("profile", "--help").stdout))
