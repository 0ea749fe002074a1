"""Adapters' files that were damaged or lost after they were fetched: fetched again, or the job fails."""

from collections.abc import Callable
from dataclasses import replace

from axon.domain.failure import Failure
from axon.domain.turn import TurnState
from axon.engine.protocol.messages import Refused, StepOutput
from axon.worker.worker import Worker
from tests.worker.adapter_fetches import SQL, Fetches, ask, ended, fails
from tests.worker.world import World


def damage(fetch: Fetches) -> None:
    for files in fetch.files[SQL.digest]:
        files.is_damaged = True


def test_files_that_were_damaged_are_fetched_again_before_another_job_reads_them() -> None:
    world, fetch = World(), Fetches()

    async def story() -> None:
        await world.start(fetch_adapter=fetch)
        long = await ask(world, 1, SQL, max_tokens=200)
        await world.until(lambda: fetch.held)
        damage(fetch)
        await ended(world, short := await ask(world, 2, SQL, max_tokens=2))
        world.check(short)
        assert len(fetch.asked) == 2
        damage(fetch)
        fetch.gone.add(SQL.digest)
        await fails(world, await ask(world, 3, SQL))
        assert long.id not in world.kept.turns, "what the engine has read goes on"
        await ended(world, long)
        world.check(long)
        await world.until(lambda: not fetch.held)

    world.run(story)


def refusing(world: World, worker: Worker, refuses: Callable[[], bool]) -> None:
    """Has the engine refuse sequences with an adapter while ``refuses`` says so."""
    engine = world.engine_of(worker)
    step, message = engine._step, "The adapter cannot be used: it has no adapter_model.safetensors"

    async def refuse() -> StepOutput:
        ids = [id for id, (add, _) in engine._sequences.items() if add.adapter and refuses()]
        for each in ids:
            del engine._sequences[each]
        return replace(await step(), refused=[Refused(each, Failure.ADAPTER_UNUSABLE, message) for each in ids])

    engine._step = refuse  # type: ignore[method-assign]


def test_an_engine_that_cannot_read_lost_files_gets_them_again_and_the_job_is_not_failed() -> None:
    world, fetch = World(), Fetches()

    def are_lost() -> bool:
        if is_first := len(fetch.asked) == 1:
            damage(fetch)
        return is_first

    async def story() -> None:
        refusing(world, await world.start(fetch_adapter=fetch), are_lost)
        await ended(world, job := await ask(world, 1, SQL))
        world.check(job)
        assert fetch.asked == [SQL.digest] * 2

    world.run(story)


def test_files_that_are_whole_and_cannot_be_used_are_refused_once() -> None:
    world, fetch = World(), Fetches()

    async def story() -> None:
        refusing(world, await world.start(fetch_adapter=fetch), lambda: True)
        await ended(world, job := await ask(world, 1, SQL))
        turn = world.kept.turns[job.id]
        assert (turn.state, turn.code) == (TurnState.FAILED, Failure.ADAPTER_UNUSABLE)
        assert fetch.asked == [SQL.digest]

    world.run(story)
