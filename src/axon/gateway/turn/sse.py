"""Server-sent events (SSE): the one loop that follows a stream and sends its frames. Knows no API's frames."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any, Protocol

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from axon.domain.chunk import Chunk
from axon.domain.job import Job
from axon.domain.turn import Turn
from axon.errors import AxonError
from axon.gateway.offers.wait import Wait
from axon.gateway.turn.context import Gateway, gateway_of, reader_of
from axon.gateway.turn.headers import STREAM_HEADER
from axon.gateway.turn.latency import Latency
from axon.gateway.turn.notices import Notices
from axon.gateway.turn.reader import Reader
from axon.gateway.turn.waiting import wait_headers

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


def stream(
    request: Request,
    job: Job,
    writer: Writer,
    *,
    after: int = 0,
    found: Turn | None = None,
    started: float | None = None,
    wait: Wait | None = None,
) -> Response:
    """Returns a response that sends the stream past seq ``after`` as server-sent events.

    A client that disconnects may resume for as long as the stream is kept. ``found`` is the turn as a client that came
    back has found it; ``started`` is the time in seconds from which the time to the first token is measured. ``wait``
    says how the turn waits now, which the headers tell.
    """
    gateway, reader = gateway_of(request), reader_of(request, job, found)
    return _EventStream(
        _events(gateway, reader, job, writer, after, Latency(gateway.metrics, started), wait),
        headers={**_HEADERS, STREAM_HEADER: job.id, **wait_headers(wait)},
        left=lambda: leave(gateway, reader),
    )


async def leave(gateway: Gateway, reader: Reader) -> None:
    """Tells the follower that the reader has left, and counts the turn in the metrics if that cancels it."""
    if cause := await gateway.follower.left(reader):
        gateway.metrics.cancelled.labels(cause=cause).inc()


async def _events(
    gateway: Gateway, reader: Reader, job: Job, writer: Writer, after: int, latency: Latency, wait: Wait | None
) -> AsyncGenerator[bytes, None]:
    """Yields the frames of a stream; an error ends it with the writer's error frame."""
    if opening := writer.opening():
        yield opening
    notices: Notices | None = None
    if job.queued and not after:
        notices = Notices(partial(gateway.offers.wait_of, job), wait, now=gateway.clock.monotonic())
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
                    latency.saw(len(chunk.tokens), gateway.clock.now())
    except AxonError as error:
        yield writer.error(error)


class _EventStream(StreamingResponse):
    """Sends frames until they end or the client disconnects; then closes the generator and calls ``left``."""

    def __init__(
        self, frames: AsyncGenerator[bytes, None], *, headers: Mapping[str, str], left: Callable[[], Awaitable[None]]
    ) -> None:
        super().__init__(frames, media_type="text/event-stream", headers=headers)
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
    tasks = (asyncio.create_task(work), asyncio.create_task(_disconnected(receive)))
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        done, _ = await asyncio.gather(*tasks, return_exceptions=True)
    if isinstance(done, Exception):
        raise done


async def _disconnected(receive: Receive) -> None:
    """Returns when the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass
