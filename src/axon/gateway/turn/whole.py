"""Collects a turn's whole answer, for a client that does not stream. Knows no API's body."""

from contextlib import aclosing

from starlette.requests import Request

from axon.domain.job import Job
from axon.domain.log.chunk import Chunk
from axon.domain.turn import Turn
from axon.errors import AxonError
from axon.gateway.http.errors import ClientLeft
from axon.gateway.turn.context import Gateway, gateway_of, reader_of
from axon.gateway.turn.reader import Reader
from axon.gateway.turn.sse import leave, until_disconnected


async def answered(request: Request, job: Job, *, found: Turn | None = None) -> list[Chunk]:
    """Waits for the turn's end and returns all its chunks.

    Raises ``ClientLeft`` if the client disconnects first, or the error at which the stream breaks off. ``found`` is the
    turn as a repeated request has found it.
    """
    gateway, reader = gateway_of(request), reader_of(request, job, found)
    chunks: list[Chunk] = []
    problem: AxonError | None = None
    try:
        await until_disconnected(_collect(gateway, job, reader, chunks), request.receive)
    except AxonError as error:
        problem = error
    is_whole = bool(chunks and chunks[-1].terminal)
    if not is_whole:
        await leave(gateway, reader)
    if problem is not None:
        raise problem
    if not is_whole:
        raise ClientLeft()
    return chunks


async def _collect(gateway: Gateway, job: Job, reader: Reader, chunks: list[Chunk]) -> None:
    """Adds the stream's chunks to ``chunks``."""
    async with aclosing(gateway.follower.follow(job.id, after=0, reader=reader)) as stream:
        async for chunk in stream:
            if isinstance(chunk, Chunk):
                chunks.append(chunk)
