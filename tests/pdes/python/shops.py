"""The town of docs/pdes.md as processes: customers queue for a clerk, and half of them go on to another shop."""

import hmalloc_pdes as pdes
from hmalloc_pdes.processes import Processes, Resource


@pdes.lp
class Shop(Processes):
    clerk: object = None
    waiting: pdes.Tally

    def setup(self, env):
        self.clerk = Resource(env)
        env.process(self.arrivals(env))
        env.process(self.walkers(env))

    def arrivals(self, env):
        while True:
            yield env.timeout(env.exponential(2.5))
            env.process(self.customer(env))

    def walkers(self, env):
        while True:
            yield env.inbox.get()
            env.process(self.customer(env))

    def customer(self, env):
        came = env.now
        with self.clerk.request() as turn:
            yield turn
            self.waiting.add(env.now - came)
            yield env.timeout(env.exponential(1.0))
        if env.chance(0.5):
            env.send(env.integer(env.lp_count), 5 + env.exponential(5.0), "a customer")

    def report(self, report):
        report.tally("waiting", self.waiting)


@pdes.model(end=500, lookahead=5)
def town(simulation, shops=20):
    simulation.add(Shop, shops)
