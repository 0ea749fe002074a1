"""Builds the job of a new turn: every parameter is decided once, here. Draws a random seed where none is given."""

from collections.abc import Sequence
from dataclasses import replace

from axon.domain.ids import new_seed
from axon.domain.job import Job
from axon.domain.job_body import GRAMMAR, TOOLS
from axon.domain.lane import lane_of
from axon.domain.moved import Moved
from axon.domain.registry.price import Price
from axon.domain.reply import Reply
from axon.domain.sampling import Sampling
from axon.domain.served_version import ServedVersion
from axon.domain.tenant import Terms, Tier
from axon.errors import AnswerTooLong

_NO_TERMS = Terms()


def make_job(
    *,
    job_id: str,
    tenant: str,
    served: ServedVersion,
    num_lanes: int,
    prompt_ids: Sequence[int],
    sampling: Sampling,
    seed: int | None,
    now: float,
    timeout_s: float,
    retain: bool,
    trace: str,
    reply: Reply,
    more_prompts: Sequence[Sequence[int]] = (),
    choices: int = 1,
    reasoning: str = "",
    call_format: str = "",
    max_calls: int = 0,
    text_parameters: tuple[str, ...] = (),
    formed: bool = False,
    affinity: str = "",
    terms: Terms = _NO_TERMS,
    tier: Tier = Tier.DEFAULT,
    pool: str = "",
    reader_grace_s: float | None = None,
    letter: str = "",
    pin: str = "",
    generation: int = 0,
    moved: Moved | None = None,
    price: Price | None = None,
    fallback: str = "",
    queued: int = 0,
) -> Job:
    """The job of an admitted turn, still without its ticket. ``sampling.max_tokens`` of 0 means as many as fit.

    ``tier`` is the requested one; the terms may lower it. ``pool`` is the pool of workers that is to run the job.
    ``price`` is the one that holds for the version now. ``queued`` is its position in the line, if it waits for a first
    worker.
    """
    tier = terms.tier(tier)
    return Job(
        id=job_id,
        tenant=tenant,
        deployment=served.name,
        version=served.version,
        lane=lane_of(tenant, served.name, num_lanes, place=terms.place, tier=tier, pool=pool, letter=letter),
        prompt_ids=tuple(prompt_ids),
        more_prompts=tuple(map(tuple, more_prompts)),
        choices=choices,
        reasoning=reasoning,
        call_format=call_format,
        max_calls=max_calls,
        text_parameters=text_parameters,
        formed=formed,
        needs=_needs(sampling, call_format),
        affinity=affinity,
        sampling=_within_context(sampling, max(map(len, (prompt_ids, *more_prompts))), served.max_model_len),
        seed=new_seed() if seed is None else seed,
        deadline=now + timeout_s,
        created=now,
        priority=tier.priority,
        weight=terms.weight,
        kv_share=terms.kv_share,
        reserved=terms.reserved,
        reader_grace_s=reader_grace_s,
        retain=retain,
        trace=trace,
        pin=pin,
        generation=generation,
        moved=moved,
        price=price.id if price else "",
        rates=price.rates if price else None,
        fallback=fallback,
        queued=queued,
        reply=reply,
    )


def _needs(sampling: Sampling, call_format: str) -> tuple[str, ...]:
    """The features that a worker must support, so that an older release does not answer half of what was asked."""
    return (GRAMMAR,) * bool(sampling.grammar) + (TOOLS,) * bool(call_format)


def _within_context(sampling: Sampling, num_prompt: int, max_model_len: int) -> Sampling:
    room = max_model_len - num_prompt
    if sampling.max_tokens > room:
        raise AnswerTooLong(max_model_len=max_model_len, num_prompt=num_prompt, num_answer=sampling.max_tokens)
    return sampling if sampling.max_tokens else replace(sampling, max_tokens=room)
