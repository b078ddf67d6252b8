"""PHOLD on the engines of others (bench/engines): what is done without them."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest
from conftest import ROOT
from hmalloc_lab.bench import simulations, store, trial
from hmalloc_lab.bench.engine import commands
from hmalloc_lab.bench.engine.cells import PARTS, USUAL, chosen

ENGINES = ROOT / "bench" / "engines"


def test_they_take_part_only_if_asked_for():
    assert commands._parts("", PARTS, USUAL) == [part for part in PARTS if part != "engines"]
    assert commands._parts("engines,bare", PARTS, USUAL) == ["bare", "engines"]
    workloads = {cell.workload for cell in chosen(USUAL)}
    assert not workloads & set(simulations.ENGINES)
    assert {cell.workload for cell in chosen(("engines",))} == {"bare", "phold", *simulations.ENGINES}


def test_whoever_cannot_be_built_is_named_and_left_out(tmp_path):
    project = tmp_path / "bench" / "engines"
    project.mkdir(parents=True)
    for name in ("build", "requirements.lock"):
        (project / name).write_bytes((ENGINES / name).read_bytes())
    (project / "requirements.lock").write_text("no-such-package==1 --hash=sha256:" + 64 * "0" + "\n")
    run = subprocess.run([sys.executable, project / "build"], env={"PATH": "/nowhere", "PIP_NO_INDEX": "1"}, capture_output=True,
                         text=True, timeout=300)
    lines = run.stderr.splitlines()
    assert run.returncode == 2 and len(lines) == len(simulations.ENGINES), run.stderr
    assert lines[0] == "hmalloc: building nexosim ... left out: cargo is missing"
    assert all(" left out: " in line for line in lines), run.stderr


@pytest.fixture
def phold(monkeypatch):
    monkeypatch.syspath_prepend(str(ENGINES))
    import phold

    yield phold
    del sys.modules["phold"]


def test_events_go_where_and_when_they_should(phold, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["phold", "--lps", "1000", "--remote", "0.25", "--mean", "3", "--lookahead", "1"])
    delay, next_lp = phold.draw(phold.options())
    delays = [delay() for _ in range(20_000)]
    assert min(delays) >= 1 and sum(delays) / len(delays) == pytest.approx(3, abs=0.1)  # 7 standard deviations
    others = sum(next_lp(7) != 7 for _ in range(20_000)) / 20_000
    assert others == pytest.approx(0.25, abs=0.02)  # 6


def test_a_result_is_what_a_campaign_reads(phold, capsys):
    executed = [0, 0]
    phold.run(lambda: executed.__setitem__(1, 42), executed)
    said = json.loads(capsys.readouterr().out)
    assert said["events"] == 42 and said["ns_per_op"] == pytest.approx(said["seconds"] * 1e9 / 42)


def test_they_need_not_say_whose_malloc_served_them():
    """Only where none was preloaded."""
    said = json.dumps({"events": 42, "ns_per_op": 1.5})
    glibc = store.AllocatorRow("glibc", "system", "", "/lib/libc.so.6", "", {})
    assert trial._verified(said, glibc, "") == {"events": 42, "ns_per_op": 1.5}
    for other, row in ((said, replace(glibc, kind="peer")), (json.dumps({"malloc_library": "/lib/other.so"}), glibc)):
        with pytest.raises(trial.Discounted, match="malloc came from"):
            trial._verified(other, row, "")
