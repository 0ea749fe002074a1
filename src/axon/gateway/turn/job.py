"""The job of an admitted turn: what the client asked for, within its tenant's terms. Knows no API."""

from collections.abc import Sequence

from starlette.requests import Request

from axon.domain.job import Job
from axon.domain.reply import Reply
from axon.domain.sampling import Sampling
from axon.gateway.turn.context import gateway_of
from axon.gateway.turn.entry import Entry
from axon.gateway.turn.target import Target
from axon.sessions.new_job import make_job
from axon.text.tools.plan import NO_CALLS, CallPlan


def job_of(
    request: Request,
    entry: Entry,
    target: Target,
    *,
    prompts: Sequence[Sequence[int]],
    sampling: Sampling,
    seed: int | None,
    reply: Reply,
    num_choices: int = 1,
    reasoning: str = "",
    calls: CallPlan = NO_CALLS,
    affinity: str = "",
) -> Job:
    """Returns the job of an entry: what the client asked for, within its tenant's terms.

    ``prompts`` are lists of token ids; ``num_choices`` is the number of answers to each of them. ``calls`` says how the
    request's tools are called.
    """
    gateway, ask = gateway_of(request), entry.ask
    prompt_ids, *more_prompts = prompts
    return make_job(
        job_id=entry.id,
        tenant=ask.tenant,
        served=target.served,
        num_lanes=target.deployment.num_lanes,
        letter=target.letter,
        pin=target.key,
        generation=target.pin.generation,
        moved=target.moved,
        price=target.price,
        fallback=target.fallback,
        prompt_ids=prompt_ids,
        more_prompts=more_prompts,
        sampling=sampling,
        seed=seed,
        now=entry.now,
        timeout_s=gateway.sessions_config.turn_timeout_s + target.patience_s,
        queued=max(1, ask.meters.line.waiting) if target.awaits_worker else 0,
        retain=ask.keeps,
        trace=request.headers.get("traceparent", ""),
        choices=num_choices * len(prompts),
        affinity=affinity,
        terms=ask.terms,
        tier=ask.tier,
        pool=ask.pool,
        reader_grace_s=ask.reader_grace_s,
        reasoning=reasoning,
        call_format=calls.call_format,
        max_calls=calls.max_calls,
        text_parameters=calls.text_parameters,
        formed=calls.formed,
        reply=reply,
    )
