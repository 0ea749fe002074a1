"""Claiming: an id has one body, whichever delivery of it comes; what was cancelled before it began costs nothing."""

from dataclasses import replace

from axon.domain.billing.usage import Usage
from axon.domain.turn import TurnState
from axon.domain.wire import encode
from tests.worker.world import METRICS, World


def test_a_delivery_with_another_body_than_the_logs_is_run_as_the_log_has_it() -> None:
    """The log had lost the job, and a repeated request opened it again with a seed of its own."""
    world = World()

    async def story() -> None:
        job = await world.ask(seed=1)
        taken = world.broker.connect()
        await taken.open()
        delivery = await taken.take([job.lane])
        assert delivery is not None
        await taken.ack(delivery)
        world.broker.publish(job.lane, encode(replace(job, seed=2)))
        await world.start()
        await world.until(lambda: job.id in world.kept.turns)
        assert world.kept.turns[job.id].job == job
        world.check(job)
        await taken.aclose()

    world.run(story)


def test_a_turn_that_was_cancelled_before_a_worker_began_it_costs_nothing() -> None:
    """As when the queue took the job and its confirmation was lost: the client was told to ask again."""
    world = World()

    async def story() -> None:
        job = await world.ask(seed=1)
        await world.live.log.flag(job.id, cancel=True)
        await world.start()
        await world.until(lambda: job.id in world.kept.turns)
        turn = world.kept.turns[job.id]
        assert (turn.state, turn.usage) == (TurnState.CANCELLED, Usage())
        assert turn.ledger is not None
        assert (turn.ledger.attempts, turn.ledger.billed) == (0, 0)

    world.run(story)


def test_a_turn_whose_reader_left_before_a_worker_began_it_is_counted_as_such() -> None:
    world = World()
    absent = METRICS.turns.cancelled.labels(cause="absent")
    before = absent._value.get()

    async def story() -> None:
        left = await world.ask(seed=1, reader_ttl_s=0.0)
        stopped = await world.ask(seed=2)
        await world.live.log.flag(stopped.id, cancel=True)
        await world.start()
        await world.until(lambda: {left.id, stopped.id} <= set(world.kept.turns))
        assert world.kept.turns[left.id].state == TurnState.CANCELLED
        assert absent._value.get() == before + 1, "who stops a turn counts that"

    world.run(story)


def test_an_attempt_has_the_name_of_its_worker_beside_its_incarnation() -> None:
    """A trace names the worker as logs and metrics do."""
    world = World()

    async def story() -> None:
        job = await world.ask(seed=1)
        worker = await world.start(name="small-0")
        await world.until(lambda: job.id in world.kept.turns)
        ledger = world.kept.turns[job.id].ledger
        assert ledger is not None
        assert ledger.times is not None
        [attempt] = ledger.times.attempts
        assert (attempt.name, attempt.worker) == ("small-0", worker.identity.incarnation)

    world.run(story)
