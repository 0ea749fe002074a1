"""One turn over HTTP, from an identified request to its answer: what chat and completions share."""

import asyncio
import hashlib
import math
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from axon.admission.meters import Meters
from axon.admission.quota import Quota
from axon.dispatch.config import DispatchConfig
from axon.domain.chunk import Chunk
from axon.domain.deployment import Deployment
from axon.domain.job import Job
from axon.domain.reply import Reply
from axon.domain.storage import Stored
from axon.domain.tenant import Tier
from axon.domain.turn import Turn
from axon.errors import AxonError, InvalidInput, LimitReached, NotFound, TooLarge, Unavailable
from axon.gateway import frames, opening
from axon.gateway.auth import Identity
from axon.gateway.bodies import Bodies
from axon.gateway.config import GatewayConfig
from axon.gateway.edge import METERS
from axon.gateway.event_stream import EventStream
from axon.gateway.fleet import Fleet
from axon.gateway.follow import Follower, Reader
from axon.gateway.openai import Request as Ask
from axon.gateway.openai import tier_asked
from axon.gateway.outcome import failure
from axon.gateway.pace import Pace
from axon.gateway.place import LAST_EVENT_ID, last_event_id, require_place
from axon.gateway.problems import ClientLeft, Gone, Timeout
from axon.gateway.sentences import blaming
from axon.runtime.clock import Clock
from axon.runtime.lifecycle import Lifecycle
from axon.sessions.config import SessionsConfig
from axon.sessions.new_job import make_job
from axon.sessions.prompt import Prompts
from axon.sessions.sessions import Sessions
from axon.telemetry.metrics import Metrics

STREAM_HEADER = "x-axon-stream"
IDS_HEADER = "x-axon-event-ids"
"""With ``true`` the frames of a stream have their seq as the event's id."""
LEDGER_HEADER = "x-axon-ledger"
"""With ``true`` the end of an answer says what it took."""
FOUND = "axon.found"
"""Where a repeated request keeps the first one's turn."""
GRACE_HEADER = "x-axon-reader-grace"
"""For how many seconds a turn goes on without its reader, at most as long as the server lets it."""
_MAX_KEY_CHARS = 255
SSE_HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """Everything a route may use, made by bootstrap and passed in."""

    config: GatewayConfig
    sessions_config: SessionsConfig
    dispatch_config: DispatchConfig
    bodies: Bodies
    fleet: Fleet
    prompts: Prompts
    opening: opening.Opening
    quota: Quota
    follower: Follower
    sessions: Sessions
    lifecycle: Lifecycle
    clock: Clock
    metrics: Metrics


def gateway_of(request: Request) -> Gateway:
    gateway: Gateway = request.app.state.gateway
    return gateway


def identity_of(request: Request) -> Identity:
    """Who asks, as the edge has established."""
    identity: Identity = request.scope["axon.identity"]
    return identity


async def read_body(request: Request, config: GatewayConfig) -> bytes:
    """The whole body, within its limits of size and time."""
    encoding = request.headers.get("content-encoding", "identity")
    if encoding != "identity":
        raise InvalidInput(
            f"A body in Content-Encoding '{encoding}' is not taken; send it plain.", code="unsupported_encoding"
        )
    parts: list[bytes] = []
    too_large = TooLarge(f"The body is larger than {config.max_body_bytes} bytes.")
    size = 0
    if int(request.headers.get("content-length", 0)) > config.max_body_bytes:  # the parser lets digits through alone
        raise too_large
    try:
        async with asyncio.timeout(config.body_timeout_s):
            async for part in request.stream():
                size += len(part)
                if size > config.max_body_bytes:
                    raise too_large
                parts.append(part)
    except TimeoutError:
        raise Timeout() from None
    except ClientDisconnect:
        raise ClientLeft() from None
    return b"".join(parts)


def find_deployment(request: Request, model: str) -> Deployment:
    """What the request's ``model`` names; raises for another one, or while no worker serves it yet.

    One that its tenant may not ask is answered exactly like an unknown one.
    """
    fleet = gateway_of(request).fleet
    available = fleet.name if identity_of(request).terms.allows(fleet.name) else ""
    if not available or model != available:
        raise NotFound(
            f"The model '{model}' does not exist. Available: {available or 'none'}.",
            code="model_not_found",
            param="model",
        )
    return fleet.deployment


async def open_turn(
    request: Request,
    ask: Ask,
    body: bytes,
    *,
    route: str,
    prefix: str,
    max_tokens: int | None,
    prompts: Callable[[], Awaitable[Sequence[Sequence[int]]]],
    reply: Callable[[], Reply],
    prompt_field: str,
    affinity: str = "",
) -> Job:
    """The accepted job that answers this request: a new one, or the first one's when the request is a repeated one."""
    gateway, who = gateway_of(request), identity_of(request)
    deployment = find_deployment(request, ask.model)
    pool = gateway.fleet.pool(who.terms.pool)
    reader_grace_s = reader_grace(request, is_read_later=bool(ask.stream or ask.store))

    async def make(job_id: str, now: float) -> Job:
        with blaming(prompt_field, "max_tokens"):
            return await made(job_id, now)

    async def made(job_id: str, now: float) -> Job:
        prompt_ids, *more_prompts = await prompts()
        return make_job(
            job_id=job_id,
            tenant=who.tenant,
            deployment=deployment,
            num_lanes=gateway.dispatch_config.num_lanes,
            prompt_ids=prompt_ids,
            more_prompts=more_prompts,
            sampling=ask.sampling(max_tokens, deployment),
            seed=ask.seed,
            now=now,
            timeout_s=gateway.sessions_config.turn_timeout_s,
            retain=bool(ask.store),
            trace=request.headers.get("traceparent", ""),
            choices=ask.num_choices * (1 + len(more_prompts)),
            affinity=affinity,
            terms=who.terms,
            tier=tier_asked(ask.service_tier),
            pool=pool,
            reader_grace_s=reader_grace_s,
            reasoning=gateway.prompts.reasoning(prompt_ids) if route == "chat" and deployment.reasons else "",
            reply=reply(),
        )

    tier = tier_asked(ask.service_tier)
    return await accepted(request, body, route=route, prefix=prefix, make=make, tier=tier, keeps=bool(ask.store))


async def accepted(
    request: Request, body: bytes, *, route: str, prefix: str, make: opening.MakeJob, tier: Tier, keeps: bool
) -> Job:
    """The job that ``make`` makes, accepted; or the first one's, when the request is a repeated one."""
    gateway, who = gateway_of(request), identity_of(request)
    ask = opening.Ask(
        prefix=prefix,
        tenant=who.tenant,
        terms=who.terms,
        tier=who.terms.tier(tier),
        pool=gateway.fleet.pool(who.terms.pool),
        num_bytes=len(body),
        keeps=keeps,
        idempotency_key=_idempotency_key(request),
        body_digest=hashlib.sha256(route.encode() + body).hexdigest(),
    )
    request.scope[METERS] = ask.meters
    try:
        opened = await gateway.opening.open(ask, make)
        if opened.is_new and ask.idempotency_key and last_event_id(request):
            raise Gone("The stream that this request began is not there any more.")
        if not opened.is_new:
            await _came_back(request, opened.job)
        return opened.job
    except (LimitReached, Unavailable) as error:
        gateway.metrics.rejected.labels(error.code, gateway.metrics.tenants.label(who.tenant)).inc()
        raise


async def _came_back(request: Request, job: Job) -> None:
    """A repeated request is a reader who has come back: what became of the turn meanwhile goes into its answer."""
    await gateway_of(request).follower.arrive(job.id, reader_of(request, job))
    found = await find_turn(request, job.id)
    if found is None:
        raise Gone("The answer to this repeated request is not kept any more.")
    request.scope[FOUND] = found


def found_before(request: Request) -> Turn | None:
    """The turn that an earlier request has opened, as this repeated one found it; None for a new turn."""
    found: Turn | None = request.scope.get(FOUND)
    return found


async def count_request(request: Request) -> None:
    """For a request that opens no turn and costs work all the same: it counts against its tenant's limit."""
    meters = Meters()
    request.scope[METERS] = meters
    who = identity_of(request)
    await gateway_of(request).opening.count(who.tenant, who.terms, meters)


@asynccontextmanager
async def storing(request: Request, more: Stored) -> AsyncIterator[None]:
    """For a request that stores something and opens no turn: counted as a request, and refused without room."""
    gateway, who = gateway_of(request), identity_of(request)
    try:
        await count_request(request)
        async with gateway.quota.room(who.tenant, who.terms, more):
            yield
    except LimitReached as error:
        gateway.metrics.rejected.labels(error.code, gateway.metrics.tenants.label(who.tenant)).inc()
        raise


def gave_back(request: Request) -> None:
    """Something of the asker's was erased: its room is free at once."""
    gateway_of(request).quota.forget(identity_of(request).tenant)


def _idempotency_key(request: Request) -> str:
    key = request.headers.get("idempotency-key", "")
    if len(key) > _MAX_KEY_CHARS:
        raise InvalidInput(f"An Idempotency-Key has at most {_MAX_KEY_CHARS} characters.", param="Idempotency-Key")
    return key


async def find_turn(request: Request, turn_id: str) -> Turn | None:
    """A turn of the asker's own; None for a foreign one, exactly as for one that is unknown or was erased."""
    return await gateway_of(request).sessions.lookup.find(turn_id, asker=identity_of(request).tenant)


def reader_grace(request: Request, *, is_read_later: bool) -> float | None:
    """How long a turn goes on without its reader, as asked for; None for as long as the server lets it.

    Without a word, what could not be read later ends with its connection: nobody knows its id.
    """
    text = request.headers.get(GRACE_HEADER)
    if text is None:
        return None if is_read_later or _idempotency_key(request) else 0.0
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not (math.isfinite(seconds) and seconds >= 0):
        raise InvalidInput(f"{GRACE_HEADER} must be a number of seconds, 0 or more.", param=GRACE_HEADER)
    return min(seconds, gateway_of(request).sessions_config.reader_grace_s)


def reader_of(request: Request, job: Job, found: Turn | None = None) -> Reader:
    """Who sent this request, as a reader of the job's stream; ``found`` is the turn where it was there before."""
    return Reader(job, identity_of(request).key_id, found)


async def leave(gateway: Gateway, reader: Reader) -> None:
    """The reader follows no more; counted where that ends its turn."""
    if cause := await gateway.follower.left(reader):
        gateway.metrics.cancelled.labels(cause=cause).inc()


async def answer(request: Request, job: Job, *, stream: bool) -> Response:
    """The answer to an accepted turn, streamed or whole."""
    if stream:
        found, after = found_before(request), 0
        if found is not None:
            after = last_event_id(request)
            await require_place(gateway_of(request).sessions.lookup, found, after, LAST_EVENT_ID)
        return stream_response(request, job, after=after, found=found, started=job.created)
    return await _whole_response(request, job)


def stream_response(
    request: Request, job: Job, *, after: int, found: Turn | None = None, started: float | None = None
) -> Response:
    """The stream past ``after`` as server-sent events; leaving early loses nothing, for as long as it is kept.

    ``found`` is the turn as a reader who came back has found it.
    """
    writer = frames.Writer(job, after=after, with_ids=_wants_ids(request), with_ledger=wants_ledger(request))
    gateway, reader = gateway_of(request), reader_of(request, job, found)
    return EventStream(
        _events(gateway, job, reader, writer, after, started),
        headers={**SSE_HEADERS, STREAM_HEADER: job.id},
        left=lambda: leave(gateway, reader),
    )


def _wants_ids(request: Request) -> bool:
    return "last-event-id" in request.headers or _is_on(request, IDS_HEADER)


def wants_ledger(request: Request) -> bool:
    """Whether the asker wants to know what its answer took."""
    return _is_on(request, LEDGER_HEADER)


def _is_on(request: Request, header: str) -> bool:
    return request.headers.get(header, "").lower() in ("1", "true")


async def _events(
    gateway: Gateway, job: Job, reader: Reader, writer: frames.Writer, after: int, started: float | None
) -> AsyncGenerator[bytes, None]:
    pace = Pace(gateway.metrics, started)
    try:
        async with aclosing(gateway.follower.follow(job.id, after=after, reader=reader)) as stream:
            async for chunk in stream:
                frame = writer.silence() if chunk is None else writer.frames(chunk)
                if frame:
                    yield frame
                if chunk is not None and chunk.tokens:
                    pace.saw(len(chunk.tokens), gateway.clock.now())
    except AxonError as error:
        yield frames.error_frame(error)


async def _whole_response(request: Request, job: Job) -> Response:
    found = frames.whole(job, await answered(request, job), with_ledger=wants_ledger(request))
    return Response(msgspec.json.encode(found), media_type="application/json", headers={STREAM_HEADER: job.id})


async def answered(request: Request, job: Job) -> list[Chunk]:
    """The whole stream of a turn that completed; raises what it failed of, or when the client leaves first."""
    gateway, reader = gateway_of(request), reader_of(request, job, found_before(request))
    chunks: list[Chunk] = []
    async with asyncio.TaskGroup() as tasks:
        collecting = tasks.create_task(_collect(gateway, job, reader, chunks))
        leaving = tasks.create_task(_disconnected(request))
        await asyncio.wait([collecting, leaving], return_when=asyncio.FIRST_COMPLETED)
        collecting.cancel()
        leaving.cancel()
    if not chunks or not chunks[-1].terminal:
        await leave(gateway, reader)
    if collecting.done() and not collecting.cancelled() and (problem := collecting.result()):
        raise problem
    if not chunks or not chunks[-1].terminal:
        raise ClientLeft()
    if error := failure(chunks[-1], job.reply):
        raise error
    return chunks


async def _collect(gateway: Gateway, job: Job, reader: Reader, chunks: list[Chunk]) -> AxonError | None:
    """Gathers the stream; what stops it is returned, so that it does not come out as a group."""
    try:
        async with aclosing(gateway.follower.follow(job.id, after=0, reader=reader)) as stream:
            async for chunk in stream:
                if chunk is not None:
                    chunks.append(chunk)
    except AxonError as error:
        return error
    return None


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
