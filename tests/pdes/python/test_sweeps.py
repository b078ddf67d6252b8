"""Options that follow from parameters; sweeps, their files and plots."""

import os
import re

import hmalloc_pdes as pdes
import numpy as np
import pandas
import pytest
from conftest import faulty
from models import Node, airport, phold

GRID = {"remote": [0.1, 0.5], "seed": [1, 2, 3]}
TINY = {"lps": 50, "end": 5}


def test_options_follow_from_parameters():
    @pdes.model(end=20, lookahead=lambda mean: mean / 4)
    def hops(simulation, lps=20, mean=1.0):
        simulation.add(Node, lps, events=1, remote=0.5, mean=mean)

    assert [hops.run(**given).options["lookahead"] for given in ({}, {"mean": 2.0}, {"lookahead": 0.1})] == [0.25, 0.5, 0.1]
    assert hops.run(mean=2.0).digest == hops.run(mean=2.0, lookahead=0.5).digest != hops.run(mean=2.0, lookahead=0.25).digest
    frame = pdes.sweep(hops, {"mean": [1.0, 2.0]}, progress=False)
    assert [*frame["lookahead"]] == [0.25, 0.5]
    with pytest.raises(pdes.Error, match="^model hops: lookahead follows from reach, which is no parameter$"):
        pdes.model(end=1, lookahead=lambda reach: reach)(hops.__wrapped__)


def test_a_sweep_is_its_runs():
    frame = pdes.sweep(phold, GRID, processes=2, progress=False, **TINY)
    assert len(frame) == 6 and [*frame["remote"]] == [0.1] * 3 + [0.5] * 3
    for _, row in frame.iterrows():
        assert row["digest"] == f"{phold.run(remote=row['remote'], seed=row['seed'], **TINY).digest:#018x}"


@pytest.mark.filterwarnings("error:.*(float_precision|fill value)")  # which pandas will no longer take
def test_a_sweep_goes_on_where_it_was_left(tmp_path, monkeypatch):
    file = tmp_path / "sweep.csv"
    pdes.sweep(phold, GRID | {"seed": [1, 3]}, file=file, progress=False, **TINY)
    kept = file.read_text().splitlines()
    whole = pdes.sweep(phold, GRID, file=file, processes=2, progress=False, **TINY)
    assert len(whole) == 6 and set(kept) < set(file.read_text().splitlines())  # times and all: they were not run again
    monkeypatch.setattr(type(phold), "run", None)
    again = pdes.sweep(phold, GRID, file=file, progress=False, **TINY)
    assert (again["digest"] == whole["digest"]).all()


def test_the_file_of_a_sweep_has_what_is_done_and_is_whole_at_any_time(tmp_path, monkeypatch):
    file, replaced, replace = tmp_path / "sweep.csv", [], os.replace

    def see(new, old):
        replaced.append((len(pandas.read_csv(new)), len(pandas.read_csv(old)) if old.exists() else 0))
        replace(new, old)

    monkeypatch.setattr(os, "replace", see)
    pdes.sweep(phold, GRID, file=file, progress=False, **TINY)
    assert replaced == [(done, done - 1) for done in range(1, 7)]


def test_a_run_of_a_sweep_that_fails_is_tried_again(tmp_path):
    file = tmp_path / "sweep.csv"
    frame = pdes.sweep(faulty, {"fault": [0, 8]}, file=file, progress=False)
    assert [*frame["error"]] == ["", "LP 0 (Faulty), at time 1 on Tick from LP 0, failed: ValueError: bad luck"]
    assert {*pandas.read_csv(file)["fault"]} == {0, 8}
    file.write_text(file.read_text().replace("bad luck", "of another day"))
    tried = pdes.sweep(faulty, {"fault": [8]}, file=file, progress=False)
    assert [*tried["error"]] == [*frame["error"][1:]]


@pdes.model(end=5, lookahead=0.5)
def roads(simulation, map=None, weights=(1, 2), lps=20):
    simulation.add(Node, lps, events=1, remote=0.5, mean=1.0)


@pytest.mark.parametrize("grid", [
    {"map": [None]}, {"map": [None, 3]}, {"map": [float("nan"), 1.5]}, {"map": ["", "nan", "NA", "None"]}, {"map": ["1", "01"]},
    {"weights": [(1, 2), (3,)]}, {"weights": [[1, 2], [3]]}, {"map": [True, False]}, {"seed": [2**64 - 1, 2**63]}])
def test_a_sweep_knows_its_runs_again_whatever_was_varied(tmp_path, monkeypatch, grid):
    file = tmp_path / "sweep.csv"
    whole = pdes.sweep(roads, grid, file=file, progress=False)
    assert len(whole) == len([*grid.values()][0])
    kept = file.read_text()
    monkeypatch.setattr(type(roads), "run", None)
    again = pdes.sweep(roads, grid, file=file, progress=False)
    assert [*again["digest"]] == [*whole["digest"]] and [*again["wall_s"]] == [*whole["wall_s"]] and file.read_text() == kept


def test_lists_and_arrays_may_be_the_same_for_all(tmp_path):
    assert len(pdes.sweep(roads, {"seed": [1, 2]}, weights=[1, 2], file=tmp_path / "sweep.csv", progress=False)) == 2
    assert len(pdes.sweep(roads, {"seed": [1, 2]}, weights=np.arange(3), progress=False)) == 2
    assert len(pdes.sweep(roads, {}, progress=False)) == 1


def test_that_the_first_run_cannot_be_is_in_its_row(tmp_path):
    for _ in range(2):
        frame = pdes.sweep(roads, {"lps": [-1, 20]}, file=tmp_path / "sweep.csv", progress=False)
        assert [*frame["error"]] == ["-1 LPs of Node", ""]


@pytest.mark.parametrize("call, said", [
    (lambda file: pdes.sweep(phold, {"far": [1]}, file=file), "model phold has no parameter 'far'"),
    (lambda file: pdes.sweep(phold, {"seed": []}, file=file), "there is nothing to run"),
    (lambda file: pdes.sweep(airport, {"width": [4]}, file=file), "is of another sweep: it has no column 'width'")])
def test_sweeps_that_cannot_be(tmp_path, call, said):
    file = tmp_path / "sweep.csv"
    file.write_text("remote,digest,error\n0.1,0x1,\n")
    with pytest.raises(pdes.Error, match=re.escape(said)):
        call(file)


def test_plot(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    frame = pdes.sweep(phold, GRID, progress=False, **TINY)
    axes = pdes.plot(frame, "remote", "events")
    [line] = axes.get_lines()
    assert [*line.get_ydata()] == [*frame.groupby("remote")["events"].mean()] and axes.collections
    assert len(pdes.plot(frame, "seed", "events", by="remote").get_lines()) == 2
