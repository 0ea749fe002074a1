"""Server-sent events: one loop that follows a stream and writes its frames. Knows no API's frames."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Protocol

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from axon.domain.chunk import Chunk
from axon.domain.job import Job
from axon.domain.turn import Turn
from axon.errors import AxonError
from axon.gateway.turn.context import Gateway, gateway_of, reader_of
from axon.gateway.turn.follow import Reader
from axon.gateway.turn.headers import STREAM_HEADER
from axon.gateway.turn.latency import Latency

_HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no"}


class Writer(Protocol):
    """Turns one reader's chunks into the frames of an API. An empty result means that nothing is sent."""

    def opening(self) -> bytes:
        """What can be said before anything is known of the answer."""

    def frames(self, chunk: Chunk) -> bytes:
        """Everything that this chunk adds to the stream."""

    def silence(self) -> bytes:
        """A frame that says nothing, so that no proxy in between takes the stream for dead."""

    def error(self, error: AxonError) -> bytes:
        """Why the stream breaks off here."""


def stream(
    request: Request,
    job: Job,
    writer: Writer,
    *,
    after: int = 0,
    found: Turn | None = None,
    started: float | None = None,
) -> Response:
    """The stream past token ``after`` as server-sent events; leaving early loses nothing, for as long as it is kept.

    ``found`` is the turn as a reader who came back has found it; ``started`` is when a first token is waited from.
    """
    gateway, reader = gateway_of(request), reader_of(request, job, found)
    return _EventStream(
        _events(gateway, reader, job, writer, after, Latency(gateway.metrics, started)),
        headers={**_HEADERS, STREAM_HEADER: job.id},
        left=lambda: leave(gateway, reader),
    )


async def leave(gateway: Gateway, reader: Reader) -> None:
    """Notes that the reader follows no more, and counts it where that ends its turn."""
    if cause := await gateway.follower.left(reader):
        gateway.metrics.cancelled.labels(cause=cause).inc()


async def _events(
    gateway: Gateway, reader: Reader, job: Job, writer: Writer, after: int, latency: Latency
) -> AsyncGenerator[bytes, None]:
    if opening := writer.opening():
        yield opening
    try:
        async with aclosing(gateway.follower.follow(job.id, after=after, reader=reader)) as chunks:
            async for chunk in chunks:
                frame = writer.silence() if chunk is None else writer.frames(chunk)
                if frame:
                    yield frame
                if chunk is not None and chunk.tokens:
                    latency.saw(len(chunk.tokens), gateway.clock.now())
    except AxonError as error:
        yield writer.error(error)


class _EventStream(StreamingResponse):
    """Sends frames until they end or the client is gone; either way nobody follows here any more afterwards."""

    def __init__(
        self, frames: AsyncGenerator[bytes, None], *, headers: Mapping[str, str], left: Callable[[], Awaitable[None]]
    ) -> None:
        super().__init__(frames, media_type="text/event-stream", headers=headers)
        self._frames, self._left = frames, left

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._frames.aclose()  # Starlette leaves that to the garbage collector
            await self._left()
