"""A prompt's chunks fit into the slowdown that the streams beside it are to bear."""

from dataclasses import dataclass, replace

import pytest

from axon.engine.batch import Batch, Draw, Span
from axon.engine.schedule.limits.controller import NO_DRAFTS, ExpectedDrafts, Outlook, StepController
from axon.engine.schedule.limits.draft_choice import DraftCosts
from axon.engine.schedule.limits.learned_controller import LearnedController
from tests.engine.builders import make_add

SAMPLING = make_add().sampling
PAST = 200
"""Of every stream."""


def make_batch(*, streams: int, prompt: int = 0, at: int = 0) -> Batch:
    draw = Draw(sampling=SAMPLING, seed=0, choice=0, position=1)
    spans = [Span(id=str(n), first=PAST, token_ids=(1,), block_ids=(n,), draw=draw) for n in range(streams)]
    if prompt:
        spans.append(Span(id="prompt", first=at, token_ids=(1,) * prompt, block_ids=(99,)))
    return Batch(tuple(spans))


def observe(controller: StepController, batch: Batch, took_s: float) -> None:
    controller.observe(batch, step_s=took_s, compute_s=took_s)


def step_s(*, streams: int, prompt: int, at: int = 0) -> float:
    """Of a machine on which a prompt's token takes twice as long when 1,000 are before it."""
    return (0.005 + 0.002 * streams if streams else 0.0) + 0.001 * prompt * (1 + (at + prompt / 2) / 1000)


def outlook(streams: int, at: int = 0) -> Outlook:
    return Outlook(streams, PAST * streams, at)


@dataclass
class Ahead:
    """A forecast of streams and a prompt."""

    streams: int
    at: int = 0
    has_prompts: bool = True

    def outlook(self) -> Outlook:
        return outlook(self.streams, self.at)

    def expected_lookups(self, price: float) -> ExpectedDrafts:
        return ExpectedDrafts()

    def would_ask(self, costs: DraftCosts) -> bool:
        return False


def prefill(controller: LearnedController, *, streams: int, num_tokens: int) -> list[float]:
    """A whole prompt beside streams; how much longer each step took than the streams alone."""
    at, slowdowns = 0, []
    while at < num_tokens:
        chunk = min(controller.limits(Ahead(streams, at)).max_prefill_tokens, num_tokens - at)
        took_s = step_s(streams=streams, prompt=chunk, at=at)
        slowdowns.append(took_s / step_s(streams=streams, prompt=0))
        observe(controller, make_batch(streams=streams, prompt=chunk, at=at), took_s)
        at += chunk
    return slowdowns


@pytest.mark.parametrize(("token_s", "expected"), [(0.001, 19), (0.0005, 38), (0.1, 1), (0.00001, 100)])
def test_the_chunk_settles_where_a_step_takes_as_much_longer_as_it_may(token_s: float, expected: int) -> None:
    controller = LearnedController(max_prefill_tokens=100, max_slowdown=2.0)
    for _ in range(5):
        observe(controller, make_batch(streams=4), 0.02)
    for _ in range(100):
        num_tokens = controller.num_prefill_tokens(outlook(4))
        observe(controller, make_batch(streams=4, prompt=num_tokens), 0.02 + num_tokens * token_s)
    assert abs(controller.num_prefill_tokens(outlook(4)) - expected) <= 1


def test_before_it_has_seen_a_prompt_beside_streams_it_is_careful() -> None:
    assert LearnedController(max_prefill_tokens=100, max_slowdown=2.0).num_prefill_tokens(outlook(1)) == 8
    assert LearnedController(max_prefill_tokens=3, max_slowdown=2.0).num_prefill_tokens(outlook(1)) == 3


def test_a_long_prompt_whose_tokens_take_ever_longer_slows_the_streams_no_more_than_it_may() -> None:
    controller = LearnedController(max_prefill_tokens=100, max_slowdown=2.0)
    for _ in range(30):
        observe(controller, make_batch(streams=4), step_s(streams=4, prompt=0))
    slowdowns = prefill(controller, streams=4, num_tokens=4000)
    assert max(slowdowns[10:]) < 2.2
    assert sum(slowdowns) / len(slowdowns) > 1.7  # and it goes on as quickly as it may


def test_prompts_that_come_all_at_once_to_a_cold_engine_do_not_keep_it_careful() -> None:
    """No step is ever without prompt tokens until the last of them runs."""
    controller = LearnedController(max_prefill_tokens=100, max_slowdown=2.0)
    observe(controller, make_batch(streams=0, prompt=150), step_s(streams=0, prompt=150))
    for streams in range(1, 17):
        prefill(controller, streams=streams, num_tokens=150)
    assert 26 <= controller.num_prefill_tokens(outlook(16)) <= 40  # 37 fit


def test_a_step_takes_no_longer_than_may_pass_between_two_tokens() -> None:
    controller = LearnedController(max_prefill_tokens=100, max_slowdown=10.0, slo_s=0.030)
    for _ in range(30):
        observe(controller, make_batch(streams=4), step_s(streams=4, prompt=0))
    slowdowns = prefill(controller, streams=4, num_tokens=2000)
    steps_s = [slowdown * step_s(streams=4, prompt=0) for slowdown in slowdowns[20:]]
    assert max(steps_s) < 0.033
    assert sum(steps_s) / len(steps_s) > 0.026, "and it goes on as quickly as it may"


def test_a_prompt_goes_on_beside_streams_that_take_longer_than_they_may_by_themselves() -> None:
    controller = LearnedController(max_prefill_tokens=100, max_slowdown=10.0, slo_s=0.010)
    for _ in range(40):
        observe(controller, make_batch(streams=20, prompt=4), step_s(streams=20, prompt=4))
        observe(controller, make_batch(streams=20), step_s(streams=20, prompt=0))
    assert 3 <= controller.num_prefill_tokens(outlook(20)) <= 5, "a tenth of the 45 ms that the streams take"


def test_many_streams_let_in_more_than_one_does() -> None:
    controller = LearnedController(max_prefill_tokens=100, max_slowdown=2.0)
    for _ in range(40):
        for streams in (1, 16):
            observe(controller, make_batch(streams=streams, prompt=10), step_s(streams=streams, prompt=10))
            observe(controller, make_batch(streams=streams), step_s(streams=streams, prompt=0))
    assert abs(controller.num_prefill_tokens(outlook(1)) - 7) <= 1
    assert abs(controller.num_prefill_tokens(outlook(16)) - 37) <= 3


def test_prompt_tokens_without_streams_teach_nothing_about_those_beside_streams() -> None:
    """In large steps a token costs less than it adds to a small one, so that the chunk would be far too large."""
    controller = LearnedController(max_prefill_tokens=100, max_slowdown=2.0)
    observe(controller, make_batch(streams=4), 0.02)
    before = controller.num_prefill_tokens(outlook(4))
    for _ in range(20):
        observe(controller, make_batch(streams=0, prompt=100), 0.01)
    assert controller.num_prefill_tokens(outlook(4)) == before


def test_a_step_without_the_prompt_is_asked_for_now_and_then() -> None:
    controller = LearnedController(max_prefill_tokens=100, max_slowdown=2.0)
    chunks = []
    for _ in range(100):
        chunks.append(controller.limits(Ahead(4)).max_prefill_tokens)
        observe(controller, make_batch(streams=4, prompt=chunks[-1]), step_s(streams=4, prompt=chunks[-1]))
    assert chunks[:2] == [0, 8], "the first of all shows what the streams take by themselves"
    assert 5 <= chunks[1:].count(0) <= 10


def test_a_step_without_the_prompt_is_not_asked_for_twice_in_a_row() -> None:
    controller = LearnedController(max_prefill_tokens=100, max_slowdown=2.0)
    assert controller.limits(Ahead(4)).max_prefill_tokens == 0
    assert controller.limits(Ahead(4)).max_prefill_tokens == 8, "the streams of the first were gone by then"


def test_a_step_that_took_far_too_long_is_checked_by_one_without_the_prompt() -> None:
    controller = LearnedController(max_prefill_tokens=100, max_slowdown=2.0)
    for _ in range(20):
        observe(controller, make_batch(streams=4, prompt=10), step_s(streams=4, prompt=10))
        observe(controller, make_batch(streams=4), step_s(streams=4, prompt=0))
    for _ in range(3):
        observe(controller, make_batch(streams=4, prompt=10), step_s(streams=4, prompt=10))
    before = controller.limits(Ahead(4)).max_prefill_tokens
    observe(controller, make_batch(streams=4, prompt=10), 1.0)
    assert controller.limits(Ahead(4)).max_prefill_tokens == 0
    observe(controller, make_batch(streams=4), step_s(streams=4, prompt=0))
    assert controller.limits(Ahead(4)).max_prefill_tokens == before, "it was delayed, and nothing has changed"


def test_a_step_without_the_prompt_that_says_otherwise_than_expected_is_soon_followed_by_another() -> None:
    """The machine has become twice as fast, and one measurement moves the estimate by half of that."""
    controller = LearnedController(max_prefill_tokens=100, max_slowdown=2.0)
    for _ in range(20):
        observe(controller, make_batch(streams=1), 0.02)
    apart, probes = 0, []
    for _ in range(60):
        chunk = controller.limits(Ahead(1)).max_prefill_tokens
        observe(controller, make_batch(streams=1, prompt=chunk), 0.01 + 0.001 * chunk)
        if chunk:
            apart += 1
        else:
            probes.append(apart)
            apart = 0
    assert probes[1] == 4
    assert probes[-1] == 16, "all is as expected again"
    assert abs(controller.num_prefill_tokens(outlook(1)) - 9) <= 1


def test_without_prompts_no_step_is_asked_for_and_drafts_have_a_price() -> None:
    controller = LearnedController(max_prefill_tokens=100, max_slowdown=2.0, drafts=True)
    limits = controller.limits(Ahead(1, has_prompts=False))
    assert (limits.max_prefill_tokens, limits.draft_price) == (100, 0.3)
    for streams in (1, 2, 4, 8) * 50:
        observe(controller, make_batch(streams=streams), step_s(streams=streams, prompt=0))
    assert controller.limits(Ahead(1, has_prompts=False)).draft_price == pytest.approx(2 / 7, abs=0.05)
    assert controller.limits(Ahead(0, has_prompts=False)).draft_price == NO_DRAFTS


def test_a_chunk_is_as_large_a_share_of_a_step_with_drafts_as_of_one_without() -> None:
    def chunk(num_drafts: int) -> int:
        controller = LearnedController(max_prefill_tokens=100, max_slowdown=2.0, drafts=True)
        for number in range(60):
            rows = 2 if number % 2 else 2 + num_drafts
            observe(controller, with_drafts(make_batch(streams=2), rows - 2), step_s(streams=rows, prompt=0))
        for _ in range(60):
            spans = with_drafts(make_batch(streams=2, prompt=8), num_drafts)
            observe(controller, spans, step_s(streams=2 + num_drafts, prompt=8))
        return controller.num_prefill_tokens(outlook(2))

    alone_s, drafts_s = step_s(streams=2, prompt=0), 4 * 0.002
    assert chunk(4) == pytest.approx(chunk(0) * (1 + drafts_s / alone_s), rel=0.1)
    assert chunk(60) <= 2 * chunk(0) + 1, "a stream without drafts waits for the step too"


def with_drafts(batch: Batch, num_drafts: int) -> Batch:
    """The batch with drafts for its first stream."""
    first, *others = batch.spans
    assert first.draw is not None
    drafted = replace(first, token_ids=(1,) * (1 + num_drafts), drafts=(first.draw,) * num_drafts)
    return Batch((drafted, *others))


def test_drafts_may_be_bound_to_few_streams() -> None:
    controller = LearnedController(
        max_prefill_tokens=100, max_slowdown=2.0, drafts=True, draft_tokens=4, draft_streams=2
    )
    for streams in (1, 2, 4, 8) * 50:
        observe(controller, make_batch(streams=streams), step_s(streams=streams, prompt=0))
    costs = [controller.limits(Ahead(streams, has_prompts=False)).draft_costs for streams in (1, 2, 3)]
    assert [each is not None for each in costs] == [True, True, False]


def test_a_step_that_computes_nothing_teaches_nothing() -> None:
    controller = LearnedController(max_prefill_tokens=100, max_slowdown=2.0)
    observe(controller, make_batch(streams=0), 5.0)
    assert controller.num_prefill_tokens(outlook(1)) == 8


def test_one_step_that_took_far_too_long_changes_little() -> None:
    controller = LearnedController(max_prefill_tokens=100, max_slowdown=2.0)
    for _ in range(40):
        observe(controller, make_batch(streams=4, prompt=13), step_s(streams=4, prompt=13))
        observe(controller, make_batch(streams=4), step_s(streams=4, prompt=0))
    before = controller.num_prefill_tokens(outlook(4))
    observe(controller, make_batch(streams=4), 30.0)
    assert controller.num_prefill_tokens(outlook(4)) <= 2 * before


def test_a_step_that_was_quick_by_chance_does_not_let_in_more_than_the_most() -> None:
    controller = LearnedController(max_prefill_tokens=100, max_slowdown=2.0)
    observe(controller, make_batch(streams=1), 0.02)
    observe(controller, make_batch(streams=1, prompt=8), 0.001)
    assert controller.num_prefill_tokens(outlook(1)) <= 100
