"""hmalloc pdes, as far as it is the launcher's: which model, in how many processes, on whose malloc."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from conftest import LAUNCHER, environment
from sharing_runs import on_a_terminal

MODELS = ["phold", "pcs", "airport", "jackson", "closed", "epidemic", "pandemic", "network", "traffic", "arq",
          "colonies"]
SMALL = ("--lps", "200", "--end", "20")
ENDLESS = ("--lps", "200", "--end", "1e9")
need_mpirun = pytest.mark.skipif(shutil.which("mpirun") is None, reason="no mpirun")


@pytest.fixture(scope="module")
def pdes(hmalloc):
    """Says nothing of building: that is done before the first test."""
    assert hmalloc("pdes", "phold", "--quiet", *SMALL).returncode == 0
    return lambda *words: hmalloc("pdes", *words)


def said(run: subprocess.CompletedProcess) -> dict:
    assert run.returncode == 0 and run.stderr == "", run.stderr
    (line,) = run.stdout.splitlines()
    return json.loads(line)


def only_line(run: subprocess.CompletedProcess) -> str:
    assert run.returncode == 2 and run.stdout == ""
    (line,) = run.stderr.splitlines()
    return line


def test_help_names_what_list_lists(hmalloc):
    listed = hmalloc("pdes", "list").stdout.splitlines()
    assert [line.split()[0] for line in listed] == MODELS
    shown = hmalloc("pdes", "--help")
    assert shown.returncode == 0 and shown.stdout == hmalloc("pdes").stdout == hmalloc("help", "pdes").stdout
    assert all(line in shown.stdout for line in listed)


@pytest.mark.parametrize("model", MODELS)
def test_every_model_has_the_options_that_the_help_promises(hmalloc, pdes, model):
    promised = hmalloc("pdes", "--help").stdout.split("All models have")[1].split("\n\n")[1]
    options = set(re.findall(r"^  (--[a-z-]+)", promised, re.MULTILINE))
    shown = pdes(model, "--help")
    assert shown.returncode == 0 and f"hmalloc-pdes-{model} [OPTIONS]" in shown.stdout
    assert options and options <= set(re.findall(r"^  (--[a-z-]+)", shown.stdout, re.MULTILINE))


@pytest.mark.parametrize("words, about", [
    (["nothing"], "no model nothing"), ([".*"], "no model .*"), (["-x"], "no model -x"), (["phold "], "no model phold "),
    (["phold", "--ranks"], "--ranks needs a value"), (["phold", "--ranks", "two"], "'two' is not a number of processes"),
    (["phold", "--ranks=0"], "'0' is not"), (["phold", "--ranks="], "'' is not"), (["phold", "--ranks", "-1"], "'-1' is not"),
    (["phold", "--ranks", "4097"], "at most 4096"), (["phold", "--ranks=99999999999999999999"], "at most 4096"),
    (["phold", "--preload"], "--preload needs a value"), (["phold", "--preload", "nobody"], "no allocator nobody"),
    (["phold", "--preload=/no/such.so"], "/no/such.so: no such library"),
])
def test_wrong_usage_is_one_line(pdes, words, about):
    assert about in only_line(pdes(*words))


def test_the_model_s_own_words_reach_it(pdes):
    result = said(pdes("pcs", "--json", "--width", "8", "--height=8", "--end", "5", "--seed", "3"))
    assert (result["model"], result["seed"], result["model_parameters"]["height"]) == ("pcs", 3, 8)
    assert "--nonsense" in only_line(pdes("phold", "--nonsense"))


def test_a_preloaded_allocator_is_the_one_of_events(pdes):
    for words, library in ((["--preload", "hmalloc"], "/libhmalloc.so"), (["--preload=system"], "libc.so")):
        result = said(pdes("phold", "--json", *SMALL, *words))
        assert library in result["malloc_library"] and result["allocator"] == "malloc"
    assert said(pdes("phold", "--json", *SMALL))["allocator"] == "hmalloc"


# ---- Watched. -----------------------------------------------------------------------------------------------------


def test_a_page_says_what_the_run_came_to(pdes, tmp_path):
    page = tmp_path / "run.html"
    done = pdes("phold", "--threads", "2", "--oversubscribe", *SMALL, "--html", page, "--interval", "0.001")
    assert done.returncode == 0 and "phold: " in done.stdout and done.stderr == f"Page: {page}\n"
    text = page.read_text()
    assert "Who waits for whom" in text and re.search(r"0x[0-9a-f]{16}", done.stdout)[0] in text
    failed = pdes("phold", "--max-memory", "1K", "--html", page)
    assert failed.returncode == 1 and "memory limit reached" in page.read_text()


@pytest.mark.parametrize("words, about", [
    (["--html"], "--html needs a value"), (["--html="], "--html needs a value"), (["--html", ""], "--html needs a value"),
    (["--live"], "--live is for a terminal"),
    (["--html", "/no/such/folder/a.html", "--series", "s.csv"], "--series and --html exclude each other"),
    (["--html", "a.html", "--summary=s"], "--summary and --html exclude each other"),
    (["--html", "/proc/a.html"], "/proc/a.html: "), (["--html", "a.html", "--preload=/no/such.so"], "/no/such.so: no such")])
def test_watching_in_a_wrong_way_is_one_line(pdes, words, about):
    assert about in only_line(pdes("phold", *SMALL, *words))


def test_a_wrong_option_of_the_model_is_its_own_line(pdes, tmp_path):
    assert "--queue" in only_line(pdes("phold", "--queue", "x", "--html", tmp_path / "a.html"))
    assert not (tmp_path / "a.html").exists()


def test_live_shows_the_run_and_then_what_it_says(pdes):
    shown, code = on_a_terminal([LAUNCHER, "pdes", "phold", "--live", "--threads", "2", "--oversubscribe", "--interval", "0.05",
                                 "--lps", "500", "--end", "3000"], b"", TERM="xterm")
    assert code == 0 and "digest" in shown
    picture, _, end = shown.partition("phold: ")
    assert "events/s" in picture and "thread 1" in picture and "to go" in picture and "waits" in picture
    assert "thread 0" in end and re.search(r"virtual time +3000 of 3000", end)


def test_live_ends_with_ctrl_c_as_the_model_does(pdes):
    shown, code = on_a_terminal([LAUNCHER, "pdes", "phold", "--live", *ENDLESS, "--interval", "0.05"], b"\x03",
                                TERM="xterm", when=b"events/s")
    assert code == 130 and "stopped early" in shown


def test_a_page_has_many_points_unless_fewer_are_asked_for(pdes, tmp_path):
    """Twenty million events take at least a quarter of a second."""
    def points(*words: str) -> int:
        return pdes("phold", "--quiet", "--end", "2500", "--progress", "json", "--html", tmp_path / "a.html",
                    *words).stderr.count("wall_s")

    assert points() >= 5 and points("--interval", "1h") <= 2


@need_mpirun
def test_ranks_are_watched_too(pdes, tmp_path):
    page = tmp_path / "run.html"
    done = pdes("phold", "--ranks", "2", *SMALL, "--preload", "hmalloc", "--json", "--html", page)
    assert done.returncode == 0 and done.stderr == f"Page: {page}\n" and "2 ranks of 1 thread" in page.read_text()
    assert json.loads(done.stdout)["malloc_library"].endswith("/libhmalloc.so")
    shown, code = on_a_terminal([LAUNCHER, "pdes", "phold", "--ranks", "2", "--live", "--interval", "0.05", "--lps", "500",
                                 "--end", "3000"], b"", TERM="xterm")
    assert code == 0 and "events/s" in shown and "2 ranks of 1 thread" in shown


def test_signals_reach_a_run_that_is_watched(pdes, tmp_path):
    file, page = tmp_path / "c", tmp_path / "a.html"
    run = subprocess.Popen([LAUNCHER, "pdes", "phold", *ENDLESS, "--checkpoint", file, "--html", page], env=environment(),
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           start_new_session=True)

    def listens() -> bool:
        """It has a mask of Python's, which passes them on, and the model a handler."""
        children = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
        return bool(children) and has_in(run.pid, "SigBlk") and all(has_in(child, "SigCgt") for child in children)

    def asked() -> bool:
        run.send_signal(signal.SIGUSR1)
        return file.exists()

    try:
        wait_for(listens)
        wait_for(asked)
        run.send_signal(signal.SIGTERM)
        output, errors = run.communicate(timeout=300)
    finally:  # the model, too, if it was not told
        with contextlib.suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
    assert run.returncode == 143 and "stopped early" in output and "phold: saved at time" in errors
    assert "stopped early" in page.read_text()


# ---- Models in Python. --------------------------------------------------------------------------------------------

PYTHON = Path(__file__).resolve().parents[1] / "pdes/python/models.py"
need_numba = pytest.mark.skipif(
    subprocess.run(["/usr/bin/python3", "-c", "import numba, pandas, tqdm"], capture_output=True, check=False).returncode != 0,
    reason="no numba")


@need_numba
def test_a_model_in_python_is_a_model(pdes, tmp_path):
    page, words = tmp_path / "run.html", ("--model", "phold", *SMALL)
    alone = said(pdes("phold", "--json", *SMALL))
    result = said(pdes(PYTHON, "--json", "--preload", "hmalloc", *words))
    assert (result["digest"], result["allocator"]) == (alone["digest"], "malloc")
    done = pdes(PYTHON, "--html", page, *words)
    assert done.returncode == 0 and done.stderr == f"Page: {page}\n" and alone["digest"] in page.read_text()
    assert "<title>phold" in page.read_text()
    shown, code = on_a_terminal([LAUNCHER, "pdes", str(PYTHON), "--live", "--model", "phold", "--interval", "0.05", "--lps", "500",
                                 "--end", "3000"], b"", TERM="xterm")
    assert code == 0 and "events/s" in shown and "digest" in shown


@need_numba
@need_mpirun
def test_a_model_in_python_runs_on_ranks(pdes, tmp_path):
    page = tmp_path / "run.html"
    done = pdes(PYTHON, "--ranks", "2", "--html", page, "--model", "phold", *SMALL)
    assert done.returncode == 0 and done.stdout.count("digest") == 1 and "2 ranks of 1 thread" in page.read_text()
    assert "invalid choice" in only_line(pdes(PYTHON, "--model", "phold", "--ranks", "2", "--queue", "x"))


def test_a_file_that_is_not_there_is_one_line(pdes):
    assert "/no/such.py: no such file" in only_line(pdes("/no/such.py"))


# ---- Several processes. -------------------------------------------------------------------------------------------


@need_mpirun
def test_ranks_share_one_simulation_and_have_one_voice(pdes):
    alone = said(pdes("phold", "--json", *SMALL))
    together = said(pdes("phold", "--ranks", "3", "--json", *SMALL))
    assert together["ranks"] == 3 and together["digest"] == alone["digest"] and together["events"] == alone["events"]
    assert pdes("phold", "--ranks", "2", *SMALL).stdout.count("digest") == 1
    assert pdes("phold", "--ranks=2", "--help").stdout.count("Usage") == 1
    assert said(pdes("phold", "--json", "--ranks", "1", *SMALL))["ranks"] == 1


@need_mpirun
def test_an_allocator_is_preloaded_into_the_ranks(pdes):
    result = said(pdes("phold", "--ranks", "2", "--preload", "hmalloc", "--json", *SMALL))
    assert result["malloc_library"].endswith("/libhmalloc.so") and result["allocator"] == "malloc"


@need_mpirun
def test_a_mistake_is_one_line_however_many_ranks(pdes):
    assert "'x' is not one of wheel|heap" in only_line(pdes("phold", "--ranks", "2", "--queue", "x"))
    assert "cannot be written" in only_line(pdes("phold", "--ranks", "2", "--series", "/no/such/folder/s.csv"))


@need_mpirun
def test_a_failed_run_fails_everywhere(pdes):
    failed = pdes("phold", "--ranks", "2", "--max-memory", "1K")
    assert failed.returncode == 1 and failed.stdout.count("the run failed") == 1
    assert all(line.startswith("phold: memory limit reached") for line in failed.stderr.splitlines())


def has_in(process: int | str, mask: str) -> bool:
    """Whether SIGUSR1 is in this mask of the process; not if it has ended."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False
    return bool(int(re.search(rf"^{mask}:\s*(\w+)", status, re.MULTILINE)[1], 16) >> (signal.SIGUSR1 - 1) & 1)


def wait_for(condition) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def running(series: Path, *words: str) -> subprocess.Popen:
    """A simulation without end, under way."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "HMALLOC_"))}
    run = subprocess.Popen([LAUNCHER, "pdes", "phold", *ENDLESS, *words, "--series", series], env=own,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           start_new_session=True)
    wait_for(lambda: series.exists() and series.read_text().count("\n") > 3)
    return run


def ranks_of(session: int) -> list[int]:
    """Processes of the model in a session, by what the kernel says; mpirun gives each a process group of its own."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, name, rest = re.match(r"(\d+) \((.*)\) (.*)", stat.read_text(), re.DOTALL).groups()
        except OSError:
            continue
        if name.startswith("hmalloc-pdes") and int(rest.split()[3]) == session:
            found.append(int(pid))
    return found


@pytest.mark.parametrize("words", [[], pytest.param(["--ranks", "2"], marks=need_mpirun)])
def test_ctrl_c_gives_a_partial_report(pdes, tmp_path, words):
    run = running(tmp_path / "s.csv", *words)
    os.killpg(run.pid, signal.SIGINT)  # as a terminal does
    output, _ = run.communicate(timeout=300)
    assert run.returncode == 130 and "stopped early" in output and "digest" in output


@pytest.mark.parametrize("words", [[], pytest.param(["--ranks", "2"], marks=need_mpirun)])
def test_a_run_saves_itself_on_usr1_and_on_term_and_then_ends(pdes, tmp_path, words):
    file = tmp_path / "c"
    run = running(tmp_path / "s.csv", "--checkpoint", file, *words)
    run.send_signal(signal.SIGUSR1)
    wait_for(file.exists)
    assert run.poll() is None
    run.send_signal(signal.SIGTERM)
    output, errors = run.communicate(timeout=60)
    assert run.returncode == 143 and "stopped early" in output and "digest" in output
    saved, stopped = errors.splitlines()
    assert "phold: saved at time" in saved and "phold: stopped and saved" in stopped
    wait_for(lambda: ranks_of(run.pid) == [])


@need_mpirun
@pytest.mark.parametrize("status", [1, 3, 126, 127])
def test_the_status_of_the_ranks_is_that_of_the_run(pdes, tmp_path, status):
    """127 is also what `wait` says of a process that has been waited for."""
    mpirun = tmp_path / "mpirun"
    mpirun.write_text(f"#!/bin/sh\nexit {status}\n")
    mpirun.chmod(0o755)
    own = environment() | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    assert subprocess.run([LAUNCHER, "pdes", "phold", "--ranks", "2"], env=own, check=False).returncode == status


@need_mpirun
def test_a_rank_that_is_killed_ends_the_run_with_a_line(pdes, tmp_path):
    run = running(tmp_path / "s.csv", "--ranks", "2")
    os.kill(max(ranks_of(run.pid)), signal.SIGKILL)
    _, errors = run.communicate(timeout=300)
    assert run.returncode == 128 + signal.SIGKILL
    assert "hmalloc: pdes: a rank was ended by signal 9, and the run with it" in errors.splitlines()
    wait_for(lambda: ranks_of(run.pid) == [])
