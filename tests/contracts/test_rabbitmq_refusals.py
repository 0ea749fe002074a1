"""A publisher beside a broker that refuses messages: which channel the next message goes on."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiormq
import aiormq.exceptions
import pytest

from axon.adapters.amqp import Publisher
from axon.errors import DependencyDown
from axon.runtime.clock import Clock, FakeClock
from tests.contracts.rabbitmq_errors import made
from tests.services.rabbitmq import new_prefix, shared_server

DEADLINE_S = 0.2


class StuckChannel:
    """Refuses what is published while its queue has no leader, and from then on everything, as RabbitMQ 3.10.8 does.
    A message ``slow`` is confirmed when ``confirms`` is set."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._is_stuck = False
        self.is_closed = False
        self.confirms = asyncio.Event()

    async def basic_publish(self, body: bytes, **_: object) -> None:
        if body == b"slow":
            await self.confirms.wait()
            return
        self._is_stuck |= not self._broker.has_leader
        if self._is_stuck:
            raise made(aiormq.exceptions.DeliveryError)

    async def close(self, *_: object, **__: object) -> None:
        self.is_closed = True


class Broker:
    """Stands in for every connection of the driver."""

    def __init__(self) -> None:
        self.has_leader = True
        self.is_closed = False
        self.channels: list[StuckChannel] = []

    def __call__(self, url: object) -> "Broker":
        return self

    async def connect(self) -> None: ...

    async def ready(self) -> None: ...

    async def channel(self, **_: object) -> StuckChannel:
        self.channels.append(StuckChannel(self))
        return self.channels[-1]

    async def close(self, *_: object, **__: object) -> None:
        self.is_closed = True


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    broker = Broker()
    monkeypatch.setattr(aiormq, "Connection", broker)
    return broker


@asynccontextmanager
async def publishing(
    url: str = "amqp://localhost/", timeout_s: float = DEADLINE_S, clock: Clock | None = None
) -> AsyncIterator[Publisher]:
    publisher = Publisher(url, name="test", timeout_s=timeout_s, clock=clock)
    await publisher.open()
    try:
        yield publisher
    finally:
        await publisher.aclose()


async def refused(publisher: Publisher) -> None:
    with pytest.raises(DependencyDown) as failure:
        await publisher.publish("lane", b"job")
    assert failure.value.code == "queue_refused"


async def test_after_a_refusal_the_next_message_goes_on_another_channel(broker: Broker) -> None:
    async with publishing() as publisher:
        broker.has_leader = False
        await refused(publisher)
        broker.has_leader = True
        await publisher.publish("lane", b"job")
    assert len(broker.channels) == 2


async def test_messages_on_the_channel_that_refused_one_still_get_their_answer(broker: Broker) -> None:
    async with publishing(timeout_s=5.0) as publisher:
        slow = asyncio.ensure_future(publisher.publish("lane", b"slow"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        broker.has_leader = False
        await refused(publisher)
        broker.channels[0].confirms.set()
        await slow
        assert not broker.channels[0].is_closed, "closed while a message waited for its confirmation"


async def test_many_refusals_open_one_channel_in_a_deadline_and_keep_two(broker: Broker) -> None:
    clock = FakeClock()
    async with publishing(clock=clock) as publisher:
        broker.has_leader = False
        for _ in range(3):
            for _ in range(20):
                await refused(publisher)
            clock.advance(DEADLINE_S)
        await asyncio.sleep(0)
        are_closed = [channel.is_closed for channel in broker.channels]
    assert are_closed == [True, True, False, False]


@pytest.mark.services
async def test_a_full_queue_refuses_and_takes_messages_again_when_it_is_empty() -> None:
    server, queue = shared_server(), new_prefix()
    connection = aiormq.Connection(server.url)
    await connection.connect()
    try:
        channel = await connection.channel()
        await channel.queue_declare(
            queue, exclusive=True, arguments={"x-max-length": 1, "x-overflow": "reject-publish"}
        )
        async with publishing(server.url, timeout_s=30.0) as publisher:
            await publisher.publish(queue, b"job")
            with pytest.raises(DependencyDown) as failure:
                await publisher.publish(queue, b"job")
            assert failure.value.code == "queue_refused"
            await channel.queue_purge(queue)
            await publisher.publish(queue, b"job")
    finally:
        await connection.close()
