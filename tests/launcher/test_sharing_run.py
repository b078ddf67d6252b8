"""hmalloc profile: how it runs a program, where it writes to, and that whatever is wrong is said in one line."""

import json
import os
import re
import signal
import subprocess

import pytest
from conftest import LAUNCHER, environment
from sharing_runs import FEED, RATE, mapped, on_a_terminal, sharing  # noqa: F401


def test_the_program_has_its_own_input_output_and_exit_code(tool, sharing):
    result = subprocess.run([LAUNCHER, "profile", "--", sharing, "echo", "10"], input="first\n", capture_output=True, text=True,
                            env=environment(), timeout=300)
    assert result.returncode == 0 and result.stdout.startswith("first\nsharing: one sample in 512K")
    assert tool("profile", *RATE, "--", sharing, "code").returncode == 5


def test_too_few_samples_are_none(tool, sharing):
    shown = tool("profile", "--rate", "1G", "--", sharing, "", "1")
    assert shown.returncode == 0 and "There are no samples" in shown.stdout


def test_of_several_processes_the_first_is_shown(tool, sharing):
    shown = tool("profile", *RATE, "--", sharing, "fork")
    assert shown.returncode == 0 and FEED in shown.stdout
    assert shown.stderr == "hmalloc: 2 more processes wrote a profile; this is of the one that was started\n"


def test_a_script_without_a_first_line_runs(tool, script):
    assert tool("profile", "--", script("exit 4\n")).returncode == 4


def test_a_killed_program_has_no_profile(tool, sharing):
    shown = tool("profile", *RATE, "--", sharing, "killed")
    assert shown.returncode == 137 and shown.stdout == ""
    assert shown.stderr == f"hmalloc: {sharing} wrote no profile: signal 9 ended it (Killed)\n"


@pytest.mark.parametrize("words, code, said", [
    (["killed"], 3, "it ended by _exit, or another program took its place"),
    (["", "10"], 3, "it ended by _exit, or another program took its place; 1 more process did: name their program")])
def test_a_shell_leaves_without_a_profile_and_the_programs_that_it_starts_have_theirs(tool, sharing, build, words, code, said):
    leaves = build("started.c", "started")  # as some shells do
    shown = tool("profile", *RATE, "--", leaves, sharing, *words)
    assert (shown.returncode, shown.stdout) == (code, "")
    assert shown.stderr == f"hmalloc: {leaves} wrote no profile: {said}\n"


def test_a_program_out_of_reach_is_not_run(tool, build):
    shown = tool("profile", "--", build("nothing.c", "static", "-static"))
    assert shown.returncode == 1 and "statically linked" in shown.stderr and shown.stdout == ""


def test_what_happens_to_the_folder_of_profiles_is_no_traceback(tool, script, tmp_path):
    """Children that live on may write into it while it is taken away."""
    takes = script('rm -r "${HMALLOC_PROFILE_FILE%/*}"; : > "${HMALLOC_PROFILE_FILE%/*}"; exit 4\n')
    shown = tool("profile", "--", takes, TMPDIR=str(tmp_path))
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


@pytest.mark.parametrize("way, number, code", [
    ("wait", signal.SIGINT, 130), ("wait", signal.SIGTERM, 143), ("handles", signal.SIGINT, 9)])
def test_a_signal_ends_the_program_and_the_map_is_shown(hmalloc, sharing, way, number, code):
    process = subprocess.Popen([LAUNCHER, "profile", *RATE, "--", sharing, way], stdin=subprocess.DEVNULL, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    shown, errors = process.communicate(timeout=300)
    assert (process.returncode, errors) == (code, "") and FEED in shown


def test_a_program_that_leaves_at_once_has_no_profile(hmalloc, sharing):
    process = subprocess.Popen([LAUNCHER, "profile", "--", sharing, "leaves"], stdin=subprocess.DEVNULL, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    assert process.stdout.readline() == "ready\n"
    process.terminate()
    shown, errors = process.communicate(timeout=300)
    assert (process.returncode, shown) == (7, "")
    assert errors == f"hmalloc: {sharing} wrote no profile: it ended by _exit, or another program took its place\n"


@pytest.mark.parametrize("way, code", [("wait", 130), ("handles", 9)])
def test_control_c_ends_the_program_and_the_map_is_shown(hmalloc, sharing, way, code):
    shown, ended = on_a_terminal([LAUNCHER, "profile", *RATE, "--", sharing, way], b"\x03")
    assert ended == code and FEED in shown and "Traceback" not in shown


@pytest.mark.parametrize("option", ["--json", "--pprof", "--html"])
def test_a_full_disk_is_one_line_and_the_map_is_shown(tool, sharing, mapped, tmp_path, option):
    full = tmp_path / "full"  # root, who writes a file anew where the device is, would replace only this
    full.symlink_to("/dev/full")
    whence = ["--from", mapped.profile] if option != "--pprof" else [*RATE, "--", sharing]
    shown = tool("profile", option, full, *whence)
    assert (shown.returncode, shown.stderr) == (1, f"hmalloc: {full}: No space left on device\n")
    assert FEED in shown.stdout


def test_nothing_is_written_over(tool, mapped, tmp_path):
    kept = mapped.profile
    whole, out, said = kept.read_bytes(), tmp_path / "out", "named twice, and would be written over\n"
    (tmp_path / "link").symlink_to(kept)
    for file, options in ((kept, ["--from", kept, "--json", kept]), (kept, ["--from", tmp_path / "link", "--html", kept]),
                          (out, ["--from", kept, "--json", out, "--html", out]), (out, ["--pprof", out, "--json", out, "true"])):
        shown = tool("profile", *options)
        assert (shown.returncode, shown.stdout, shown.stderr) == (2, "", f"hmalloc: {file}: {said}")
    assert kept.read_bytes() == whole and not out.exists()
    nowhere = tmp_path / "nowhere"  # what is no file may be named twice
    nowhere.symlink_to("/dev/null")
    assert tool("profile", "--from", kept, "--json", nowhere, "--html", nowhere).returncode == 0


def test_where_nothing_comes_of_it_no_file_is_made(tool, sharing, tmp_path):
    file = tmp_path / "map.json"
    (tmp_path / "link").symlink_to(file)
    for name in ("map.json", "link"):
        assert tool("profile", "--json", tmp_path / name, "--", sharing, "killed").returncode == 137
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
                           capture_output=True, text=True, timeout=300)
    assert (shown.returncode, shown.stderr) == (code, f"hmalloc: {file}: {said}\n" if said else "")


def test_who_reads_from_a_pipe_gets_all(tool, mapped, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE, text=True)
    assert tool("profile", "--from", mapped.profile, "--json", tmp_path / "pipe").returncode == 0
    assert json.loads(reader.communicate(timeout=300)[0])["program"] == "sharing"


def test_a_full_standard_output_is_one_line(mapped):
    with open("/dev/full", "w") as full:
        result = subprocess.run([LAUNCHER, "profile", "--from", mapped.profile], stdin=subprocess.DEVNULL, stdout=full,
                                stderr=subprocess.PIPE, text=True, env=environment(), timeout=300)
    assert (result.returncode, result.stderr) == (1, "hmalloc: standard output: No space left on device\n")


def test_a_reader_that_has_left_is_no_error_to_tell(mapped):
    reading, writing = os.pipe()
    os.close(reading)
    result = subprocess.run([LAUNCHER, "profile", "--from", mapped.profile], stdin=subprocess.DEVNULL, stdout=writing,
                            stderr=subprocess.PIPE, text=True, env=environment(), timeout=300)
    os.close(writing)
    assert (result.returncode, result.stderr) == (141, "")


@pytest.mark.parametrize("words", [["doctor", "--", "/bin/sh"], ["compare", "-n", "1", "--", "true"]], ids=lambda words: words[0])
def test_other_commands_do_the_same_about_their_output(tool, words):
    with open("/dev/full", "w") as full:
        lost = tool(*words, stdout=full)
    assert (lost.returncode, lost.stderr.splitlines()[-1]) == (1, "hmalloc: standard output: No space left on device")
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as left:
        unread = tool(*words, stdout=left)
    assert unread.returncode == 141
    assert not {word for result in (lost, unread) for word in ("Traceback", "Exception") if word in result.stderr}
    assert "hmalloc: " not in unread.stderr


def test_a_closed_standard_output_is_no_traceback(mapped):
    result = subprocess.run(["sh", "-c", '"$0" profile --from "$1" >&-', LAUNCHER, mapped.profile], stderr=subprocess.PIPE, text=True,
                            env=environment(), timeout=300)
    assert "Traceback" not in result.stderr and "Exception" not in result.stderr


@pytest.mark.parametrize("code, message, arguments", [
    (2, "profile: which program? (hmalloc profile --help)", []),
    (2, "--rate 0: not a size (512K, 64K, 1M)", ["--rate", "0", "ls"]),
    (127, "no-such-program: program not found", ["--", "no-such-program"]),
    (126, "/etc: is a directory", ["--", "/etc"]),
    (126, "/etc/passwd: not executable", ["--", "/etc/passwd"]),
])
def test_the_launcher_says_it_or_passes_it_on(hmalloc, code, message, arguments):
    failed = hmalloc("profile", *arguments)
    assert (failed.returncode, failed.stdout, failed.stderr) == (code, "", f"hmalloc: {message}\n")


@pytest.mark.parametrize("code, message, arguments", [
    (2, "profile: which program? (hmalloc profile --help)", ["--"]),
    (2, "profile: which program? (hmalloc profile --help)", ["--top", "3"]),
    (2, "profile: No such option: --nonsense (hmalloc profile --help)", ["--nonsense", "ls"]),
    (2, "--rate fast: not a size (512K, 64K, 1M)", ["--rate=fast", "ls"]),
    (2, "--rate 99999999999G: not a size (512K, 64K, 1M)", ["--rate=99999999999G", "ls"]),
    (2, "--skip (: not a regular expression: missing ), unterminated subpattern at position 0", ["--skip", "(", "ls"]),
    (2, "profile: --from reads what is there: no program, --rate or --pprof (hmalloc profile --help)",
     ["--from", "/dev/null", "--", "ls"]),
    (2, "/no/such: cannot be read: No such file or directory", ["--from", "/no/such"]),
    (2, "/etc: cannot be read: Is a directory", ["--from", "/etc"]),
    (2, "/no/such.json: No such file or directory", ["--json", "/no/such.json", "ls"]),
    (2, "/no/such.pb: No such file or directory", ["--pprof", "/no/such.pb", "ls"]),
    (127, "no-such-program: program not found", ["--top", "3", "no-such-program"]),
])
def test_one_line_says_what_is_wrong(tool, code, message, arguments):
    failed = tool("profile", *arguments)
    assert failed.stderr == f"hmalloc: {message}\n"
    assert (failed.returncode, failed.stdout) == (code, "")


def test_the_help_and_the_options_agree(hmalloc):
    import typer.main
    from hmalloc_lab.cli import app

    command = typer.main.get_command(app).commands["profile"]
    taken = {name for parameter in command.params for name in parameter.opts if name.startswith("--")}
    assert taken - {"--help"} == set(re.findall(r"(?<!\w)--[a-z][a-z-]*", hmalloc("profile", "--help").stdout))
