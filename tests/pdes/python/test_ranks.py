"""Models in Python as several ranks: the same as in one process."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
LIBRARY = Path(os.environ["HM_PDES_LIBRARY"])
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
MPIRUN = ["mpirun", "--bind-to", "none", "--mca", "pml", "ob1", "--mca", "btl", "self,vader", "-n"]
COLONIES = {"colonies": 30, "room": 20, "end": 100}

if shutil.which("mpirun") is None or not LIBRARY.with_name("libhmalloc-pdes-mpi.so").exists():
    pytest.skip("there is no MPI", allow_module_level=True)


def said(folder, ranks, name, **options):
    """What the first rank got; with one, of a process by itself."""
    file, library = folder / f"said{ranks}", options.pop("library", LIBRARY)
    start = [*MPIRUN, str(ranks)] if ranks > 1 else []
    for _ in range(3):  # once mpirun ended with 1 and not a word; of a rank that fails it always says so
        done = subprocess.run([*start, sys.executable, HERE / "ranks.py", name, json.dumps(options), file], text=True,
                              stdin=subprocess.DEVNULL, capture_output=True,
                              env=os.environ | AS_ROOT | {"HM_PDES_LIBRARY": library})
        if done.returncode == 0 or done.stderr:
            break
    assert done.returncode == 0 and file.exists(), done.stderr
    return json.loads(file.read_text())


@pytest.mark.parametrize("name, options", [("phold", {"end": 20, "lps": 300}), ("colonies", COLONIES)])
def test_ranks_change_nothing(tmp_path, name, options):
    alone = said(tmp_path, 1, name, **options)
    assert said(tmp_path, 3, name, **options) == alone and "result" in alone
    if name == "colonies":
        assert len(alone["result"]["states"]["Cell"][0]) > 10 and len(alone["result"]["states"]["Colony"][0]) == 30


def test_a_checkpoint_of_ranks_goes_on_in_one_process(tmp_path):
    save = str(tmp_path / "save")
    whole = said(tmp_path, 2, "colonies", **COLONIES, threads=2, checkpoint=save, checkpoint_every=1e-6)
    assert said(tmp_path, 1, "colonies", **COLONIES, resume=save) == whole


def test_what_cannot_be_is_one_error(tmp_path):
    assert "one process" in said(tmp_path, 2, "colonies", **COLONIES, plain=True)["error"]
    assert "lookahead" in said(tmp_path, 2, "phold", lookahead=0)["error"]


@pytest.mark.parametrize("other", [{"seed": "rank"}, {"lps": "rank"}, {"end": "rank"}, {"interval": "rank"}, {"remote": "rank"}])
def test_ranks_that_make_different_simulations_say_so(tmp_path, other):
    assert said(tmp_path, 2, "phold", **{"lps": 60, "end": 5} | other)["error"] == "the ranks have not all made the same simulation"


def test_ranks_that_could_not_start_once_do_not_try_again(tmp_path, monkeypatch):
    monkeypatch.setenv("PDES_RANK_TIMEOUT", "soon")
    assert said(tmp_path, 2, "phold", end=1, times=2)["error"] == "PDES_RANK_TIMEOUT is 'soon', not a number of seconds"


def test_without_the_library_that_knows_mpi_it_is_said(tmp_path):
    alone = shutil.copy(LIBRARY, tmp_path)
    assert "libhmalloc-pdes-mpi.so" in said(tmp_path, 2, "phold", library=alone)["error"]
    assert "result" in said(tmp_path, 1, "phold", end=1, library=alone)
    broken = tmp_path / "libhmalloc-pdes-mpi.so"
    broken.write_text("no library")
    assert f"{broken}: " in said(tmp_path, 2, "phold", library=alone)["error"]


def test_the_only_task_of_a_job_is_no_rank(tmp_path, monkeypatch):
    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.setenv("PMI_SIZE", "1")
    assert "result" in said(tmp_path, 1, "phold", end=1, lps=10, plain=True)


FORKING = """
import os, sys
from models import phold
if sys.argv[1] == "after":
    phold.run(end=5, lps=100)
if os.fork() == 0:
    try:
        phold.run(end=5, lps=100)
    except Exception as error:
        print(error)
    sys.exit()
assert os.wait()[1] == 0
if (result := phold.run(end=5, lps=100)) is not None:
    print(result.events)
"""


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_fork_of_a_rank_leaves_the_ranks_alone(moment):
    done = subprocess.run([*MPIRUN, "2", sys.executable, "-c", FORKING, moment], text=True, stdin=subprocess.DEVNULL,
                          capture_output=True, env=os.environ | AS_ROOT, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("forked by one of several ranks") == 2 and len(done.stdout.split("\n")) == 4


AT_ONCE = """
import threading
import hmalloc_pdes as pdes
from models import phold

said = []

def run():
    try:
        result = phold.run(end=200, lps=100, progress=again, interval=1e-3)
        if result is not None:
            said.append(f"{result.digest == alone.digest}")
    except pdes.Error as error:
        said.append(str(error))

def again(*_):
    if len(said) < 1:
        run()

alone = phold.run(end=200, lps=100)
run()
print("\\n".join(said))
"""


def test_a_rank_has_one_run_at_a_time():
    done = subprocess.run([*MPIRUN, "2", sys.executable, "-c", AT_ONCE], text=True, stdin=subprocess.DEVNULL,
                          capture_output=True, env=os.environ | AS_ROOT, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("a run on several ranks goes on in this process already") == 2 and done.stdout.count("True") == 1
