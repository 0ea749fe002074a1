"""Makes an ``Ask`` of an HTTP request and opens its turn; a repeated request finds its turn. Knows no API's body."""

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from starlette.requests import Request

from axon.domain.job import Job
from axon.domain.session.pin import Pin
from axon.domain.tenants.tenant import Tier
from axon.domain.turn import Turn
from axon.errors import AxonError, LimitReached, Unavailable
from axon.gateway.http.errors import Gone
from axon.gateway.http.held_bodies import release_body
from axon.gateway.http.middleware import METERS, since_arrival_s
from axon.gateway.http.tracing import note_accepted, steps_of
from axon.gateway.offers.fallbacks import places
from axon.gateway.offers.offers import Wanted
from axon.gateway.turn.ask import Ask
from axon.gateway.turn.context import find_turn, gateway_of, identity_of, reader_of
from axon.gateway.turn.entry import Entry
from axon.gateway.turn.headers import idempotency_key, reader_grace_s
from axon.gateway.turn.position import last_event_id

TURN_ID = "axon.turn_id"
"""Key of the ASGI scope under which the id of the request's turn is kept, once it is admitted."""


@dataclass(frozen=True, slots=True)
class Api:
    """One of the APIs that open turns."""

    name: str
    """The API's name, a part of a body's digest, because the same body means something else to another API."""
    prefix: str
    """The prefix of its turns' ids."""


@dataclass(frozen=True, slots=True)
class Part:
    """One of several turns that a single request becomes."""

    index: int
    num_bytes: int
    """Bytes of the body that are its own, about."""


@asynccontextmanager
async def admitted(
    request: Request,
    body: bytes,
    api: Api,
    wanted: Wanted,
    *,
    tier: Tier,
    keeps: bool,
    streams: bool,
    part: Part | None = None,
) -> AsyncIterator[Entry]:
    """Admits the turn that this request asks for, and withdraws it unless its job is accepted inside the block.

    It is admitted at the asked deployment, or at the first of its fallbacks that can take it. Once it is accepted, the
    request's body does not count as held any more: the caller should drop it.
    ``keeps`` says that the turn is stored, ``streams`` that its reader learns its id before its end. ``part`` is given
    where one request becomes several turns.
    """
    gateway, who = gateway_of(request), identity_of(request)
    first, *others = places(wanted, who.terms.pool)
    key, name = idempotency_key(request), api.name
    if part is not None and part.index:
        key, name = key and f"{key}#{part.index}", f"{api.name}#{part.index}"
    ask = Ask(
        prefix=api.prefix,
        tenant=who.tenant,
        terms=who.terms,
        deployment=first.deployment,
        tier=who.terms.tier(tier),
        pool=first.pool,
        others=tuple(others),
        num_bytes=part.num_bytes if part is not None else len(body),
        keeps=keeps,
        reader_grace_s=reader_grace_s(
            request, is_read_later=keeps or streams, longest_s=gateway.sessions_config.reader_grace_s
        ),
        idempotency_key=key,
        body_digest=hashlib.sha256(name.encode() + body).hexdigest(),
        arrived=gateway.clock.now() - since_arrival_s(request.scope),
    )
    request.scope[METERS] = ask.meters
    entry: Entry | None = None
    try:
        async with gateway.opening.admitted(ask) as entry:
            request.scope[TURN_ID] = entry.id
            yield entry
        release_body(request.scope)
        if (steps := steps_of(request.scope)) is not None:
            published_at = gateway.clock.now() if entry.is_new else 0.0
            note_accepted(steps, entry.job, publishing_at=entry.publishing_at, published_at=published_at)
        if entry.is_new:
            if entry.is_drawn:
                gateway.observer.begun(entry.job, is_first=entry.is_first)
            gateway.offers.accepted(entry.job, ask.meters.line)
            if entry.job.queued:
                kind = gateway.metrics.turns.scaling if ask.meters.awaits_more else gateway.metrics.turns.cold
                kind.labels(entry.job.deployment).inc()
            if entry.job.fallback:
                gateway.metrics.turns.fallbacks.labels(wanted.offer.name, entry.job.fallback).inc()
            await gateway.sessions.pins.confirm(entry.job.pin, Pin(entry.job.generation, entry.job.pinned))
        if entry.is_new and ask.idempotency_key and last_event_id(request):
            raise Gone("The stream that this request began is not kept any more.")
        if not entry.is_new:
            entry.found = await _found_again(request, entry.job)
    except AxonError as error:
        if entry is not None and _refuses(entry, error):
            refuser = entry.answering
            gateway.observer.refused(*((refuser.offer.name, refuser.version) if refuser else ("", "")))
        if isinstance(error, LimitReached | Unavailable):
            gateway.metrics.requests.rejected.labels(error.code, gateway.metrics.tenants.label(who.tenant)).inc()
        raise


def _refuses(entry: Entry, error: AxonError) -> bool:
    """Whether an error is a refusal by the version that was to answer, in a session that begins with this turn. A limit
    of the tenant's own is none."""
    is_compared = entry.is_drawn and entry.is_first and entry.answering is not None
    return is_compared and not entry.is_accepted and not isinstance(error, LimitReached)


async def _found_again(request: Request, job: Job) -> Turn:
    """Returns a repeated request's turn, whose client is a reader that came back; raises ``Gone`` if it is lost."""
    await gateway_of(request).follower.arrive(job.id, reader_of(request, job))
    found = await find_turn(request, job.id)
    if found is None:
        raise Gone("The answer to this repeated request is not kept any more.")
    return found
