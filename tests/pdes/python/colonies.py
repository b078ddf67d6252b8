"""pdes/models/colonies.h in Python: cells that divide and die, each of them an LP."""

from typing import NamedTuple

import hmalloc_pdes as pdes
import numpy as np


@pdes.makes
class Born(NamedTuple):
    pass


class Next(NamedTuple):
    pass


class Divided(NamedTuple):
    pass


class Died(NamedTuple):
    cell: np.uint32


@pdes.lp
class Cell:
    colony: int
    division: float
    death: float
    signal: float
    born: float = 0.0
    divisions: int = 0
    life: pdes.Tally

    def on_born(self, context, event: Born):
        self.born = context.now
        self.wait(context)

    def on_next(self, context, event: Next):
        if context.chance(self.division / (self.division + self.death)):
            self.divisions += 1
            context.send(self.colony, self.signal, Divided())
            self.wait(context)
        else:
            self.life.add(context.now - self.born)
            context.send(self.colony, self.signal, Died(context.id))
            context.vacate()

    def wait(self, context):
        context.send_self(context.exponential(1 / (self.division + self.death)), Next())

    def report(self, report):
        report.tally("life", self.life)
        report.count("divisions", self.divisions)


@pdes.lp
class Colony:
    founders: int
    room: int
    signal: float
    vacancies: pdes.Vacancies
    cells: int = 0
    ever: int = 0
    refused: int = 0
    died_out: pdes.Tally
    family: pdes.Tally
    nothing: pdes.Tally

    def start(self, context):
        self.vacancies.set(context.id + 1, self.room)
        for _ in range(self.founders):
            self.add_cell(context)

    def on_divided(self, context, event: Divided):
        self.add_cell(context)

    def on_died(self, context, event: Died):
        self.vacancies.give_back(event.cell)
        self.cells -= 1
        if self.cells == 0:
            self.died_out.add(context.now)

    def add_cell(self, context):
        place = self.vacancies.take()
        if place < 0:
            self.refused += 1
            return
        self.cells += 1
        self.ever += 1
        context.send(place, self.signal, Born())

    def report(self, report):
        if self.cells == 0 and self.refused == 0:
            report.tally("died_out_at", self.died_out)
            self.family.add(self.ever)
        else:
            report.tally("died_out_at", self.nothing)
        report.tally("family", self.family)
        report.count("cells", self.cells)
        report.count("full", self.refused > 0)
        report.count("refused", self.refused)


@pdes.model(end=50, lookahead=lambda signal: signal)
def colonies(simulation, colonies=1000, founders=1, room=100, division=1.2, death=1.0, signal=0.1):
    cell = {"division": division, "death": death, "signal": signal}
    simulation.add_vacant(Cell, 0, colony=0, **cell)  # so that events have the numbers of those in C++
    for _ in range(colonies):
        colony = simulation.add(Colony, 1, founders=founders, room=room, signal=signal)
        simulation.add_vacant(Cell, room, colony=colony, **cell)
    ids = range(colonies * (room + 1))
    simulation.set_neighbours([i - i % (room + 1)] if i % (room + 1) else range(i + 1, i + room + 1) for i in ids)
