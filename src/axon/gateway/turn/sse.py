"""Server-sent events (SSE): the one loop that follows a stream and sends its frames. Knows no API's frames."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from axon.domain.job import Job
from axon.domain.log.chunk import Chunk
from axon.domain.turn import Turn
from axon.errors import AxonError
from axon.gateway.offers.wait import Wait
from axon.gateway.turn.context import Gateway, gateway_of, reader_of
from axon.gateway.turn.headers import STREAM_HEADER
from axon.gateway.turn.latency import Latency
from axon.gateway.turn.notices import Notices
from axon.gateway.turn.reader import Reader
from axon.gateway.turn.waiting import wait_headers
from axon.runtime.tasks import race

_HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no"}


class Writer(Protocol):
    """Encodes one reader's chunks as the frames of an API. A method that returns no bytes sends nothing."""

    def opening(self) -> bytes:
        """Returns the frames that come before the first chunk."""

    def frames(self, chunk: Chunk) -> bytes:
        """Returns the frames of this chunk."""

    def queued(self, wait: Wait) -> bytes:
        """Returns the frames that say how the turn waits for a worker, which has changed."""

    def silence(self) -> bytes:
        """Returns a keep-alive frame without content, so that no proxy closes a stream that pauses."""

    def error(self, error: AxonError) -> bytes:
        """Returns the frame that says why the stream breaks off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamStart:
    """Where a reader's stream of a turn begins, and what is known of the turn by then."""

    job: Job
    after: int
    """The number of the last event that the client has, as its API counts them."""
    found: Turn | None = None
    """The turn as a client that came back has found it."""
    started: float | None = None
    """Time in seconds from which the time to the first token is measured; None if it is not."""
    wait: Wait | None = None
    """How the turn waits now, sent in the headers."""


Streamed = Callable[[Request, StreamStart], Response]
"""Streams a turn's answer as the events of an API."""


def stream(
    request: Request,
    start: StreamStart,
    writer: Writer,
    *,
    after: int = 0,
    media_type: str = "text/event-stream",
) -> Response:
    """Returns a response that sends the stream's tokens past seq ``after`` as the writer's events, or as what
    ``media_type`` is.

    A client that disconnects may resume for as long as the stream is kept.
    """
    gateway, job, reader = gateway_of(request), start.job, reader_of(request, start.job, start.found)
    return _EventStream(
        frames_of(gateway, reader, job, writer, after, Latency(gateway.metrics, job, start.started), start.wait),
        headers={**_HEADERS, STREAM_HEADER: job.id, **wait_headers(start.wait)},
        left=lambda: leave(gateway, reader),
        media_type=media_type,
    )


async def leave(gateway: Gateway, reader: Reader) -> None:
    """Tells the follower that the reader has left, and counts the turn in the metrics if that cancels it."""
    if cause := await gateway.follower.left(reader):
        gateway.metrics.turns.cancelled.labels(cause=cause).inc()


async def frames_of(
    gateway: Gateway, reader: Reader, job: Job, writer: Writer, after: int, latency: Latency, wait: Wait | None
) -> AsyncGenerator[bytes, None]:
    """Yields the frames of a stream; an error ends it with the writer's error frame."""
    if opening := writer.opening():
        yield opening
    notices: Notices | None = None
    if job.queued and not after:
        notices = Notices(partial(gateway.offers.wait_of, job), wait, now=gateway.clock.monotonic())
    gateway.metrics.streams.open.inc()
    try:
        async with aclosing(gateway.follower.follow(job.id, after=after, reader=reader, notices=notices)) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, Wait):
                    frame = writer.queued(chunk)
                else:
                    frame = writer.silence() if chunk is None else writer.frames(chunk)
                if frame:
                    yield frame
                if isinstance(chunk, Chunk) and chunk.tokens:
                    latency.saw(len(chunk.tokens), gateway.clock.now(), chunk.at)
    except AxonError as error:
        yield writer.error(error)
    finally:
        gateway.metrics.streams.open.dec()


class _EventStream(StreamingResponse):
    """Sends frames until they end or the client disconnects; then closes the generator and calls ``left``."""

    def __init__(
        self,
        frames: AsyncGenerator[bytes, None],
        *,
        headers: Mapping[str, str],
        left: Callable[[], Awaitable[None]],
        media_type: str,
    ) -> None:
        super().__init__(frames, media_type=media_type, headers=headers)
        self._frames, self._left = frames, left

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await until_disconnected(self.stream_response(send), receive)
        finally:
            await self._frames.aclose()  # Starlette would leave this to the garbage collector
            await self._left()


async def until_disconnected(work: Coroutine[Any, Any, None], receive: Receive) -> None:
    """Runs the work until it ends or the client disconnects, which cancels it. Raises what the work raises.

    Two tasks instead of Starlette's task group, which costs several times as much.
    """
    working = asyncio.create_task(work)
    await race(working, asyncio.create_task(disconnected(receive)))
    if not working.cancelled():
        working.result()


async def disconnected(receive: Receive) -> None:
    """Returns when the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass
