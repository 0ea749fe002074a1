"""Prompts beside a GPU's streams come in chunks that leave the streams their time."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.engine.schedule.limits.feedback_controller import FeedbackController
from tests.engine.schedule.limits.test_learned_controller import make_batch, observe


def settle(controller: FeedbackController, *, own_s: float, token_s: float, steps: int = 30) -> list[int]:
    """The chunks of a long prompt on a machine that takes so long for a step with a prompt, and for its tokens."""
    chunks = []
    for _ in range(steps):
        chunks.append(controller.chunk)
        observe(controller, make_batch(streams=4, prompt=chunks[-1]), own_s + token_s * chunks[-1])
    return chunks


@pytest.mark.parametrize(
    ("own_s", "token_s", "chunk"),
    [(0.01, 0.00001, 2048), (0.01, 0.00003, 1216), (0.02, 0.0001, 256), (0.2, 0.00001, 256)],
)
def test_the_chunk_is_about_the_largest_that_leaves_the_streams_their_time(
    own_s: float, token_s: float, chunk: int
) -> None:
    assert (
        settle(FeedbackController(max_prefill_tokens=2048, slo_s=0.05), own_s=own_s, token_s=token_s)[6:]
        == [chunk] * 24
    )


@given(own_s=st.floats(0.0, 0.04), token_s=st.floats(1e-6, 1e-3), first=st.integers(1, 12))
def test_it_settles_within_the_time_and_leaves_little_of_it(own_s: float, token_s: float, first: int) -> None:
    controller = FeedbackController(max_prefill_tokens=16_384, slo_s=0.05)
    settle(controller, own_s=1.0, token_s=0.0, steps=first)
    chunk, *others = settle(controller, own_s=own_s, token_s=token_s, steps=60)[40:]
    assert others == [chunk] * 19
    assert chunk == 256 or own_s + token_s * chunk <= 0.05
    assert chunk == 16_384 or own_s + token_s * chunk >= 0.75 * 0.05  # a whole tile more would be too long, or nearly


def test_a_few_slow_steps_do_not_keep_it_small() -> None:
    controller = FeedbackController(max_prefill_tokens=2048, slo_s=0.05)
    settle(controller, own_s=5.0, token_s=0.0, steps=4)  # kernels are compiled
    assert settle(controller, own_s=0.015, token_s=0.000001, steps=5) == [256, 512, 1024, 2048, 2048]


def test_the_small_end_of_a_prompt_says_nothing_that_makes_chunks_small() -> None:
    controller = FeedbackController(max_prefill_tokens=2048, slo_s=0.05)
    for _ in range(50):
        observe(controller, make_batch(streams=4, prompt=3), 0.02)
    assert controller.chunk == 2048


def test_steps_of_streams_alone_or_of_prompts_alone_say_nothing() -> None:
    controller = FeedbackController(max_prefill_tokens=2048, slo_s=0.05)
    observe(controller, make_batch(streams=4), 1.0)
    observe(controller, make_batch(streams=0, prompt=9), 1.0)
    assert controller.chunk == 2048


def test_it_begins_with_what_a_large_model_can_take_and_grows_where_steps_are_quick() -> None:
    controller = FeedbackController(max_prefill_tokens=8192, slo_s=0.05)
    assert settle(controller, own_s=0.005, token_s=0.0000025, steps=4) == [2048, 4096, 8192, 8192]


def test_without_a_bound_on_the_streams_time_it_begins_with_the_most() -> None:
    assert FeedbackController(max_prefill_tokens=8192, slo_s=inf).chunk == 8192
