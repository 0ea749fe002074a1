"""An engine that crashes or hangs: whose fault it was is found, and everybody else is answered as ever."""

from dataclasses import replace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from axon.domain.log.chunk import Chunk, Token
from axon.engine.protocol.messages import Emitted, StepOutput
from axon.runtime.clock import FakeClock
from axon.telemetry.metrics import Metrics
from axon.worker.child.supervisor import Supervisor
from axon.worker.config import WorkerConfig
from axon.worker.job.hands import Hands
from axon.worker.job.running import Running
from axon.worker.job.trials import Trials
from tests.worker.job.builders import make_running
from tests.worker.world import World

INNOCENTS = range(1, 32)
GUILTY = 99


def make_supervisor(running: Running, metrics: Metrics | None = None) -> Supervisor:
    """With an engine that takes everything and does nothing; this is the one job in hand."""
    hands = Hands(Trials(strike_limit=3))
    supervisor = Supervisor(
        hands=hands,
        make_engine=Mock(),
        charge=Mock(),
        config=WorkerConfig(),
        clock=FakeClock(),
        metrics=metrics or Metrics(),
    )
    cast("Any", supervisor)._is_up = True
    hands.take(running)
    return supervisor


@pytest.mark.parametrize("fate", ["crash", "hang"])
@pytest.mark.parametrize("num_innocents", [0, 1, 31])
def test_a_poisonous_request_among_innocents_fails_alone_after_three_crashes(fate: str, num_innocents: int) -> None:
    world = World(slots=32)
    world.fates[GUILTY] = fate

    async def story() -> None:
        await world.start()
        innocents = [await world.ask(seed=seed, max_tokens=40) for seed in INNOCENTS[:num_innocents]]
        poison = await world.ask(seed=GUILTY)
        await world.until(lambda: len(world.kept.turns) == num_innocents + 1)
        assert world.kept.turns[poison.id].code == "worker_crash"
        assert world.num_engines - 1 <= 3
        for job in innocents:
            world.check(job)

    world.run(story)


def test_streams_go_on_between_the_second_crash_and_the_trial_of_the_newest_request() -> None:
    world = World(slots=32)
    world.fates[GUILTY] = "crash"

    async def story() -> None:
        worker = await world.start()
        innocents = [await world.ask(seed=seed, max_tokens=200) for seed in INNOCENTS]
        hands = worker.hands.running
        await world.until(lambda: len(hands) == len(innocents) and all(len(each.tokens) > 5 for each in hands.values()))
        poison = await world.ask(seed=GUILTY)
        await world.until(lambda: world.num_engines == 2)
        before = {job_id: len(each.tokens) for job_id, each in hands.items()}
        await world.until(lambda: poison.id in world.kept.turns)
        assert all(len(hands[job.id].tokens) >= before[job.id] + 8 for job in innocents)
        await world.until(lambda: len(world.kept.turns) == len(innocents) + 1)
        assert world.num_engines - 1 == 3

    world.run(story)


def test_an_engine_that_never_returns_from_a_step_is_killed_and_its_jobs_are_replayed() -> None:
    world = World()

    async def story() -> None:
        worker = await world.start()
        jobs = [await world.ask(seed=seed, max_tokens=100) for seed in (1, 2, 3)]
        await world.until(
            lambda: all(len(each.tokens) > 20 for each in worker.hands.running.values()) and worker.hands.running
        )
        world.fates[2] = "hang"
        hung_at = world.loop.monotonic()
        await world.until(lambda: world.loop.monotonic() > hung_at + 25.0)
        assert world.num_engines == 1
        world.fates.clear()  # it was no fault of the job's
        await world.until(lambda: len(world.kept.turns) == len(jobs))
        assert world.num_engines == 2
        for job in jobs:
            world.check(job)

    world.run(story)


def test_only_who_was_in_the_step_is_a_suspect() -> None:
    world = World()
    world.fates[GUILTY] = "crash"
    world.starved.add(("", 1))

    async def story() -> None:
        worker = await world.start()
        bystander = await world.ask(seed=1)
        await world.until(lambda: worker.hands.running)
        poison = await world.ask(seed=GUILTY)
        await world.until(lambda: poison.id in world.kept.turns)
        assert world.num_engines - 1 <= world.config.strike_limit
        assert worker.hands.trials.crashes(bystander.id) == 0
        world.starved.clear()
        await world.until(lambda: bystander.id in world.kept.turns)
        world.check(bystander)

    world.run(story)


def test_a_ledger_tells_of_an_engine_that_was_lost_and_of_what_had_to_be_done_again() -> None:
    world = World()

    async def story() -> None:
        worker = await world.start()
        lost, later = await world.ask(seed=2, max_tokens=100), await world.ask(seed=3, max_tokens=100)
        await world.until(
            lambda: all(len(each.tokens) > 20 for each in worker.hands.running.values()) and worker.hands.running
        )
        world.fates[2] = "crash"
        await world.until(lambda: world.num_engines == 2)
        world.fates.clear()
        await world.until(lambda: len(world.kept.turns) == 2)
        for job in (lost, later):
            world.check(job)
            ledger = world.kept.turns[job.id].ledger
            assert ledger is not None
            assert ledger.attempts == world.num_engines
            assert ledger.replayed >= len(job.prompt_ids) + 20
            assert ledger.replay_s > 0

    world.run(story)


def test_what_an_engine_emits_behind_a_stop_string_is_wasted_and_not_billed() -> None:
    running = make_running(stop=["b"])
    supervisor = make_supervisor(running)
    sequence_id = running.choices[0].sequence_id or ""
    emitted = [Emitted(sequence_id, token) for token in b"abcd"]
    supervisor._settle(StepOutput(emitted=emitted))
    chunk = running.pending()
    assert chunk is not None
    assert chunk.ledger is not None
    assert (chunk.ledger.emitted, chunk.ledger.wasted) == (2, 2)


def test_nothing_is_remembered_of_the_sequences_of_an_engine_that_died() -> None:
    running = make_running()
    supervisor = make_supervisor(running, Metrics("vllm"))
    supervisor._settle(StepOutput(emitted=[Emitted(running.choices[0].sequence_id or "", 97)]))
    names = cast("Any", supervisor.report.vllm)
    assert names._drawn_at
    supervisor._judge(frozenset())
    assert not names._drawn_at


def test_every_choice_comes_into_the_engine_with_the_prompt_it_goes_on_from() -> None:
    running = make_running(choices=4, more_prompts=((7, 8),))
    supervisor = make_supervisor(running)
    asked = [call.args[0] for call in cast("Any", supervisor)._engine.add.call_args_list]
    assert [(add.choice, add.prompt_ids) for add in asked] == [
        (0, [1, 2, 3]),
        (1, [1, 2, 3]),
        (2, [7, 8]),
        (3, [7, 8]),
    ]
    supervisor._settle(StepOutput(emitted=[Emitted(add.id, 97) for add in asked]))
    served = [call.kwargs["prefilled"] for call in cast("Any", supervisor)._charge.call_args_list]
    assert served == [3, 3, 2, 2]


def test_an_attempt_that_takes_over_tokens_comes_into_the_engine_as_interrupted() -> None:
    for said in (b"", b"so far"):
        running = make_running(epoch=2)
        running.replay([Chunk(first=1, epoch=1, tokens=tuple(Token(0, each, chr(each)) for each in said))])
        engine = cast("Any", make_supervisor(running))._engine
        [added] = [call.args[0] for call in engine.add.call_args_list]
        assert (added.interrupted, added.output_ids) == (bool(said), list(said))


def test_the_engine_is_told_of_a_stop_string_and_not_of_an_end_that_it_has_found_itself() -> None:
    for finish, num_told in ((None, 1), ("length", 0)):
        running = make_running(stop=["b"])
        supervisor = make_supervisor(running)
        sequence_id = running.choices[0].sequence_id or ""
        token = ord("b") if finish is None else ord("a")
        supervisor._settle(StepOutput(emitted=[Emitted(sequence_id, token, finish=finish)]))
        assert running.choices[0].reason
        assert running.choices[0].sequence_id is None
        assert cast("Any", supervisor)._engine.abort.call_count == num_told


def test_a_job_that_comes_or_goes_leaves_the_others_in_the_engine_as_they_are() -> None:
    first = make_running()
    supervisor = make_supervisor(first)
    engine, hands = cast("Any", supervisor)._engine, cast("Any", supervisor)._hands
    second = make_running()
    second.job = replace(second.job, id="turn_2")
    hands.take(second)
    assert engine.add.call_count == 2
    hands.forget(second)
    assert (engine.add.call_count, engine.abort.call_count) == (2, 1)
    assert first.choices[0].sequence_id is not None
