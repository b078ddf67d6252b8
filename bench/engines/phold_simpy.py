"""PHOLD on SimPy: an event is a process that waits, acts, and waits again, at this LP or at another."""

import phold
import simpy

given = phold.options()
delay, next_lp = phold.draw(given)
environment = simpy.Environment()
executed = [0] * given.lps


def event(at):
    while True:
        yield environment.timeout(delay())
        executed[at] += 1
        at = next_lp(at)


for number in range(given.lps * given.events_per_lp):
    environment.process(event(number % given.lps))
phold.run(lambda: environment.run(until=given.end), executed)
