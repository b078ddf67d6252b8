"""LPs that METIS deals out to the threads."""

import ctypes
import os
import subprocess
from typing import NamedTuple

import hmalloc_pdes as pdes
import numpy as np
import pytest


class Car(NamedTuple):
    number: int


@pdes.lp
class Crossing:
    roads: pdes.Array(int, 4)
    seen: int = 0

    def start(self, context):
        context.send_self(context.exponential(1.0), Car(context.id))

    def arrive(self, context, event: Car):
        self.seen += 1
        context.send(self.roads[context.integer(4)], 0.5 + context.exponential(1.0), event)


@pdes.model(end=200, lookahead=0.5, balance="off")
def streets(simulation, size=24, declared=True):
    """A torus whose ids say nothing."""
    ids = np.random.default_rng(1).permutation(size * size).reshape(size, size)
    roads = np.zeros((size * size, 4), np.int64)
    for side, (shift, axis) in enumerate(((1, 0), (-1, 0), (1, 1), (-1, 1))):
        roads[ids, side] = np.roll(ids, shift, axis)
    simulation.add(Crossing, size * size, roads=roads)
    if declared:
        simulation.set_neighbours(roads)



def has_metis():
    try:
        return ctypes.CDLL("libmetis.so.5")
    except OSError:
        return None


@pytest.mark.skipif(not has_metis(), reason="METIS is not there")
@pytest.mark.parametrize("options", [{"threads": 2}, {"threads": 4}, {"threads": 2, "sync": "neighbours"},
                                     {"threads": 2, "plain": True, "end": 50}], ids=str)
def test_few_events_cross_threads_and_the_answer_is_the_same(options):
    blocks = streets.run(**options)
    divided = streets.run(partition="graph", **options)
    assert (divided.digest, divided.events) == (blocks.digest, blocks.events)
    assert 0 < divided.crossed * 4 < blocks.crossed


def test_the_library_goes_to_machines_without_metis():
    needs = subprocess.run(["ldd", os.environ["HM_PDES_LIBRARY"]], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "libc.so" in needs and "metis" not in needs


def test_one_thread_gets_all_lps(monkeypatch):
    monkeypatch.setenv("HM_METIS_LIBRARY", "/nowhere")
    assert streets.run(partition="graph").digest == streets.run().digest


def test_a_graph_that_cannot_be_divided_is_one_line(monkeypatch):
    with pytest.raises(pdes.Error, match="^there is no graph to divide among threads: every LP may send to every other$"):
        streets.run(partition="graph", threads=2, declared=False)
    monkeypatch.setenv("HM_METIS_LIBRARY", "/nowhere")
    with pytest.raises(pdes.Error, match="^METIS cannot be loaded as HM_METIS_LIBRARY says: /nowhere: cannot open .*$"):
        streets.run(partition="graph", threads=2)
