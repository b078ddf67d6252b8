"""The commands for gdb: they say of a process that gdb has stopped, and of a core file, what hmalloc inspect says."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT
from heap_truth import LIBRARY

LOST = 70


@pytest.fixture(scope="module")
def program(truth_program):
    if shutil.which("gdb") is None:
        pytest.skip("there is no gdb")
    return truth_program


def gdb(program, *commands):
    """What it says, and what of that are errors."""
    begin = ["set pagination off", "set confirm off", "set startup-with-shell off", f"set environment LD_PRELOAD {LIBRARY}",
             f"source {ROOT / 'lab/gdb/hmalloc.py'}"]
    shown = subprocess.run(["gdb", "-q", "-nx", "-batch", *(word for each in [*begin, *commands] for word in ("-ex", each)),
                            program], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False,
                           env={name: value for name, value in os.environ.items() if not name.startswith("LD_")})
    if "Python scripting is not supported" in shown.stderr:
        pytest.skip("this gdb has no Python")
    if "ptrace: Operation not permitted" in shown.stderr:
        pytest.skip("gdb may not trace here")
    return shown.stdout, shown.stderr


def test_a_process_that_gdb_has_stopped(program, tmp_path):
    shown, _ = gdb(program, "break obey", f"run {tmp_path / 'truth'}", "hmalloc block ~lost[0][0] + 24", "hmalloc block &huge",
                   "hmalloc heap --top 1", "hmalloc leaks --top 1", "kill")
    assert re.search(r"0x[0-9a-f]+: 24 bytes into a block of 384 bytes, live\n", shown)
    assert re.search(r"no block of hmalloc's; in \S*heap_truth", shown)
    assert "read while it stood still" in shown
    assert f"that the program can reach: {2 * LOST} of" in shown


def test_a_core_file(program, tmp_path):
    core = tmp_path / "core"
    gdb(program, "break obey", f"run {tmp_path / 'truth'}", f"generate-core-file {core}", "kill")
    if not core.exists():
        pytest.skip("gdb has written no core file")
    shown, _ = gdb(program, f"core-file {core}", "hmalloc block ~lost[0][0]", "hmalloc leaks --top 1")
    assert "the start of a block of 384 bytes, live" in shown
    assert f"that the program can reach: {2 * LOST} of" in shown


def test_what_cannot_be_done_is_said_in_a_line(program, tmp_path):
    _, errors = gdb(program, "hmalloc heap")
    assert errors.strip().splitlines()[-1] == \
        "hmalloc: there is no process or core file of this machine (run, attach or core-file)"
    _, errors = gdb(program, "break obey", f"run {tmp_path / 'truth'}", "hmalloc heap --nonsense", "hmalloc block", "kill")
    assert "No such option: --nonsense" in errors and "hmalloc block: which address?" in errors
    assert Path(tmp_path / "truth").exists() and "Traceback" not in errors
