"""An HTTP request for a turn: its headers and its tenant's terms make the ask, a repeated one finds its turn again."""

import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from starlette.requests import Request

from axon.domain.deployment import Deployment
from axon.domain.job import Job
from axon.domain.reply import Reply
from axon.domain.sampling import Sampling
from axon.domain.tenant import Tier
from axon.domain.turn import Turn
from axon.errors import LimitReached, Unavailable
from axon.gateway.http.errors import Gone
from axon.gateway.http.middleware import METERS
from axon.gateway.turn.ask import Ask
from axon.gateway.turn.context import find_turn, gateway_of, identity_of, reader_of
from axon.gateway.turn.entry import Entry
from axon.gateway.turn.headers import idempotency_key, reader_grace_s
from axon.gateway.turn.place import last_event_id
from axon.sessions.new_job import make_job


@dataclass(frozen=True, slots=True)
class Api:
    """One of the APIs that open turns."""

    name: str
    """Goes into a body's digest: the same body means another thing to another API."""
    prefix: str
    """The beginning of its turns' ids."""


@asynccontextmanager
async def admitted(
    request: Request, body: bytes, api: Api, *, tier: Tier, keeps: bool, streams: bool
) -> AsyncIterator[Entry]:
    """Holds a place for the turn that this request asks for, until its job is accepted.

    ``keeps``: the turn is retained; ``streams``: its reader learns its id before its end.
    """
    gateway, who = gateway_of(request), identity_of(request)
    ask = Ask(
        prefix=api.prefix,
        tenant=who.tenant,
        terms=who.terms,
        tier=who.terms.tier(tier),
        pool=gateway.fleet.pool(who.terms.pool),
        num_bytes=len(body),
        keeps=keeps,
        reader_grace_s=reader_grace_s(
            request, is_read_later=keeps or streams, longest_s=gateway.sessions_config.reader_grace_s
        ),
        idempotency_key=idempotency_key(request),
        body_digest=hashlib.sha256(api.name.encode() + body).hexdigest(),
    )
    request.scope[METERS] = ask.meters
    try:
        async with gateway.opening.admitted(ask) as entry:
            yield entry
        if entry.is_new and ask.idempotency_key and last_event_id(request):
            raise Gone("The stream that this request began is not there any more.")
        if not entry.is_new:
            entry.found = await _came_back(request, entry.job)
    except (LimitReached, Unavailable) as error:
        gateway.metrics.rejected.labels(error.code, gateway.metrics.tenants.label(who.tenant)).inc()
        raise


async def _came_back(request: Request, job: Job) -> Turn:
    """Whoever repeats a request is a reader who has come back: what became of the turn meanwhile is its answer."""
    await gateway_of(request).follower.arrive(job.id, reader_of(request, job))
    found = await find_turn(request, job.id)
    if found is None:
        raise Gone("The answer to this repeated request is not kept any more.")
    return found


def job_of(
    request: Request,
    entry: Entry,
    deployment: Deployment,
    *,
    prompts: Sequence[Sequence[int]],
    sampling: Sampling,
    seed: int | None,
    reply: Reply,
    num_choices: int = 1,
    reasoning: str = "",
    affinity: str = "",
) -> Job:
    """The job of an entry: what the client asked for, within its tenant's terms. ``num_choices`` is for each prompt."""
    gateway, ask = gateway_of(request), entry.ask
    prompt_ids, *more_prompts = prompts
    return make_job(
        job_id=entry.id,
        tenant=ask.tenant,
        deployment=deployment,
        num_lanes=gateway.dispatch_config.num_lanes,
        prompt_ids=prompt_ids,
        more_prompts=more_prompts,
        sampling=sampling,
        seed=seed,
        now=entry.now,
        timeout_s=gateway.sessions_config.turn_timeout_s,
        retain=ask.keeps,
        trace=request.headers.get("traceparent", ""),
        choices=num_choices * len(prompts),
        affinity=affinity,
        terms=ask.terms,
        tier=ask.tier,
        pool=ask.pool,
        reader_grace_s=ask.reader_grace_s,
        reasoning=reasoning,
        reply=reply,
    )
