"""The RabbitMQ queue's own: what a broker that dies, hangs or starves does to its callers. Never a driver's error."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiormq.exceptions
import pytest

from axon.adapters.amqp import Publisher, translated
from axon.adapters.queue.rabbitmq import RabbitQueue
from axon.errors import AxonError, DependencyDown, Misconfigured
from axon.ports.queue import LANE_UNKNOWN, Delivery
from axon.runtime.clock import FakeClock
from tests.contracts.rabbitmq_errors import driver_errors
from tests.services.process import free_port
from tests.services.rabbitmq import RabbitServer, new_prefix, shared_server, started_victim

pytestmark = pytest.mark.services

LANE = "small/00"
DEADLINE_S = 2.0
SLACK_S = 10.0


@asynccontextmanager
async def opened(
    server: RabbitServer, prefix: str, *, declares: bool = True, **options: object
) -> AsyncIterator[RabbitQueue]:
    if server is shared_server():  # nobody breaks it, and the cores may be busy
        options = {"timeout_s": 30.0, **options}
    queue = RabbitQueue(server.url, prefix, **options)  # type: ignore[arg-type]
    await queue.open()
    try:
        if declares:
            await queue.declare([LANE])
        yield queue
    finally:
        await queue.aclose()


@pytest.fixture
def victim() -> RabbitServer:
    return started_victim()


@pytest.fixture
async def queue() -> AsyncIterator[RabbitQueue]:
    async with opened(shared_server(), new_prefix()) as queue:
        yield queue


async def take(queue: RabbitQueue) -> Delivery:
    delivery = await queue.take([LANE])
    assert delivery is not None
    return delivery


async def drain(queue: RabbitQueue) -> list[Delivery]:
    deliveries = []
    while (delivery := await queue.take([LANE])) is not None:
        deliveries.append(delivery)
    return deliveries


async def eventually(true: Callable[[], bool], timeout_s: float = 10.0) -> None:
    async with asyncio.timeout(timeout_s):
        while True:
            if true():
                return
            await asyncio.sleep(0.02)


async def recovered(call: Callable[[], Awaitable[object]], timeout_s: float = 30.0) -> None:
    """Waits until the call succeeds again."""
    async with asyncio.timeout(timeout_s):
        while True:
            try:
                await call()
            except DependencyDown:
                await asyncio.sleep(0.05)
            else:
                return


async def refused(call: Awaitable[object]) -> DependencyDown:
    """Within its deadline."""
    start = time.monotonic()
    with pytest.raises(DependencyDown) as failure:
        await call
    assert time.monotonic() - start < DEADLINE_S + SLACK_S
    return failure.value


class TestHolding:
    async def test_a_lane_nobody_declared_is_empty_and_costs_nothing_held(self, queue: RabbitQueue) -> None:
        await queue.publish(LANE, b"a")
        held = await take(queue)
        assert await queue.take(["nowhere/00"]) is None
        assert await queue.depths(["nowhere/00"]) == {"nowhere/00": 0}
        await queue.ack(held)
        await queue.publish(LANE, b"b")
        assert [(delivery.body, delivery.redelivered) for delivery in await drain(queue)] == [(b"b", False)]

    async def test_a_taker_who_goes_away_loses_nothing_and_returns_nothing_else(self, queue: RabbitQueue) -> None:
        for body in (b"a", b"b"):
            await queue.publish(LANE, body)
        held = await take(queue)
        for _ in range(20):
            taking = asyncio.ensure_future(queue.take([LANE]))
            await asyncio.sleep(0)
            taking.cancel()
            await asyncio.wait([taking])
        again = await take(queue)
        assert again.body == b"b"
        await queue.ack(held)
        await queue.ack(again)
        assert await drain(queue) == []

    async def test_many_takers_of_one_queue_each_get_their_own(self, queue: RabbitQueue) -> None:
        await asyncio.gather(*(queue.publish(LANE, b"%d" % number) for number in range(50)))
        taken = await asyncio.gather(*(take(queue) for _ in range(50)))
        assert sorted(int(delivery.body) for delivery in taken) == list(range(50))
        await asyncio.gather(*(queue.ack(delivery) for delivery in taken))

    async def test_a_large_body_comes_back_whole(self, queue: RabbitQueue) -> None:
        body = bytes(range(256)) * 8192
        await queue.publish(LANE, body)
        assert (await take(queue)).body == body

    async def test_an_empty_body_comes_back(self, queue: RabbitQueue) -> None:
        await queue.publish(LANE, b"")
        assert (await take(queue)).body == b""


class TestHandingOver:
    async def test_a_delivery_is_old_at_four_fifths_of_the_consumer_timeout(self) -> None:
        clock = FakeClock()
        async with opened(shared_server(), new_prefix(), clock=clock, consumer_timeout_s=100.0) as queue:
            await queue.publish(LANE, b"a")
            held = await take(queue)
            clock.advance(79.0)
            assert queue.aging() == []
            clock.advance(1.0)
            assert queue.aging() == [held]

    async def test_handing_over_leaves_one_copy_and_the_old_delivery_is_done_with(self, queue: RabbitQueue) -> None:
        await queue.publish(LANE, b"a")
        held = await take(queue)
        await queue.hand_over(held)
        copy = await take(queue)
        assert (copy.body, copy.redelivered) == (b"a", False)
        await queue.ack(held)  # the owner, when its job ends
        await queue.hand_over(held)
        assert await drain(queue) == []
        await queue.ack(copy)

    async def test_before_the_consumer_timeout_a_hand_over_keeps_the_channel(self, victim: RabbitServer) -> None:
        with short_consumer_timeout(victim):
            async with opened(victim, new_prefix(), consumer_timeout_s=2.0) as queue:
                await queue.publish(LANE, b"running")
                held = await take(queue)
                await eventually(lambda: bool(queue.aging()))
                assert queue.aging() == [held]
                await queue.hand_over(held)
                assert [delivery.redelivered for delivery in await drain(queue)] == [False]

    async def test_past_the_consumer_timeout_the_broker_takes_everything_back(self, victim: RabbitServer) -> None:
        """Proves that the rule holds for pulled deliveries too, which is why we hand over."""
        with short_consumer_timeout(victim):
            async with opened(victim, new_prefix()) as queue:
                await queue.publish(LANE, b"a")
                held = await take(queue)
                async with asyncio.timeout(60.0):
                    while await queue.depths([LANE]) != {LANE: 1}:
                        continue
                await queue.ack(held)
                back = await take(queue)
                assert (back.body, back.redelivered) == (b"a", True)


class TestBrokerLost:
    async def test_a_killed_broker_returns_the_unacked_and_keeps_the_confirmed(self, victim: RabbitServer) -> None:
        async with opened(victim, new_prefix()) as queue:
            await asyncio.to_thread(victim.sync)
            confirmed = [b"%d" % number for number in range(200)]
            await asyncio.gather(*(queue.publish(LANE, body) for body in confirmed))
            held = [await take(queue) for _ in range(20)]

            under_way = [asyncio.ensure_future(queue.publish(LANE, b"late %d" % number)) for number in range(500)]
            await asyncio.sleep(0.05)
            await asyncio.to_thread(victim.kill)
            outcomes = await asyncio.gather(*under_way, return_exceptions=True)
            confirmed += [b"late %d" % number for number, outcome in enumerate(outcomes) if outcome is None]
            assert all(outcome is None or isinstance(outcome, DependencyDown) for outcome in outcomes)
            assert any(outcome is not None for outcome in outcomes), "the broker was killed too late"

            for call in (queue.publish(LANE, b"x"), queue.take([LANE]), queue.depths([LANE]), queue.declare([LANE])):
                await refused(call)
            await queue.ack(held[0])
            await queue.give_back(held[1])

            await asyncio.to_thread(victim.start)
            await recovered(lambda: queue.depths([LANE]))
            await queue.ack(held[2])
            back = await drain(queue)
            assert {delivery.body for delivery in back} >= set(confirmed)
            returned = {delivery.body for delivery in back if delivery.redelivered}
            assert returned == {delivery.body for delivery in held}
            await recovered(lambda: queue.publish(LANE, b"after"))
            assert (await take(queue)).body == b"after"

    async def test_a_connection_cut_by_the_broker_is_made_again_by_the_next_call(self, victim: RabbitServer) -> None:
        async with opened(victim, new_prefix()) as queue:
            await queue.publish(LANE, b"a")
            held = await take(queue)
            await asyncio.to_thread(victim.ctl, "close_all_connections", "maintenance")
            await recovered(lambda: queue.depths([LANE]))
            await queue.give_back(held)
            await recovered(lambda: queue.publish(LANE, b"b"))
            back = await drain(queue)
            assert [(delivery.body, delivery.redelivered) for delivery in back] == [(b"a", True), (b"b", False)]

    async def test_a_broker_that_hangs_costs_a_deadline_and_nothing_held(self, victim: RabbitServer) -> None:
        async with opened(victim, new_prefix()) as queue:
            await queue.publish(LANE, b"held")
            await queue.publish(LANE, b"next")
            held = await take(queue)
            victim.pause()
            try:
                await asyncio.gather(
                    refused(queue.take([LANE])),
                    refused(queue.publish(LANE, b"unsure")),
                    refused(queue.depths([LANE])),
                )
            finally:
                victim.resume()
            await recovered(lambda: queue.depths([LANE]))
            async with asyncio.timeout(60.0):  # the get that was given up is given back
                while b"next" not in [delivery.body for delivery in await drain(queue)]:
                    continue
            await queue.ack(held)
            assert b"held" not in [delivery.body for delivery in await drain(queue)]

    async def test_a_get_that_is_never_answered_costs_the_connection_and_no_job(self, victim: RabbitServer) -> None:
        async with opened(victim, new_prefix()) as queue:
            await queue.publish(LANE, b"held")
            held = await take(queue)
            victim.pause()
            try:
                await refused(queue.take([LANE]))
                await eventually(lambda: queue._link._connection is None)
                await refused(queue.take([LANE]))
            finally:
                victim.resume()
            await recovered(lambda: queue.depths([LANE]))
            await queue.ack(held)
            async with asyncio.timeout(60.0):
                while (back := await drain(queue)) == []:
                    continue
            assert [(delivery.body, delivery.redelivered) for delivery in back] == [(b"held", True)]

    async def test_an_alarm_stops_publishing_and_nothing_else(self, victim: RabbitServer) -> None:
        async with opened(victim, new_prefix()) as queue:
            await queue.publish(LANE, b"before")
            await asyncio.to_thread(victim.ctl, "set_disk_free_limit", "1000000GB")
            try:
                for _ in range(2):
                    assert (await refused(queue.publish(LANE, b"blocked"))).code == "queue_blocked"
                held = await take(queue)
                assert held.body == b"before"
                await queue.ack(held)
                assert await queue.depths([LANE]) == {LANE: 0}
            finally:
                await asyncio.to_thread(victim.ctl, "set_disk_free_limit", "50MB")
            await recovered(lambda: queue.publish(LANE, b"after"))
            assert (await drain(queue))[-1].body == b"after"


class TestFailures:
    async def test_a_broker_that_is_not_there_is_told_at_once(self) -> None:
        queue = RabbitQueue(f"amqp://guest:guest@127.0.0.1:{free_port()}/")
        assert (await refused(queue.open())).code == "queue_unavailable"
        await queue.aclose()

    async def test_a_wrong_password_is_told_and_not_repeated(self) -> None:
        server = shared_server()
        queue = RabbitQueue(server.url.replace("guest:guest", "guest:secret"))
        failure = await refused(queue.open())
        assert "secret" not in str(failure)
        await queue.aclose()

    @pytest.mark.parametrize("url", ["", "redis://host", "amqp://", "amqp://host:port:1/"])
    async def test_an_url_that_names_no_broker_is_refused(self, url: str) -> None:
        with pytest.raises(Misconfigured):
            RabbitQueue(url)

    async def test_a_lane_that_exists_otherwise_is_told_at_start(self, queue: RabbitQueue) -> None:
        other = "other/00"
        connection = await aiormq.connect(shared_server().url)
        channel = await connection.channel()
        name = queue._name(other)
        await channel.queue_declare(name, durable=True, arguments={"x-queue-type": "quorum", "x-delivery-limit": 3})
        await connection.close()
        with pytest.raises(Misconfigured):
            await queue.declare([other])
        await queue.declare([LANE])

    async def test_lanes_that_were_removed_are_made_anew_by_who_looks_at_its_own(self, queue: RabbitQueue) -> None:
        own, lanes = "own/worker", [LANE, "small/01"]
        await queue.declare(lanes)
        await queue.declare_own(own)
        connection = await aiormq.connect(shared_server().url)
        channel = await connection.channel()
        for lane in (own, *lanes):
            await channel.queue_delete(queue._name(lane))
        await connection.close()
        assert not await queue.offer(own, LANE, b"a")
        assert (await refused(queue.publish(LANE, b"a"))).code == LANE_UNKNOWN
        async with opened(shared_server(), queue._prefix, declares=False) as other:
            assert await other.depths([own, *lanes]) == dict.fromkeys([own, *lanes], 0)
        assert (await refused(queue.publish(LANE, b"a"))).code == LANE_UNKNOWN
        assert await queue.depths([own, *lanes]) == dict.fromkeys([own, *lanes], 0)
        for lane in lanes:
            await queue.publish(lane, b"a")
        assert await queue.offer(own, LANE, b"a")
        assert await queue.depths([own, *lanes]) == dict.fromkeys([own, *lanes], 1)

    async def test_a_closed_queue_refuses_everything(self, queue: RabbitQueue) -> None:
        await queue.publish(LANE, b"a")
        held = await take(queue)
        await queue.aclose()
        await queue.aclose()
        for call in (
            queue.declare([LANE]),
            queue.publish(LANE, b"b"),
            queue.take([LANE]),
            queue.ack(held),
            queue.give_back(held),
            queue.depths([LANE]),
        ):
            await refused(call)

    def test_no_drivers_error_passes(self) -> None:
        errors = list(driver_errors())
        assert len(errors) > 40
        for error in errors:
            with pytest.raises(AxonError), translated():
                raise error

    def test_a_connection_that_ends_while_it_is_made_is_a_failure(self) -> None:
        with pytest.raises(DependencyDown), translated():
            raise StopAsyncIteration

    async def test_a_cancellation_of_the_drivers_own_is_a_failure(self) -> None:
        with pytest.raises(DependencyDown), translated():
            raise asyncio.CancelledError

    async def test_a_cancellation_by_the_caller_stays_one(self) -> None:
        async def call() -> None:
            with translated():
                await asyncio.Event().wait()

        calling = asyncio.ensure_future(call())
        await asyncio.sleep(0)
        calling.cancel()
        await asyncio.wait([calling])
        assert calling.cancelled()

    async def test_an_error_of_our_own_code_is_not_taken_for_the_brokers(self) -> None:
        with pytest.raises(KeyError), translated():
            raise KeyError("a bug")

    async def test_a_publisher_that_is_not_open_refuses(self) -> None:
        await refused(Publisher(shared_server().url, name="test").publish("nowhere", b""))


class short_consumer_timeout:
    """The broker's consumer timeout, two seconds for channels opened inside."""

    def __init__(self, server: RabbitServer) -> None:
        self._server = server

    def __enter__(self) -> None:
        self._set(2_000, 200)

    def __exit__(self, *_: object) -> None:
        self._set(1_800_000, 60_000)

    def _set(self, timeout_ms: int, tick_ms: int) -> None:
        for name, value in (("consumer_timeout", timeout_ms), ("channel_tick_interval", tick_ms)):
            self._server.evaluate(f"application:set_env(rabbit, {name}, {value}).")
