"""A job has everything that its tenant's terms say, decided once."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from axon.domain.content.tool import Tool
from axon.domain.fairness.lane import tier_of
from axon.domain.job import Job
from axon.domain.model.classes import Activation, Classes
from axon.domain.model.embeds import Embeds
from axon.domain.model.served_version import ServedVersion
from axon.domain.reply import ChatReply, EmbeddingReply, Reply
from axon.domain.sampling import Sampling
from axon.domain.tenants.tenant import Terms, Tier
from axon.errors import ContextTooLong
from axon.sessions.new_job import Destination, Work, make_job
from axon.text.tools.formats import CallFormat
from axon.text.tools.plan import NO_CALLS, CallPlan
from axon.text.tools.prompt import PLAIN
from tests.contracts.builders import make_presence

TERMS = Terms(weight=3.0, kv_share=0.5, reserved=0.25, place=40, highest_tier=Tier.DEFAULT)


HERMES = CallPlan(tools=(Tool(name="now"),), dialect=replace(PLAIN, format=CallFormat.HERMES))
"""The plan of a request with a tool."""


def made(
    grammar: str = "",
    prompt_top: int | None = None,
    *,
    prompts: Sequence[Sequence[int]] = ((1, 2, 3),),
    calls: CallPlan = NO_CALLS,
    reply: Reply | None = None,
    second_starts: Sequence[int] = (),
    served: ServedVersion | None = None,
    pool: str = "",
    terms: Terms | None = None,
    tier: Tier = Tier.DEFAULT,
) -> Job:
    sampling = Sampling(max_tokens=5, grammar=grammar, prompt_logprobs=True, prompt_top=prompt_top)
    work = Work(
        prompts=prompts,
        sampling=sampling,
        seed=1,
        reply=reply or ChatReply(),
        calls=calls,
        second_starts=second_starts,
    )
    to = Destination(served=served or make_presence("w1").deployment, num_lanes=32, pool=pool)
    return make_job("turn_1", "acme", work, to, now=100.0, timeout_s=10.0, terms=terms or Terms(), tier=tier)


def test_a_job_carries_its_tenants_shares() -> None:
    job = made(terms=TERMS)
    assert (job.weight, job.kv_share, job.reserved, job.priority) == (3.0, 0.5, 0.25, 0)
    assert job.lane.endswith("/08")


@pytest.mark.parametrize(("asked", "given"), [(Tier.PRIORITY, Tier.DEFAULT), (Tier.FLEX, Tier.FLEX)])
def test_a_tier_is_given_up_to_the_tenants_highest(asked: Tier, given: Tier) -> None:
    job = made(terms=TERMS, tier=asked)
    assert (Tier.of(job.priority), tier_of(job.lane)) == (given, given)


def test_a_pools_jobs_wait_in_its_own_lanes() -> None:
    assert made(pool="gold").lane != made().lane
    assert "#gold/" in made(pool="gold").lane


def test_the_longest_of_several_prompts_must_leave_room_for_its_answer() -> None:
    job = made(prompts=[[1, 2, 3], [4] * 2043])
    assert (job.prompt_ids, job.more_prompts, job.sampling.max_tokens) == ((1, 2, 3), ((4,) * 2043,), 5)
    with pytest.raises(ContextTooLong):
        made(prompts=[[1, 2, 3], [4], [4] * 2044])


@pytest.mark.parametrize(
    ("grammar", "calls", "needs"),
    [
        ("", NO_CALLS, ()),
        ("{}", NO_CALLS, ("grammar",)),
        ("", HERMES, ("tools",)),
        ("{}", HERMES, ("grammar", "tools")),
    ],
)
def test_a_job_names_the_features_that_an_older_worker_does_not_have(
    grammar: str, calls: CallPlan, needs: tuple[str, ...]
) -> None:
    assert made(grammar, calls=calls).needs == needs


@pytest.mark.parametrize(("prompt_top", "needs"), [(None, ()), (0, ("prompt_ranks",)), (5, ("prompt_ranks",))])
def test_an_older_worker_does_not_know_the_ranks_of_prompt_tokens(
    prompt_top: int | None, needs: tuple[str, ...]
) -> None:
    assert made(prompt_top=prompt_top).needs == needs


@pytest.mark.parametrize(
    ("classes", "needs"),
    [
        (None, ("embeddings",)),
        (Classes(labels=("a",), activation=Activation.SIGMOID), ("embeddings", "classes")),
    ],
)
def test_a_job_for_classes_is_left_alone_by_a_release_that_knows_none(
    classes: Classes | None, needs: tuple[str, ...]
) -> None:
    served = replace(make_presence("w1").deployment, embeds=Embeds(dimensions=1, classes=classes))
    job = made(served=served, reply=EmbeddingReply(), prompts=[[1, 2, 3], [4, 5]], second_starts=[1, 0])
    assert job.needs == needs
    assert [job.second_start_of(choice) for choice in range(2)] == [1, 0]
    assert made(reply=EmbeddingReply(), second_starts=[0]).second_starts == ()
