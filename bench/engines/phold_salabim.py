"""PHOLD on salabim: an event is a component that holds, acts, and holds again, at this LP or at another."""

import phold
import salabim

given = phold.options()
delay, next_lp = phold.draw(given)
executed = [0] * given.lps


class Event(salabim.Component):
    def setup(self, lp):
        self.lp = lp

    def process(self):
        while True:
            yield self.hold(delay())
            executed[self.lp] += 1
            self.lp = next_lp(self.lp)


salabim.yieldless(False)
environment = salabim.Environment(trace=False)
for number in range(given.lps * given.events_per_lp):
    Event(lp=number % given.lps)
phold.run(lambda: environment.run(till=given.end), executed)
