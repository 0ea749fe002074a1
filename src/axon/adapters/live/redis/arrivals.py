"""Reads all that has come on a Redis connection at once, with hiredis (C). Knows no channel.

The asyncio driver takes three nested calls for every message, which cost more than parsing it: the tokens of a step
come together, one message for each stream.
"""

from collections.abc import AsyncIterator
from typing import Any

import hiredis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError, InvalidResponse, ResponseError

_READ_BYTES = 1 << 16
_NO_MORE = object()


async def arrivals(connection: AbstractConnection) -> AsyncIterator[list[Any]]:
    """Yields the messages of each read, at least one, until the connection fails. Nobody else may read from it.

    Raises what the server answers as an error, and ``ConnectionError`` when it has closed the connection.
    """
    stream = connection._reader
    if stream is None:
        raise ConnectionError("The connection is closed.")
    parser = hiredis.Reader(protocolError=InvalidResponse, replyError=ResponseError, notEnoughData=_NO_MORE)
    while data := await stream.read(_READ_BYTES):
        parser.feed(data)
        messages = []
        while (message := parser.gets()) is not _NO_MORE:
            if isinstance(message, Exception):
                raise message
            messages.append(message)
        if messages:
            yield messages
    raise ConnectionError("The server has closed the connection.")
