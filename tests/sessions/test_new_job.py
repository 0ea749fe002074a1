"""A job has everything that its tenant's terms say, decided once."""

import pytest

from axon.domain.job import Job
from axon.domain.lane import tier_of
from axon.domain.reply import ChatReply
from axon.domain.sampling import Sampling
from axon.domain.tenant import Terms, Tier
from axon.errors import ContextTooLong
from axon.sessions.new_job import make_job
from tests.contracts.builders import make_presence

TERMS = Terms(weight=3.0, kv_share=0.5, reserved=0.25, place=40, highest_tier=Tier.DEFAULT)


def made(grammar: str = "", **changes: object) -> Job:
    return make_job(
        job_id="turn_1",
        tenant="acme",
        served=make_presence("w1").deployment,
        num_lanes=32,
        prompt_ids=[1, 2, 3],
        sampling=Sampling(max_tokens=5, grammar=grammar),
        seed=1,
        now=100.0,
        timeout_s=10.0,
        retain=False,
        trace="",
        reply=ChatReply(),
        **changes,  # type: ignore[arg-type]
    )


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
    job = made(more_prompts=[[4] * 2043], choices=2)
    assert (job.prompt_ids, job.more_prompts, job.sampling.max_tokens) == ((1, 2, 3), ((4,) * 2043,), 5)
    with pytest.raises(ContextTooLong):
        made(more_prompts=[[4], [4] * 2044], choices=3)


@pytest.mark.parametrize(
    ("grammar", "call_format", "needs"),
    [("", "", ()), ("{}", "", ("grammar",)), ("", "hermes", ("tools",)), ("{}", "hermes", ("grammar", "tools"))],
)
def test_a_job_names_the_features_that_an_older_worker_does_not_have(
    grammar: str, call_format: str, needs: tuple[str, ...]
) -> None:
    assert made(grammar, call_format=call_format).needs == needs
