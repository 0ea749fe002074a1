"""A listener by itself: how many passes of the loop a burst of connections takes, and what it does at its limits."""

import asyncio
import contextlib
import errno
import socket
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
import uvloop

from axon.gateway.http.connection import listener as module
from axon.gateway.http.connection.listener import Listener

PATIENCE_S = 30.0
NUM = 150


class Connections:
    """Makes protocols, and keeps the transports of those that have a connection."""

    def __init__(self) -> None:
        self.made: list[asyncio.BaseTransport] = []

    def protocol(self) -> asyncio.Protocol:
        made = self.made

        class Protocol(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                made.append(transport)

        return Protocol()


def run(test: Coroutine[Any, Any, None]) -> None:
    """Runs the test on the event loop of production."""

    async def bounded() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await test

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(bounded())


@contextlib.contextmanager
def clients(address: Any, num: int) -> Iterator[list[socket.socket]]:
    """So many connections, made before the loop can turn."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(socket.create_connection(address, timeout=PATIENCE_S)) for _ in range(num)]


async def passes_until(condition: Callable[[], object]) -> int:
    """Lets the loop turn until the condition holds; the number of its passes."""
    num_passes = 0
    while not condition():
        await asyncio.sleep(0)
        num_passes += 1
    return num_passes


def test_a_burst_of_connections_takes_a_few_passes_of_the_loop() -> None:
    async def test() -> None:
        connections, listening = Connections(), socket.create_server(("127.0.0.1", 0))
        listener = Listener(listening, connections.protocol)
        listener.open(NUM)
        with clients(listening.getsockname(), NUM):
            assert await passes_until(lambda: len(connections.made) == NUM) < NUM / 5
            await listener.close()

    run(test())


def test_one_pass_accepts_no_more_than_its_share() -> None:
    async def test() -> None:
        connections, listening = Connections(), socket.create_server(("127.0.0.1", 0))
        listener = Listener(listening, connections.protocol)
        listener.open(NUM)
        with clients(listening.getsockname(), NUM):
            most = before = 0
            while before < NUM:
                await asyncio.sleep(0)
                most, before = max(most, len(connections.made) - before), len(connections.made)
            assert most <= 2 * module._MAX_PER_PASS  # those of one pass may get their protocols in the next one
            await listener.close()

    run(test())


def test_closing_hands_over_everybody_who_has_connected_before() -> None:
    async def test() -> None:
        connections, listening = Connections(), socket.create_server(("127.0.0.1", 0))
        listener = Listener(listening, connections.protocol)
        listener.open(NUM)
        address = listening.getsockname()
        with clients(address, NUM):
            await listener.close()
            assert len(connections.made) == NUM
            assert not listener.is_open
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(address)
            await listener.close()  # a second time changes nothing

    run(test())


def test_without_descriptors_it_waits_and_then_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAUSE_S", 0.01)
    failures = [OSError(errno.EMFILE, "Too many open files"), ConnectionAbortedError(errno.ECONNABORTED, "left")]

    class Short(socket.socket):
        """A socket whose process has no descriptor left at first, and whose first client left."""

        def accept(self) -> tuple[socket.socket, Any]:
            if failures:
                raise failures.pop(0)
            return super().accept()

    async def test() -> None:
        connections, listening = Connections(), Short()
        listening.bind(("127.0.0.1", 0))
        listener = Listener(listening, connections.protocol)
        listener.open(NUM)
        with clients(listening.getsockname(), 3):
            await passes_until(lambda: len(connections.made) == 3)
            assert not failures
            await listener.close()

    run(test())


def test_a_listener_that_waits_for_descriptors_can_be_closed() -> None:
    failures = 0

    class Full(socket.socket):
        def accept(self) -> tuple[socket.socket, Any]:
            nonlocal failures
            failures += 1
            raise OSError(errno.EMFILE, "Too many open files")

    async def test() -> None:
        connections, listening = Connections(), Full()
        listening.bind(("127.0.0.1", 0))
        listener = Listener(listening, connections.protocol)
        listener.open(NUM)
        with clients(listening.getsockname(), 1):
            await passes_until(lambda: failures)
            await listener.close()
        assert not connections.made

    run(test())
