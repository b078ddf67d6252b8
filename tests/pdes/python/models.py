"""The models of pdes/models, in Python: they must get the digests of those in C++."""

from typing import NamedTuple

import hmalloc_pdes as pdes


class Hop(NamedTuple):
    hops: int


@pdes.lp
class Node:
    events: int
    remote: float
    mean: float

    def start(self, context):
        for _ in range(self.events):
            context.send_self(self.delay(context), Hop(0))

    def hop(self, context, event: Hop):
        to = context.integer(context.lp_count) if context.chance(self.remote) else context.id
        context.send(to, self.delay(context), Hop(event.hops + 1))

    def delay(self, context):
        return context.lookahead + context.exponential(self.mean - context.lookahead)


@pdes.model(end=80, lookahead=0.1)
def phold(simulation, lps=8192, events_per_lp=1, remote=0.25, mean=1.0):
    simulation.add(Node, lps, events=events_per_lp, remote=remote, mean=mean)


class Departure(NamedTuple):
    waiting: float
    landings: int


class Arrival(NamedTuple):
    waiting: float
    landings: int


class Landing(NamedTuple):
    waiting: float
    landings: int


@pdes.lp
class Airport:
    width: int
    height: int
    ground: float
    landing: float
    flight: float
    on_ground: int
    in_sky: int = 0
    departures: int = 0
    runway_free: float = 0.0
    waiting: pdes.Tally
    average: pdes.Tally

    def start(self, context):
        for _ in range(self.on_ground):
            self.stay(context, 0.0, 0)

    def depart(self, context, event: Departure):
        self.on_ground -= 1
        self.departures += 1
        flight = context.lookahead + context.exponential(self.flight - context.lookahead)
        context.send(self.neighbour(context.id, context.integer(4)), flight, Arrival(event.waiting, event.landings))

    def arrive(self, context, event: Arrival):
        self.in_sky += 1
        self.runway_free = max(self.runway_free, context.now)
        waiting = self.runway_free - context.now
        service = context.exponential(self.landing)
        self.runway_free += service
        context.send_self(waiting + service, Landing(waiting, event.landings + 1))

    def land(self, context, event: Landing):
        self.in_sky -= 1
        self.on_ground += 1
        self.waiting.add(event.waiting)
        self.stay(context, event.waiting, event.landings)

    def report(self, report):
        report.count("departures", self.departures)
        report.count("on_ground", self.on_ground)
        report.count("in_sky", self.in_sky)
        report.tally("waiting", self.waiting)
        if self.waiting.count > 0:
            self.average.add(self.waiting.sum / self.waiting.count)
        report.tally("waiting_by_airport", self.average)

    def stay(self, context, waiting, landings):
        context.send_self(context.exponential(self.ground), Departure(waiting, landings))

    def neighbour(self, lp, direction):
        x, y = lp % self.width, lp // self.width
        if direction == 0:
            return lp - x + (x + self.width - 1) % self.width
        if direction == 1:
            return lp - x + (x + 1) % self.width
        if direction == 2:
            return (y + self.height - 1) % self.height * self.width + x
        return (y + 1) % self.height * self.width + x


@pdes.model(end=1000, lookahead=0.5)
def airport(simulation, width=32, height=32, planes=50, ground=30.0, landing=10.0, flight=1.0):
    simulation.add(Airport, width * height, width=width, height=height, ground=ground, landing=landing, flight=flight,
                   on_ground=planes)
    lps = range(width * height)
    simulation.set_neighbours([[lp, lp - lp % width + (lp + 1) % width, lp - lp % width + (lp + width - 1) % width,
                                (lp + width) % len(lps), (lp - width) % len(lps)] for lp in lps])


class Begin(NamedTuple):
    pass


class Packet(NamedTuple):
    pass


class Acknowledgement(NamedTuple):
    pass


@pdes.cancellable
class Timeout(NamedTuple):
    pass


class Sure(NamedTuple):
    pass


@pdes.lp
class Station:
    wires: int
    loss: float
    wire: float
    patience: float
    precision: float
    began: float = 0.0
    timer: pdes.Timer
    took: pdes.Histogram
    times: pdes.Tally
    batches: pdes.BatchMeans
    retrying: pdes.Level
    sure: bool = False
    all_sure: int = 0

    def start(self, context):
        if context.id % 2 == 0:
            context.send_self(context.uniform(), Begin())

    def begin(self, context, event: Begin):
        self.began = context.now
        self.retrying.set(context.now, 0)
        self.try_now(context)

    def on_packet(self, context, event: Packet):
        if not context.chance(self.loss):
            context.send(context.id ^ 1, self.wire, Acknowledgement())

    def on_acknowledgement(self, context, event: Acknowledgement):
        self.timer.cancel()
        self.took.add(context.now - self.began)
        self.times.add(context.now - self.began)
        self.batches.add(context.now - self.began)
        if not self.sure and self.knows_enough():
            self.sure = True
            context.send(0, self.wire, Sure())
        context.send_self(0, Begin())

    def on_timeout(self, context, event: Timeout):
        self.retrying.set(context.now, 1)
        self.try_now(context)

    def on_sure(self, context, event: Sure):
        self.all_sure += 1
        if self.all_sure == self.wires:
            context.end_after(context.lookahead)

    def report(self, report):
        if self.times.count > 0:
            report.histogram("took", self.took)
            report.interval("mean_time", self.batches)
            report.level("retrying", self.retrying)
            report.count("sure", self.sure)

    def try_now(self, context):
        if not context.chance(self.loss):
            context.send(context.id ^ 1, self.wire, Packet())
        context.set(self.timer, self.patience, Timeout())

    def knows_enough(self):
        return (self.precision > 0 and self.batches.batches >= 20
                and self.batches.half_width() <= self.precision * self.batches.mean())


@pdes.model(end=100_000, lookahead=lambda wire: wire)
def arq(simulation, wires=100, loss=0.1, wire=1.0, patience=3.0, precision=0.02, batch=50):
    simulation.add(Station, 2 * wires, wires=wires, loss=loss, wire=wire, patience=patience, precision=precision, batches=batch)
