"""Processes as generators."""

import warnings

import hmalloc_pdes as pdes
import pytest
from hmalloc_pdes.processes import Interrupt, Processes, Resource, Store
from shops import town


def run(story, lps=1, end=100):
    """What processes note; `story(env, note)` makes them, in each LP."""
    noted = []

    @pdes.lp
    class Teller(Processes):
        def setup(self, env):
            story(env, lambda *what: noted.append((env.now, *what)))

    @pdes.model(end=end, lookahead=1)
    def told(simulation):
        simulation.add(Teller, lps)

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # who writes processes knows that they are slow
        told.run()
    return noted


def test_timeouts_and_the_end_of_a_process():
    def story(env, note):
        def child():
            got = yield env.timeout(2, "slept")
            note(got)
            return 42

        def parent():
            note((yield env.process(child())))

        env.process(parent())

    assert run(story) == [(2.0, "slept"), (2.0, 42)]


def test_all_and_any():
    def story(env, note):
        def waits():
            a, b = env.timeout(1, "a"), env.timeout(3, "b")
            got = yield a | b
            note([*got.values()])
            got = yield a & b
            note([*got.values()])
            note((yield env.all_of([])))

        env.process(waits())

    assert run(story) == [(1.0, ["a"]), (3.0, ["a", "b"]), (3.0, {})]


def test_interrupt():
    def story(env, note):
        def sleeper():
            try:
                yield env.timeout(50)
            except Interrupt as interrupt:
                note(interrupt.cause)
            yield env.timeout(1)
            note("up")

        def waker(process):
            yield env.timeout(3)
            process.interrupt("fire")

        env.process(waker(env.process(sleeper())))

    assert run(story) == [(3.0, "fire"), (4.0, "up")]


def test_an_interrupt_comes_before_what_else_is_due():
    def story(env, note):
        def waker():
            yield env.timeout(3)
            sleeping[0].interrupt()

        def sleeper():
            try:
                yield env.timeout(3)
                note("slept")
            except Interrupt:
                note("woken")

        env.process(waker())
        sleeping = [env.process(sleeper())]

    assert run(story) == [(3.0, "woken")]


def test_a_condition_fails_with_the_first_of_its_events():
    def story(env, note):
        def waits():
            late = env.event()
            both = late & env.timeout(5)
            late.fail(KeyError("nobody"))
            try:
                yield both
            except KeyError as error:
                note(error.args[0])

        env.process(waits())

    assert run(story) == [(0.0, "nobody")]


def test_a_resource_serves_in_order_and_forgets_who_gave_up():
    def story(env, note):
        desk = Resource(env, 2)

        def customer(name, patience):
            with desk.request() as turn:
                yield turn | env.timeout(patience)
                if not turn.triggered:
                    note(name, "leaves")
                    return
                note(name, desk.count, len(desk.queue))
                yield env.timeout(4)

        for name, patience in ("a", 9), ("b", 9), ("c", 1), ("d", 9):
            env.process(customer(name, patience))

    assert run(story) == [(0.0, "a", 2, 2), (0.0, "b", 2, 2), (1.0, "c", "leaves"), (4.0, "d", 1, 0)]


def test_a_store_makes_who_puts_wait_too():
    def story(env, note):
        store = Store(env, 1)

        def producer():
            for i in range(3):
                yield store.put(i)
                note("put", i)

        def consumer():
            for _ in range(3):
                yield env.timeout(2)
                note("got", (yield store.get()))

        env.process(producer())
        env.process(consumer())

    assert run(story) == [(0.0, "put", 0), (2.0, "got", 0), (2.0, "put", 1), (4.0, "got", 1), (4.0, "put", 2), (6.0, "got", 2)]


def test_messages_go_from_lp_to_lp():
    def story(env, note):
        def talk():
            if env.id == 0:
                env.send(1, 5, "hello")
            note(env.id, (yield env.inbox.get()))
            env.send(0, 1, "thanks")

        env.process(talk())

    assert run(story, lps=2) == [(5.0, 1, "hello"), (6.0, 0, "thanks")]


@pytest.mark.parametrize("generator, said", [
    (lambda env: (yield 3), "TypeError: a process yields events, not 3"),
    (lambda env: (_ for _ in [1 / 0]), "ZeroDivisionError: division by zero"),
    (lambda env: 3, "TypeError: a process is a generator, and 3 is none: does it yield?"),
    (lambda env: _failing(env), "KeyError: 'nobody'")])
def test_what_goes_wrong_is_one_line(generator, said):
    with pytest.raises(pdes.Error, match=f"^LP 0 .Teller., at .*, failed: {said}".replace("?", "[?]")):
        run(lambda env, note: env.process(generator(env)))


def _failing(env):
    yield env.timeout(1)
    raise KeyError("nobody")


def test_the_town_waits_as_long_as_theory_says():
    one, two = town.run(end=300), town.run(end=300, threads=2)
    assert one.digest == two.digest
    assert 2 < one.statistics["waiting"].mean < 6  # M/M/1 with a load of 0.8: 4


def test_the_order_is_that_of_simpy():
    simpy = pytest.importorskip("simpy")

    def story(env, note, resource):
        def worker(name, delay):
            yield env.timeout(delay)
            with resource.request() as turn:
                yield turn
                note(name)
                yield env.timeout(2)
            yield env.timeout(0) & env.timeout(1)
            note(name, "done")

        def parent():
            before = env.timeout(0)
            env.process(child())
            yield before
            note("parent")

        def child():
            note("child")  # although it was made after the timeout of the same time
            yield env.timeout(0)

        env.process(parent())
        for i in range(6):
            env.process(worker(i, i % 3))

    theirs, env = [], simpy.Environment()
    story(env, lambda *what: theirs.append((env.now, *what)), simpy.Resource(env, 2))
    env.run(100)
    assert run(lambda env, note: story(env, note, Resource(env, 2))) == theirs
