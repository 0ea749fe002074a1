"""Collects a turn's whole answer, for a client that does not stream. Knows no API's body."""

import asyncio
from contextlib import aclosing

from starlette.requests import Request

from axon.domain.chunk import Chunk
from axon.domain.job import Job
from axon.domain.turn import Turn
from axon.errors import AxonError
from axon.gateway.http.errors import ClientLeft
from axon.gateway.turn.context import Gateway, gateway_of, reader_of
from axon.gateway.turn.reader import Reader
from axon.gateway.turn.sse import disconnected, leave


async def answered(request: Request, job: Job, *, found: Turn | None = None) -> list[Chunk]:
    """Waits for the turn's end and returns all its chunks.

    Raises ``ClientLeft`` if the client disconnects first, or the error at which the stream breaks off. ``found`` is the
    turn as a repeated request has found it.
    """
    gateway, reader = gateway_of(request), reader_of(request, job, found)
    chunks: list[Chunk] = []
    async with asyncio.TaskGroup() as tasks:
        collecting = tasks.create_task(_collect(gateway, job, reader, chunks))
        leaving = tasks.create_task(disconnected(request.receive))
        await asyncio.wait([collecting, leaving], return_when=asyncio.FIRST_COMPLETED)
        collecting.cancel()
        leaving.cancel()
    is_whole = bool(chunks and chunks[-1].terminal)
    if not is_whole:
        await leave(gateway, reader)
    if collecting.done() and not collecting.cancelled() and (problem := collecting.result()):
        raise problem
    if not is_whole:
        raise ClientLeft()
    return chunks


async def _collect(gateway: Gateway, job: Job, reader: Reader, chunks: list[Chunk]) -> AxonError | None:
    """Adds the stream's chunks to ``chunks``. An error is returned: raised, it would become an exception group."""
    try:
        async with aclosing(gateway.follower.follow(job.id, after=0, reader=reader)) as stream:
            async for chunk in stream:
                if chunk is not None:
                    chunks.append(chunk)
    except AxonError as error:
        return error
    return None
