"""One loop for every stream: frames in order, empty ones left out, an error as a frame, and a leave that is noted."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from axon.domain.log.chunk import Chunk
from axon.errors import AxonError
from axon.gateway.offers.wait import Wait
from axon.gateway.turn.sse import StreamStart, stream
from tests.contracts.builders import make_job
from tests.gateway.turn.desk import Desk

JOB = make_job("chatcmpl-1", reader_grace_s=0.0)
DEADLINE_S = 20.0


class Plain:
    """Writes the seqs of each chunk; every second one is not worth a frame."""

    def __init__(self, opening: bytes = b"") -> None:
        self._opening = opening

    def opening(self) -> bytes:
        return self._opening

    def frames(self, chunk: Chunk) -> bytes:
        if chunk.terminal:
            return b"end"
        return b"" if chunk.first % 2 == 0 else b"%d-%d " % (chunk.first, chunk.last)

    def queued(self, wait: Wait) -> bytes:
        return b"%d in line " % wait.position

    def silence(self) -> bytes:
        return b"... "

    def error(self, error: AxonError) -> bytes:
        return f"error {error.code}".encode()


class Client:
    """Collects what an answer sends; it may break off when it has enough."""

    def __init__(self, desk: Desk, *, leaves_after: int | None = None) -> None:
        self._desk, self._leaves_after = desk, leaves_after
        self.headers: dict[str, str] = {}
        self.parts: list[bytes] = []

    async def read(self, writer: Any, *, after: int = 0) -> bytes:
        request = self._desk.request()
        response = stream(request, StreamStart(job=self._desk.job, after=after), writer, after=after)
        scope: Any = {"type": "http", "asgi": {"spec_version": "2.3"}}
        async with asyncio.timeout(DEADLINE_S):
            with suppress(OSError):
                await response(scope, request.receive, self._send)
        return b"".join(self.parts)

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        elif message.get("body"):
            self.parts.append(message["body"])
        if self._leaves_after is not None and len(self.parts) >= self._leaves_after:
            self._desk.gone.set()


@pytest.fixture
async def desk() -> Desk:
    made = Desk(JOB)
    await made.open()
    return made


def num_left(desk: Desk) -> float:
    return float(desk.metrics.turns.cancelled.labels(cause="left")._value.get())


async def test_frames_come_in_order_and_what_is_empty_is_not_sent(desk: Desk) -> None:
    for first in (1, 2, 3):
        await desk.say(first)
    await desk.say(4, 0, terminal="completed")
    client = Client(desk)
    assert await client.read(Plain(b"hello ")) == b"hello 1-1 3-3 end"
    assert b"" not in client.parts
    assert client.headers["content-type"].startswith("text/event-stream")
    assert client.headers["x-axon-stream"] == JOB.id
    assert (client.headers["cache-control"], client.headers["x-accel-buffering"]) == ("no-cache", "no")


async def test_a_reader_who_came_back_is_told_only_what_it_has_not_read(desk: Desk) -> None:
    await desk.say(1, 3)
    await desk.say(4, 0, terminal="completed")
    assert await Client(desk).read(Plain(), after=2) == b"3-3 end"


async def test_a_stream_that_breaks_off_says_why_in_a_frame(desk: Desk) -> None:
    await desk.say(1)
    await desk.follower.end()
    assert await Client(desk).read(Plain()) == b"1-1 error draining"


async def test_a_client_that_leaves_is_followed_no_more_and_its_turn_is_cancelled(desk: Desk) -> None:
    await desk.say(1)
    assert await Client(desk, leaves_after=1).read(Plain()) == b"1-1 "
    assert desk.follower.key_ids == frozenset()
    assert await desk.is_cancelled()
    assert num_left(desk) == 1


async def test_a_stream_read_to_its_end_cancels_nothing(desk: Desk) -> None:
    await desk.say(1, terminal="completed")
    await Client(desk).read(Plain())
    assert not await desk.is_cancelled()
    assert num_left(desk) == 0
