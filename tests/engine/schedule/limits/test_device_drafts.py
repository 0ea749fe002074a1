"""Drafts on a GPU are made where they pay for the device's wait, and cost next to nothing where they do not."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axon.domain.sampling import Sampling
from axon.engine.batch import Batch, Draw, Span
from axon.engine.drafts import Drafted, DraftRound
from axon.engine.schedule.limits.controller import ExpectedDrafts, Outlook, StepLimits
from axon.engine.schedule.limits.device_drafts import MOST_STREAMS, DeviceDrafts
from axon.engine.schedule.limits.draft_choice import Candidate, DraftCosts, choose
from tests.engine.schedule.heads_on_machines import Head, Load, Stand
from tests.engine.schedule.machines import H200, Day
from tests.long import examples

STEP_S, ROW_S, WAIT_S, ROUND_S = 0.004, 0.00002, 0.0003, 0.0006
NOTHING = ExpectedDrafts()
_DRAW = Draw(sampling=Sampling(max_tokens=9), seed=0, choice=0, position=0)


@dataclass
class Ahead:
    """A forecast of streams whose lookups promise something, and whose draft model has some rate."""

    streams: int
    lookups: ExpectedDrafts = NOTHING
    rate: float = 0.0
    has_prompts: bool = False

    def outlook(self) -> Outlook:
        return Outlook(self.streams, 100 * self.streams)

    def expected_lookups(self, price: float) -> ExpectedDrafts:
        return self.lookups

    def candidates(self) -> list[Candidate]:
        return [Candidate(rate=self.rate, num_unseen=1, most=8, num_left=100)] * self.streams

    def would_ask(self, costs: DraftCosts) -> bool:
        return bool(choose(self.candidates(), costs))


def make_batch(streams: int, drafts: int = 0) -> Batch:
    spans = [
        Span(id=str(n), first=99, token_ids=(0,) * (1 + drafts), block_ids=(), draw=_DRAW, drafts=(_DRAW,) * drafts)
        for n in range(streams)
    ]
    return Batch(tuple(spans))


def run(
    drafts: DeviceDrafts, ahead: Ahead, *, steps: int, accepted: float, slowdown: float = 1.0, period: int = 1
) -> tuple[float, float, int]:
    """Runs so many steps on a machine; returns its seconds, tokens, and the steps with drafts.

    ``accepted``: share of the drafts that are right. ``slowdown``: how many times as long a step with drafts takes.
    ``period``: of so many steps, one has drafts in sight.
    """
    seconds = tokens = 0.0
    num_drafting, carried = 0, 0.0
    with_lookups = ahead
    for number in range(steps):
        ahead = with_lookups if number % period == 0 else Ahead(with_lookups.streams)
        limits = drafts.limits(ahead, 2048)
        count, rounds, by_id, wait_s = 0, tuple[DraftRound, ...](), dict[str, list[int]](), 0.0
        if limits.has_drafts:
            wait_s, num_drafting = WAIT_S, num_drafting + 1
            if ahead.lookups.num_drafts:
                count = ahead.lookups.num_drafts // ahead.streams
            elif limits.draft_costs and (choices := choose(ahead.candidates(), limits.draft_costs)):
                count = choices[0].num_drafts
                rounds = (DraftRound(num_tokens=ahead.streams, num_attended=100, seconds=ROUND_S),) * count
                by_id = {str(n): [0] * count for n in range(ahead.streams)}
        batch = make_batch(ahead.streams, count)
        compute_s = (STEP_S + ROW_S * batch.num_tokens) * (slowdown if count else 1.0) + wait_s
        carried += count * ahead.streams * accepted
        num_accepted, carried = int(carried), carried % 1
        drafted = Drafted(
            by_id=by_id,
            rounds=rounds,
            num_accepted=num_accepted if rounds else 0,
            num_looked_up=0 if rounds else num_accepted,
            wait_s=wait_s,
        )
        drafts.observe(batch, compute_s=compute_s, drafted=drafted)
        seconds += compute_s + drafted.seconds
        tokens += ahead.streams + num_accepted
    return seconds, tokens, num_drafting


def gain(
    ahead: Ahead,
    *,
    accepted: float,
    draft_tokens: int = 0,
    steps: int = 3000,
    slowdown: float = 1.0,
    period: int = 1,
) -> tuple[float, int]:
    """Tokens a second against those without drafts, and the steps with drafts, once it has had time to learn."""
    drafts = DeviceDrafts(draft_tokens=draft_tokens)
    run(drafts, Ahead(ahead.streams), steps=20, accepted=0.0)
    seconds, tokens, num_drafting = run(drafts, ahead, steps=steps, accepted=accepted, slowdown=slowdown, period=period)
    return tokens / seconds * (STEP_S + ROW_S * ahead.streams) / ahead.streams, num_drafting


def test_without_drafts_in_sight_steps_are_planned_ahead() -> None:
    drafts = DeviceDrafts()
    assert drafts.limits(Ahead(1, ExpectedDrafts(4.0, 4)), 64) == StepLimits(max_prefill_tokens=64), (
        "nothing is measured"
    )
    run(drafts, Ahead(1), steps=20, accepted=0.0)
    assert not drafts.limits(Ahead(1), 64).has_drafts
    assert drafts.limits(Ahead(1, ExpectedDrafts(4.0, 4)), 64).has_drafts
    assert not drafts.limits(Ahead(1, ExpectedDrafts(4.0, 4), has_prompts=True), 64).has_drafts
    assert not drafts.limits(Ahead(MOST_STREAMS + 1, ExpectedDrafts(200.0, 200)), 64).has_drafts


@pytest.mark.parametrize("streams", [1, 4, 16])
def test_lookups_that_are_right_are_made_in_every_step(streams: int) -> None:
    ratio, num_drafting = gain(Ahead(streams, ExpectedDrafts(3.2 * streams, 4 * streams)), accepted=0.8)
    assert ratio > 2
    assert num_drafting == 3000


@settings(max_examples=examples(30))
@given(promised=st.floats(0.0, 1.0), accepted=st.floats(0.0, 1.0), streams=st.integers(1, 32), most=st.integers(1, 8))
def test_lookups_never_cost_more_than_a_fiftieth(promised: float, accepted: float, streams: int, most: int) -> None:
    """Whatever they promise and bring."""
    ratio, _ = gain(
        Ahead(streams, ExpectedDrafts(promised * most * streams, most * streams)), accepted=accepted, steps=1500
    )
    assert ratio > 0.98


@settings(max_examples=examples(15))
@given(rate=st.floats(0.0, 1.0), accepted=st.floats(0.0, 1.0), streams=st.integers(1, 8))
def test_a_draft_model_never_costs_more_than_a_fiftieth(rate: float, accepted: float, streams: int) -> None:
    ratio, _ = gain(Ahead(streams, rate=rate), accepted=accepted, draft_tokens=4, steps=6000)
    assert ratio > 0.98


def test_a_draft_model_that_is_right_is_asked_in_every_step_and_pays() -> None:
    ratio, num_drafting = gain(Ahead(1, rate=0.9), accepted=0.8, draft_tokens=4)
    assert ratio > 1.5
    assert num_drafting > 2900


@settings(max_examples=examples(30))
@given(slowdown=st.floats(1.0, 6.0), period=st.integers(1, 40), accepted=st.floats(0.0, 1.0), streams=st.integers(1, 8))
def test_slow_steps_are_learned_as_the_cost_of_drafts_also_with_others_between(
    slowdown: float, period: int, accepted: float, streams: int
) -> None:
    ahead = Ahead(streams, ExpectedDrafts(3.2 * streams, 4 * streams))
    ratio, _ = gain(ahead, accepted=accepted, steps=3000, slowdown=slowdown, period=period)
    assert ratio > 0.97


def test_a_slow_step_or_three_are_not_taken_for_the_cost_of_drafts() -> None:
    drafts, ahead = DeviceDrafts(), Ahead(1, ExpectedDrafts(3.2, 4))
    run(drafts, Ahead(1), steps=20, accepted=0.0)
    for _ in range(3):  # graphs are recorded
        drafts.observe(make_batch(1, 4), compute_s=0.1, drafted=Drafted(wait_s=WAIT_S, num_looked_up=3))
    assert drafts.limits(ahead, 64).has_drafts


MODEL_S, MODEL_ROW_S, DEVICE_WAIT_S = 0.0005, 3e-6, 0.0004
"""A draft model of two layers beside 8B on an H200, and how long the device waits for a plan there."""


@pytest.mark.parametrize(
    ("streams", "rate", "least"), [(4, 0.75, 1.3), (4, 0.97, 2.0), (16, 0.75, 1.15), (16, 0.97, 1.5)]
)
def test_a_draft_model_that_is_right_pays_beside_many_streams(streams: int, rate: float, least: float) -> None:
    """One stream with drafts does not pay there, all of them together do."""
    stand = Stand(H200, Day(jitter=0.01), Head(round_s=MODEL_S, row_s=MODEL_ROW_S, rate=rate), wait_s=DEVICE_WAIT_S)
    stand.run(Load(streams=streams, steps=300, prompt=128))
    assert stand.run(Load(streams=streams, steps=600, prompt=128)).speed > least


@pytest.mark.parametrize("streams", [1, 4, 16, 32])
def test_a_draft_model_that_is_never_right_costs_a_fiftieth_at_most_beside_any_streams(streams: int) -> None:
    stand = Stand(H200, Day(jitter=0.01), Head(round_s=MODEL_S, row_s=MODEL_ROW_S, rate=0.0), wait_s=DEVICE_WAIT_S)
    stand.run(Load(streams=streams, steps=300, prompt=128))
    assert stand.run(Load(streams=streams, steps=600, prompt=128)).speed > 0.98
