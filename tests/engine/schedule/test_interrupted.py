"""Streams whose engine or worker died are computed again in large chunks: they go on soon, and all have more tokens."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axon.engine.batch import Batch, Draw, Span
from axon.engine.schedule.limits.controller import Outlook
from axon.engine.schedule.limits.learned_controller import LearnedController
from tests.engine.builders import make_add, make_drawn, make_scheduler
from tests.engine.schedule.machines import NEOVERSE, TILED, XEON, Machine
from tests.long import examples

LONGEST_STEP_S = 0.25
NUM_STREAMS, NUM_INTERRUPTED = 8, 8
NUM_PROMPT, NUM_SAID = 300, 100


def make_controller(*, max_slowdown: float = 2.0, slo_s: float = float("inf")) -> LearnedController:
    return LearnedController(max_prefill_tokens=128, max_slowdown=max_slowdown, slo_s=slo_s)


def make_batch(*, streams: int, prompt: int) -> Batch:
    draw = Draw(sampling=make_add().sampling, seed=0, choice=0, position=1)
    spans = [Span(id=str(n), first=200, token_ids=(1,), block_ids=(n,), draw=draw) for n in range(streams)]
    spans += [Span(id="prompt", first=0, token_ids=(1,) * prompt, block_ids=(99,))] if prompt else []
    return Batch(tuple(spans))


def taught(*, stream_s: float, token_s: float, slo_s: float = float("inf")) -> LearnedController:
    """A controller on a machine whose step takes ``stream_s`` with four streams, and longer for each prompt token."""
    controller = make_controller(slo_s=slo_s)
    for _ in range(40):
        for prompt in (0, 16):
            took_s = stream_s + prompt * token_s
            controller.observe(make_batch(streams=4, prompt=prompt), step_s=took_s, compute_s=took_s)
    return controller


OUTLOOK = Outlook(4, 800, 0)
times = st.floats(1e-3, 0.1)
costs = st.floats(1e-4, 0.01)


@settings(max_examples=examples(25), deadline=None)
@given(stream_s=times, token_s=costs, num_interrupted=st.integers(0, 5000))
def test_interrupted_streams_never_get_fewer_tokens_than_prompts_and_no_more_than_they_need(
    stream_s: float, token_s: float, num_interrupted: int
) -> None:
    controller = taught(stream_s=stream_s, token_s=token_s)
    usual = controller.num_prefill_tokens(OUTLOOK)
    found = controller.num_prefill_tokens(replace(OUTLOOK, num_interrupted=num_interrupted))
    assert usual <= found <= max(usual, num_interrupted)


@settings(max_examples=examples(25), deadline=None)
@given(stream_s=times, token_s=costs)
def test_a_step_with_interrupted_streams_takes_no_longer_than_a_quarter_of_a_second_or_a_usual_one(
    stream_s: float, token_s: float
) -> None:
    controller = taught(stream_s=stream_s, token_s=token_s)
    usual = controller.num_prefill_tokens(OUTLOOK)
    found = controller.num_prefill_tokens(replace(OUTLOOK, num_interrupted=10**6))
    assert stream_s + found * token_s <= 1.05 * max(LONGEST_STEP_S, stream_s + usual * token_s)


def test_the_time_that_may_pass_between_two_tokens_holds_for_interrupted_streams_too() -> None:
    controller = taught(stream_s=0.02, token_s=0.001, slo_s=0.05)
    assert controller.num_prefill_tokens(replace(OUTLOOK, num_interrupted=10**6)) == pytest.approx(28, abs=2)


def test_before_a_prompt_was_measured_interrupted_streams_get_no_more_than_it() -> None:
    assert make_controller().num_prefill_tokens(replace(OUTLOOK, num_interrupted=10**6)) == 8


def test_a_sequence_stands_still_until_it_has_computed_all_that_it_came_with() -> None:
    scheduler = make_scheduler(blocks=64, max_batch_tokens=8, max_prefill_tokens=4)
    scheduler.add(make_add("new", prompt=10))
    scheduler.add(make_add("again", prompt=[50, 51, 52, 53, 54, 55], output=[1, 2, 3], max_tokens=9, interrupted=True))
    seen = []
    for _ in range(6):
        seen.append(scheduler.outlook().num_interrupted)
        batch = scheduler.schedule()
        scheduler.settle(batch, make_drawn(*[7] * len(batch.draws)))
    assert seen[0] == 9
    assert seen == sorted(seen, reverse=True)
    assert seen[-1] == 0


def test_an_interrupted_stream_goes_before_prompts_of_its_priority_and_behind_those_of_a_higher_one() -> None:
    scheduler = make_scheduler(blocks=64, max_batch_tokens=16, max_prefill_tokens=8)
    scheduler.add(make_add("stream", prompt=1, max_tokens=90))
    batch = scheduler.schedule()
    scheduler.settle(batch, make_drawn(7))
    scheduler.add(make_add("high", prompt=8, priority=1))
    scheduler.add(make_add("new", prompt=8))
    scheduler.add(make_add("again", prompt=[50, 51, 52, 53, 54], output=[1, 2, 3], max_tokens=9, interrupted=True))
    firsts: dict[str, int] = {}
    for step in range(6):
        batch = scheduler.schedule()
        for emitted in scheduler.settle(batch, make_drawn(*[7] * len(batch.draws))):
            firsts.setdefault(emitted.id, step)
    assert firsts["high"] < firsts["again"] < firsts["new"]


@dataclass(frozen=True, slots=True)
class Run:
    """Streams that ran beside others which were interrupted."""

    longest_stall_s: float
    """Until the last of the interrupted streams went on."""
    num_tokens: int
    """Tokens of all streams in the twenty seconds after the interruption."""


def run(machine: Machine, *, interrupted: bool) -> Run:
    """Half of the slots run; then the other half comes from a worker that died, on the real scheduler."""
    scheduler = make_scheduler(blocks=16_000, block_size=16, max_sequences=16, max_batch_tokens=512, max_model_len=8192)
    controller = make_controller()
    now_s, num_tokens, going_on_s = 0.0, 0, dict[str, float]()

    def step() -> None:
        nonlocal now_s, num_tokens
        batch = scheduler.schedule(0.0, controller.limits(scheduler))
        took_s = machine.step_s(batch)
        now_s += took_s
        for emitted in scheduler.settle(batch, make_drawn(*[1] * len(batch.draws))):
            going_on_s.setdefault(emitted.id, now_s)
            num_tokens += 1
        controller.observe(batch, step_s=took_s, compute_s=took_s)

    for number in range(NUM_STREAMS):
        prompt = [7 * number + each for each in range(100)]
        scheduler.add(make_add(f"s{number}", prompt=prompt, max_tokens=8000, tenant=f"s{number}"))
    for _ in range(200):
        step()
    num_tokens, struck_at_s = 0, now_s
    going_on_s.clear()
    for number in range(NUM_INTERRUPTED):
        prompt, said = [3000 * number + each for each in range(NUM_PROMPT)], [5] * NUM_SAID
        add = make_add(f"i{number}", prompt=prompt, output=said, max_tokens=8000, interrupted=interrupted)
        scheduler.add(replace(add, tenant=f"i{number}"))
    while now_s - struck_at_s < 20.0:
        step()
    stalls_s = [at_s - struck_at_s for id, at_s in going_on_s.items() if id.startswith("i")]
    assert len(stalls_s) == NUM_INTERRUPTED
    return Run(max(stalls_s), num_tokens)


@pytest.mark.parametrize("machine", [XEON, NEOVERSE, TILED], ids=["xeon", "neoverse", "tiled"])
def test_interrupted_streams_go_on_sooner_and_all_together_have_more_tokens_after_twenty_seconds(
    machine: Machine,
) -> None:
    as_prompts, as_streams = run(machine, interrupted=False), run(machine, interrupted=True)
    assert as_streams.longest_stall_s < 0.6 * as_prompts.longest_stall_s
    assert as_streams.num_tokens > as_prompts.num_tokens
