"""Messages of a Redis connection, read as many at once as have come."""

import asyncio
from typing import Any, cast

import pytest
from redis.exceptions import ConnectionError, ResponseError

from axon.adapters.live.redis.arrivals import arrivals

_TOKEN = b"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$3\r\none\r\n"
_END = b"*3\r\n$7\r\nmessage\r\n$1\r\nd\r\n$3\r\ntwo\r\n"


class Wire:
    """A connection whose bytes a test feeds."""

    def __init__(self) -> None:
        self._reader: asyncio.StreamReader | None = asyncio.StreamReader()

    def feed(self, data: bytes) -> None:
        assert self._reader is not None
        self._reader.feed_data(data)

    def close(self) -> None:
        assert self._reader is not None
        self._reader.feed_eof()

    def arrivals(self) -> Any:
        return arrivals(cast("Any", self))


async def test_what_has_come_together_is_read_together_and_a_part_waits_for_its_rest() -> None:
    wire = Wire()
    found = wire.arrivals()
    wire.feed(_TOKEN + _END + _TOKEN[:11])
    assert await anext(found) == [[b"message", b"c", b"one"], [b"message", b"d", b"two"]]
    wire.feed(_TOKEN[11:])
    assert await anext(found) == [[b"message", b"c", b"one"]]


async def test_an_error_of_the_server_is_raised() -> None:
    wire = Wire()
    wire.feed(b"-NOPERM this user has no permissions to access the channel\r\n")
    with pytest.raises(ResponseError, match="NOPERM"):
        await anext(wire.arrivals())


async def test_a_connection_that_the_server_closes_is_an_error() -> None:
    wire = Wire()
    wire.close()
    with pytest.raises(ConnectionError):
        await anext(wire.arrivals())


async def test_a_connection_that_is_closed_already_is_an_error() -> None:
    wire = Wire()
    wire._reader = None
    with pytest.raises(ConnectionError):
        await anext(wire.arrivals())
