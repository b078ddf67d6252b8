"""`python3 -m hmalloc_pdes FILE.py`: a model in Python as a program, with the words and the output of those in C++."""

import contextlib
import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PHOLD = [HERE / "models.py", "--model", "phold"]
CXX = Path(os.environ["HM_PDES_PROGRAMS"]) / "hmalloc-pdes-phold"
SMALL = ["--lps", "60", "--end", "20"]
MPIRUN = ["mpirun", "--bind-to", "none", "--mca", "pml", "ob1", "--mca", "btl", "self,vader", "-n"]
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}

MODELS = '''
import hmalloc_pdes as pdes
from models import Node

@pdes.model(end=5, lookahead=0.5)
def kinds(simulation, whole=2, real=0.5, yes=True, word="a", several=(1, 2), none=None):
    """Says what it was given."""
    if word == "wrong":
        raise pdes.Error("the word is wrong")
    print(repr((whole, real, yes, word, several, none)), flush=True)
    simulation.add(Node, whole, events=1, remote=0.5, mean=1.0)
'''


def started(*words, by=()):
    environment = os.environ | AS_ROOT | {"PYTHONPATH": f"{HERE}:{os.environ['PYTHONPATH']}"}
    return subprocess.Popen([*by, sys.executable, "-B", "-m", "hmalloc_pdes", *words], env=environment, text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # what runs behind ignores it


def run(*words, by=()):
    with started(*words, by=by) as program:
        output, errors = program.communicate(timeout=300)
    return program.returncode, output, errors


def said(*words, by=()):
    code, output, errors = run(*PHOLD, "--json", *words, by=by)
    assert code == 0 and errors == ""
    return json.loads(output)


@pytest.fixture
def kinds(tmp_path):
    file = tmp_path / "town.py"
    file.write_text(MODELS)
    return file


# ---- The same as in C++.

def options_of(text):
    """The lines of each option; its default is the model's."""
    wrapped = re.sub(r"^(  --\S+ \S+)\n +", r"\1 ", text, flags=re.MULTILINE)
    lines = (line.split(maxsplit=1) for line in wrapped.splitlines() if line.startswith("  --"))
    return {name: " ".join(rest.split()) for name, rest in lines}


def test_the_options_are_those_of_cxx():
    ours = options_of(run(*PHOLD, "--help")[1])
    theirs = options_of(subprocess.run([CXX, "--help"], capture_output=True, text=True, check=True).stdout)
    common = {"lps", "events-per-lp", "remote", "mean"}
    extra = {f"--{name}" for name in ("model", "plain", *common)}
    assert set(theirs) - set(ours) == {"--payload", "--imbalance", "--hot", "--hot-turn", "--state", "--distribution", "--oversubscribe"}
    assert set(ours) - set(theirs) == {"--model", "--plain"}
    theirs["--threads"] = theirs["--threads"].replace("; without ranks no more than there are CPUs", "")
    assert {name: text for name, text in ours.items() if name not in extra} == {
        name: theirs[name] for name in ours if name not in extra}


def test_a_default_with_a_per_cent_sign_is_in_the_help(kinds):
    kinds.write_text(MODELS.replace('word="a"', 'word="50 %"').replace("none=None", 'none=("%d",)'))
    code, output, errors = run(kinds, "--help")
    assert (code, errors) == (0, "") and "('50 %')" in output and "(('%d',))" in output


@pytest.mark.parametrize("number", ["-1e-3", "-.5e2", "-2.5", "-7"])
def test_a_number_below_0_is_a_value(kinds, number):
    code, output, errors = run(kinds, "--real", number, "--none", number)
    assert (code, errors) == (0, "") and output.startswith(f"(2, {float(number)}, True, 'a', (1, 2), {eval(number)})")


def test_a_run_says_what_the_same_in_cxx_says(tmp_path):
    words = [*SMALL, "--seed", "7", "--queue=heap", "--critical-path"]
    ours = said(*words)
    theirs = json.loads(subprocess.run([CXX, "--json", *words], capture_output=True, text=True, check=True).stdout)
    measured = {"seconds", "events_per_s", "peak_bytes", "peak_pending", "thread_activity", "waited_on"}
    different = {"model_parameters", "critical_path", "events_by_type", "statistics"}
    for name in ours.keys() - measured - different:
        assert ours[name] == theirs[name], name
    assert measured <= ours.keys() and ours["events_by_type"] == theirs["events_by_type"]
    assert ours["critical_path"]["events"] == theirs["critical_path"]["events"]
    assert {name.replace("_", "-"): value for name, value in ours["model_parameters"].items()}.items() \
        <= theirs["model_parameters"].items()


@pytest.mark.parametrize("name", ["s.csv", "s.jsonl"])
def test_a_series_is_that_of_cxx(tmp_path, name):
    words = ["--lps", "500", "--end", "2000", "--threads", "2", "--gather", "off", "--interval", "1ms"]
    summary = tmp_path / "summary.json"
    code, output, errors = run(*PHOLD, *words, "--series", tmp_path / name, "--summary", summary)
    assert code == 0 and errors == "" and output.startswith("phold: ")
    subprocess.run([CXX, "--quiet", "--oversubscribe", *words, "--series", tmp_path / f"cxx-{name}"], check=True)
    lines, theirs = (file.read_text().splitlines() for file in (tmp_path / name, tmp_path / f"cxx-{name}"))
    if name == "s.csv":
        assert lines[0] == theirs[0]
        points = [*csv.DictReader(lines)]
    else:
        points = [json.loads(line) for line in lines]
        assert [*points[0]] == [*json.loads(theirs[0])]
    found = json.loads(summary.read_text())
    assert len(points) > 5 and float(points[-1]["now"]) == 2000 and int(points[-1]["events"]) == found["events"]
    for before, after in zip(points, points[1:]):
        took, executed = (float(after[name]) - float(before[name]) for name in ("wall_s", "events"))
        assert took >= 0 and float(after["events_per_s"]) * took == pytest.approx(executed)
    shares = [float(point["blocked_1"]) for point in points] if name == "s.csv" else [point["blocked"][1] for point in points]
    assert all(0 <= share <= 1 for share in shares) and any(shares)
    assert sum(thread["events"] for thread in found["thread_activity"]) == found["events"]
    assert len(found["waited_on"]) == 2 and found["waited_on"][0][0] == 0 < found["waited_on"][0][1]


def test_what_json_has_no_number_for_is_null():
    code, output, _ = run(HERE / "models.py", "--model", "airport", "--end", "0", "--json")
    waiting = json.loads(output, parse_constant=pytest.fail)["statistics"]["waiting"]
    assert code == 0 and waiting["count"] == 0 and waiting["least"] is waiting["most"] is None


def test_progress_is_lines_of_json_on_standard_error():
    code, output, errors = run(*PHOLD, *SMALL, "--progress", "json", "--quiet")
    assert code == 0 and output == "" and json.loads(errors.splitlines()[-1])["percent"] == 100
    assert "events/s" in run(*PHOLD, *SMALL, "--progress", "on")[2]


# ---- Parameters and files.

@pytest.mark.parametrize("words, given", [
    ((), "(2, 0.5, True, 'a', (1, 2), None)"),
    (("--whole", "3", "--real=1e3", "--no-yes", "--word=-b c", "--several", "[5]", "--none", "{'a': 1}"),
     "(3, 1000.0, False, '-b c', [5], {'a': 1})")])
def test_parameters_have_the_kinds_of_their_defaults(kinds, words, given):
    code, output, _ = run(kinds, "--quiet", *words)
    assert (code, output) == (0, f"{given}\n")


def test_help_says_what_a_parameter_is(kinds):
    code, output, errors = run(kinds, "--help")
    assert code == 0 and errors == "" and "Says what it was given." in output
    assert re.search(r"--whole N +\(2\)\n", output) and re.search(r"--yes, --no-yes +\(True\)\n", output)
    assert max(map(len, output.splitlines())) <= 120


@pytest.mark.parametrize("words, code, about", [
    (["--whole", "1.5"], 2, "--whole: '1.5' is not a whole number"), (["--real=x"], 2, "--real: 'x' is not a number"),
    (["--several", "(1"], 2, "--several: '(1' is not a value of Python's"), (["--whole"], 2, "--whole: expected one argument"),
    (["--who", "1"], 2, "unrecognized arguments: --who 1"), (["--queue", "x"], 2, "invalid choice: 'x'"),
    (["--interval", "5x"], 2, "'5x' is not a time"), (["--max-memory", "1Q"], 2, "'1Q' is not a size"),
    (["--model", "no"], 2, "has no model no; it has kinds"), (["--series", "/no/s.csv"], 2, "/no/s.csv cannot be written: No such"),
    (["--threads=0"], 1, "kinds: a run needs at least one thread"), (["--word", "wrong"], 1, "kinds: the word is wrong"),
    (["--resume", "/no/such"], 1, "/no/such cannot be read"), (["--max-memory", "1KiB"], 1, "1024 are allowed"),
    (["--summary", "/dev/full"], 1, "--summary: /dev/full cannot be written: No space")])
def test_what_is_wrong_is_one_line(kinds, words, code, about):
    got, _, errors = run(kinds, *words)
    assert got == code and about in errors and errors.count("\n") == 1


@pytest.mark.parametrize("text, said", [
    (None, "x: {file}: no such file of Python\n"), ("x = 1", "x: {file} has no model: a function with @hmalloc_pdes.model\n"),
    ("from models import *", "x: {file} has no model: a function with @hmalloc_pdes.model\n"),
    (MODELS + MODELS.replace("kinds", "other"), "x: {file} has several models, of which --model chooses one: kinds, other\n"),
    (MODELS.replace("whole=2", "json=2").replace("whole", "2"),
     "x: model kinds: parameter json has the name of an option of the command line\n")])
def test_files_that_are_no_program(tmp_path, text, said):
    file = tmp_path / "x.py"
    if text is not None:
        file.write_text(text)
    assert run(file) == (2, "", said.format(file=file))


def test_a_file_with_a_mistake_shows_where(tmp_path):
    file = tmp_path / "x.py"
    file.write_text("def f():\n    return 1 / 0\nf()\n")
    code, _, errors = run(file)
    assert code == 2 and errors.startswith(f"x: {file} cannot be loaded\n") and "command_line.py" not in errors
    assert errors.endswith("ZeroDivisionError: division by zero\n") and "line 3" in errors and "line 2" in errors
    file.write_text("def f(:\n")
    assert "SyntaxError" in run(file)[2]


def test_without_a_file_it_says_what_it_wants():
    assert run()[0] == 2 and run("--help")[:1] == (0,) and "FILE.py" in run("--help")[1]


def test_output_that_cannot_be_written_is_a_failure():
    with open("/dev/full", "w") as full, \
            subprocess.Popen([sys.executable, "-m", "hmalloc_pdes", *PHOLD, *SMALL], stdout=full, stderr=subprocess.PIPE,
                             env=os.environ | {"PYTHONUNBUFFERED": ""}, text=True) as program:
        assert program.communicate(timeout=300)[1] == "phold: standard output cannot be written\n"
    assert program.returncode == 1


def test_a_series_on_a_full_disk_ends_no_run():
    code, output, errors = run(*PHOLD, *SMALL, "--series", "/dev/full")
    assert code == 1 and "reached 20" in output and errors == "phold: --series: /dev/full cannot be written: No space left on device\n"


def test_who_stops_to_listen_ends_no_run():
    with started(*PHOLD, "--lps", "500", "--end", "2000", "--interval", "1ms", "--progress", "json") as program:
        program.stderr.close()
        assert "reached 2000" in program.stdout.read()
    assert program.returncode == 0


# ---- Signals and ranks.

@contextlib.contextmanager
def under_way(series, *words):
    with started(*PHOLD, "--lps", "60", "--end", "1e12", "--series", series, *words) as program:
        try:
            wait_for(lambda: series.exists() and series.read_text().count("\n") > 3)
            yield program
        finally:
            program.kill()  # if it has not ended


def wait_for(condition):
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_is_stopped_reports_what_there_is(tmp_path, number):
    with under_way(tmp_path / "s.csv", "--summary", tmp_path / "s.json") as program:
        program.send_signal(number)
        output, errors = program.communicate(timeout=300)
    assert program.returncode == 128 + number and "stopped" in output and errors == ""
    assert json.loads((tmp_path / "s.json").read_text())["stopped"] is True


def test_a_run_is_saved_on_request_and_goes_on(tmp_path):
    save = tmp_path / "save"
    with under_way(tmp_path / "s.csv", "--checkpoint", save) as program:
        program.send_signal(signal.SIGUSR1)
        wait_for(save.exists)
        program.send_signal(signal.SIGTERM)
        _, errors = program.communicate(timeout=300)
    assert program.returncode == 143
    saved, stopped = errors.splitlines()
    assert re.match(r"phold: saved at time \S+ in ", saved)
    assert stopped == f"phold: stopped and saved: --resume {save} goes on from there"
    with under_way(tmp_path / "t.csv", "--resume", save) as program:
        program.send_signal(signal.SIGINT)
        output, _ = program.communicate(timeout=300)
    assert program.returncode == 130 and "stopped" in output
    first, last = ([*csv.DictReader((tmp_path / name).read_text().splitlines())] for name in ("s.csv", "t.csv"))
    assert float(last[0]["now"]) > float(first[0]["now"])


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="there is no MPI")
def test_ranks_have_one_voice(tmp_path):
    by = [*MPIRUN, "2"]
    series, summary = tmp_path / "s.csv", tmp_path / "s.json"
    alone = said(*SMALL)
    code, output, errors = run(*PHOLD, *SMALL, "--series", series, "--summary", summary, by=by)
    assert code == 0 and output.count("digest") == 1 and errors == ""
    found = json.loads(summary.read_text())
    assert (found["ranks"], found["digest"], found["events"]) == (2, alone["digest"], alone["events"])
    assert series.read_text().count("wall_s") == 1
    code, output, errors = run(*PHOLD, "--queue", "x", by=by)
    assert code == 2 and output == "" and errors.count("invalid choice") == 1
    code, _, errors = run(HERE / "conftest.py", "--model", "faulty", "--fault", "8", by=by)
    lines = [line for line in errors.splitlines() if line.startswith("faulty: ")]
    assert code == 1 and lines and all("bad luck" in line for line in lines)
