"""Claiming: an id has one body, whichever delivery of it comes."""

from dataclasses import replace

from axon.domain.wire import encode
from tests.worker.world import World


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
