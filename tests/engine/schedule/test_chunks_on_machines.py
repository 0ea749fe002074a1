"""On machines that it was not tuned on, the controller slows streams down little, and prompts go on beside them."""

from itertools import pairwise

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from axon.engine.batch import Batch, Draw, Span
from axon.engine.schedule.limits.learned_controller import LearnedController
from tests.engine.builders import make_add
from tests.engine.schedule.machines import NEOVERSE, QUIET, TILED, WIDE, XEON, Day, Machine, possible_tokens, serve
from tests.long import examples

MOST = 128
NUM_STEPS = 300
BUSY = Day(jitter=0.08, outliers=0.01, slow_factor=2.0, slow_share=0.1, cold_factor=5.0, seed=1)
LEVEL = Machine(
    rows_s=((1, 0.03125), (2, 0.03125), (64, 0.7578125), (512, 6.0078125)),
    stream_attended_s=3.125e-06,
    prompt_attended_s=3.125e-06,
    prompt_s=0.0,
)
"""Two rows take as long as one here."""
STEEP = Machine(
    rows_s=((1, 0.03125), (2, 0.03125), (64, 0.15234375), (512, 1.02734375)),
    stream_attended_s=5.2e-6,
    prompt_attended_s=2.6e-6,
)
"""A row is free and each other one adds a sixteenth of a step."""
FAR_SIGHTED = Machine(
    rows_s=((1, 0.03125), (4, 0.03125), (64, 0.0751953125), (512, 0.4033203125)),
    stream_attended_s=1.1e-5,
    prompt_attended_s=2.8e-6,
)
"""A prompt's token at position 250 takes twice as long as its first."""
FREED = Day(jitter=0.0625, slow_factor=2.0, slow_share=0.0625, seed=201)
"""Another process has the cores until the first prompt has begun, and from then on never again."""


def make_controller() -> LearnedController:
    return LearnedController(max_prefill_tokens=MOST, max_slowdown=2.0)


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    """A fixed time, up to some rows nearly for free, then a time a row, which is less in large steps."""
    fixed_s = draw(st.floats(0.5e-3, 50e-3))
    num_free = draw(st.integers(2, 12))
    row_s = fixed_s * draw(st.floats(0.02, 0.4))
    bulk_row_s = row_s * draw(st.floats(0.2, 1.0))
    free_s = fixed_s * draw(st.floats(1.0, 1.3))
    many_s = free_s + row_s * (64 - num_free)
    attended_s = fixed_s * draw(st.floats(1e-5, 4e-4))
    return Machine(
        rows_s=((1, fixed_s), (num_free, free_s), (64, many_s), (512, many_s + bulk_row_s * 448)),
        stream_attended_s=attended_s,
        prompt_attended_s=attended_s * draw(st.floats(0.1, 1.0)),
        prompt_s=fixed_s * draw(st.floats(0.0, 0.2)),
    )


days = st.builds(
    Day,
    jitter=st.floats(0.0, 0.08),
    outliers=st.floats(0.0, 0.01),
    slow_factor=st.floats(1.0, 2.5),
    slow_share=st.floats(0.0, 0.1),
    cold_factor=st.floats(0.5, 20.0),
    seed=st.integers(0, 1000),
)


def allows_a_chunk(machine: Machine, num_streams: int) -> bool:
    """Whether one token at the end of a long prompt lengthens a step of new streams by less than a half."""
    draw = Draw(sampling=make_add().sampling, seed=0, choice=0, position=1)
    spans = [Span(id=str(n), first=92, token_ids=(1,), block_ids=(), draw=draw) for n in range(num_streams)]
    return possible_tokens(machine, Batch(tuple(spans)), 4000, MOST, slowdown=1.5) > 0


@given(machines(), days, st.integers(1, 12))
@example(XEON, BUSY, 4)
@example(NEOVERSE, BUSY, 4)
@example(TILED, BUSY, 4)
@example(WIDE, BUSY, 4)
@example(STEEP, FREED, 1)
@example(FAR_SIGHTED, Day(), 1)
@settings(max_examples=examples(25), deadline=None)
def test_streams_beside_long_prompts_slow_down_little_and_prompts_go_on(
    machine: Machine, day: Day, num_streams: int
) -> None:
    assume(allows_a_chunk(machine, num_streams))
    seen = serve(machine, day, make_controller(), num_streams=num_streams, num_steps=NUM_STEPS)
    assert seen.slowdown(0.95) <= 2.5
    assert seen.progress(last=NUM_STEPS) > 0.3, "of the tokens that fit into twice the time"
    assert seen.progress(last=100) > 0.3, "nor does it get stuck"


@given(machines(), st.floats(1.5, 2.5), st.integers(60, 90), st.integers(1, 4))
@example(STEEP, 2.1, 62, 1)
@example(LEVEL, 2.0, 62, 1)
@settings(max_examples=examples(25), deadline=None)
def test_a_machine_that_is_freed_while_prompts_begin_lets_no_large_chunks_in_for_long(
    machine: Machine, slow_factor: float, until: int, num_streams: int
) -> None:
    """What was learned of the streams then is too much, and of the prompts beside them too little."""
    assume(allows_a_chunk(machine, num_streams))
    day = Day(jitter=0.05, slow_factor=slow_factor, slow_until=until)
    seen = serve(machine, day, make_controller(), num_streams=num_streams, num_steps=NUM_STEPS)
    assert seen.slowdown(0.95) <= 2.5
    assert seen.progress(last=NUM_STEPS) > 0.3


@pytest.mark.parametrize("machine", [XEON, NEOVERSE, TILED, WIDE])
def test_on_a_quiet_machine_the_slowdown_is_close_to_what_is_allowed(machine: Machine) -> None:
    seen = serve(machine, QUIET, make_controller(), num_streams=4, num_steps=NUM_STEPS)
    assert seen.slowdown(0.99) <= 2.1
    assert seen.slowdown(0.5) >= 1.6
    assert seen.progress(last=NUM_STEPS) > 0.75


def test_a_cold_first_step_does_not_set_the_chunk_for_long() -> None:
    """The weights are read from the disk by it. It must not count for more than the many steps behind it."""
    cold = serve(XEON, Day(cold_factor=20.0), make_controller(), num_streams=4, num_steps=100)
    warm = serve(XEON, Day(), make_controller(), num_streams=4, num_steps=100)
    assert cold.slowdown(0.95) == pytest.approx(warm.slowdown(0.95), rel=0.1)
    assert sum(cold.chunks) == pytest.approx(sum(warm.chunks), rel=0.1)


def test_a_prompt_goes_on_in_all_steps_but_the_probes() -> None:
    seen = serve(NEOVERSE, BUSY, make_controller(), num_streams=4, num_steps=NUM_STEPS)
    pauses = [step for step, chunk in enumerate(seen.chunks) if not chunk]
    assert len(pauses) < NUM_STEPS / 5
    assert all(later - earlier > 4 for earlier, later in pairwise(pauses))
