"""Builds the job of a new turn: every parameter is decided once, here. Draws a random seed where none is given."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from axon.domain.fairness.lane import lane_of
from axon.domain.ids import new_seed
from axon.domain.job import Job
from axon.domain.job_body import ADAPTERS, CLASSES, EMBEDDINGS, GRAMMAR, PROMPT_RANKS, TOOLS
from axon.domain.model.adapter import JobAdapter
from axon.domain.model.served_version import ServedVersion
from axon.domain.moved import Moved
from axon.domain.registry.price import Price
from axon.domain.reply import EmbeddingReply, Reply
from axon.domain.sampling import Sampling
from axon.domain.tenants.tenant import Terms, Tier
from axon.errors import AnswerTooLong
from axon.text.tools.plan import NO_CALLS, CallPlan

_NO_TERMS = Terms()


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is to be computed, and in which form it is answered."""

    prompts: Sequence[Sequence[int]]
    """Token ids, one list or several."""
    sampling: Sampling
    """``max_tokens`` of 0 means as many as fit."""
    seed: int | None
    """None for a random one."""
    reply: Reply
    num_choices: int = 1
    """Number of answers to each prompt."""
    second_starts: Sequence[int] = ()
    """For prompts that are pairs of texts: the index at which each one's second text begins."""
    reasoning: str = ""
    """The rule that separates reasoning from the answer."""
    calls: CallPlan = NO_CALLS
    """How the request's tools are called."""
    affinity: str = ""

    @property
    def embeds(self) -> bool:
        """Whether it asks for vectors, of which nothing is sampled and nothing kept."""
        return isinstance(self.reply, EmbeddingReply)


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """Where a job runs, and what its session's answer tells of that."""

    served: ServedVersion
    num_lanes: int
    letter: str = ""
    """The version's letter in the names of lanes."""
    pool: str = ""
    """The pool of workers that is to run it."""
    pin: str = ""
    """Key of the session's pin, and its generation."""
    generation: int = 0
    moved: Moved | None = None
    price: Price | None = None
    """The price that holds for the version now."""
    fallback: str = ""
    queued: int = 0
    """Position in the line, if it waits for a first worker."""
    adapter: JobAdapter | None = None
    """The LoRA adapter that it runs with."""

    def lane(self, tenant: str, terms: Terms, tier: Tier) -> str:
        return lane_of(
            tenant,
            self.served.name,
            self.num_lanes,
            place=terms.place,
            tier=tier,
            pool=self.pool,
            letter=self.letter,
        )


def make_job(
    job_id: str,
    tenant: str,
    work: Work,
    to: Destination,
    *,
    now: float,
    timeout_s: float,
    terms: Terms = _NO_TERMS,
    tier: Tier = Tier.DEFAULT,
    reader_grace_s: float | None = None,
    retain: bool = False,
    trace: str = "",
) -> Job:
    """The job of an admitted turn, still without its ticket. ``tier`` is the requested one; the terms may lower it."""
    tier = terms.tier(tier)
    prompt_ids, *more_prompts = work.prompts
    return Job(
        id=job_id,
        tenant=tenant,
        deployment=to.served.name,
        version=to.served.version,
        lane=to.lane(tenant, terms, tier),
        prompt_ids=tuple(prompt_ids),
        more_prompts=tuple(map(tuple, more_prompts)),
        second_starts=tuple(work.second_starts) if any(work.second_starts) else (),
        choices=work.num_choices * len(work.prompts),
        reasoning=work.reasoning,
        call_format=work.calls.call_format,
        max_calls=work.calls.max_calls,
        text_parameters=work.calls.text_parameters,
        formed=work.calls.formed,
        needs=_vector_needs(to.served) if work.embeds else _needs(work.sampling, work.calls.call_format, to.adapter),
        affinity=work.affinity,
        sampling=_fitted(work, to.served.max_model_len),
        seed=new_seed() if work.seed is None else work.seed,
        deadline=now + timeout_s,
        created=now,
        priority=tier.priority,
        weight=terms.weight,
        kv_share=terms.kv_share,
        reserved=terms.reserved,
        reader_grace_s=reader_grace_s,
        retain=retain,
        forget=work.embeds,
        trace=trace,
        pin=to.pin,
        generation=to.generation,
        moved=to.moved,
        price=to.price.id if to.price else "",
        rates=to.price.rates if to.price else None,
        fallback=to.fallback,
        queued=to.queued,
        adapter=to.adapter,
        reply=work.reply,
    )


def _needs(sampling: Sampling, call_format: str, adapter: JobAdapter | None) -> tuple[str, ...]:
    """The features that a worker must support, so that an older release does not answer half of what was asked."""
    ranks = sampling.prompt_top is not None
    asked = {GRAMMAR: sampling.grammar, TOOLS: call_format, PROMPT_RANKS: ranks, ADAPTERS: adapter}
    return tuple(feature for feature, is_asked in asked.items() if is_asked)


def _vector_needs(served: ServedVersion) -> tuple[str, ...]:
    """The features for vectors; an older release would pool the hidden states of a classifier."""
    is_classifier = served.embeds is not None and served.embeds.classes is not None
    return (EMBEDDINGS, CLASSES) if is_classifier else (EMBEDDINGS,)


def _fitted(work: Work, max_model_len: int) -> Sampling:
    """The sampling parameters with a bound that the context has room for; raises ``AnswerTooLong``."""
    sampling = work.sampling
    if work.embeds:
        return sampling
    num_prompt = max(map(len, work.prompts))
    room = max_model_len - num_prompt
    if sampling.max_tokens > room:
        raise AnswerTooLong(max_model_len=max_model_len, num_prompt=num_prompt, num_answer=sampling.max_tokens)
    return sampling if sampling.max_tokens else replace(sampling, max_tokens=room)
