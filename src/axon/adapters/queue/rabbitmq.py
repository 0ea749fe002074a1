"""The queue on RabbitMQ: a quorum queue for each lane, polled in the order that the caller gives. Knows bodies, no job.

It works with RabbitMQ 3.10 to 4.x: durable quorum queues only, by name (4.3 refuses transient ones that are not
exclusive), no QoS at all since nothing is pushed (4.3 refuses global QoS), a declared delivery limit (4.x drops
after 20 otherwise).

Lanes are polled by ``basic.get`` one after the other: each get takes a message, so they cannot be pipelined, and only
a queue's leader knows whether it is empty. Hints tell a worker with many lanes which to poll.

A worker's own lane is bound to a headers exchange, so that the routing key can name the tenant's lane: a message
that is dead-lettered after its time in the own lane (at least once) keeps that key.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from aiormq.abc import AbstractChannel, DeliveredMessage
from aiormq.exceptions import (
    ChannelAccessRefused,
    ChannelNotFoundEntity,
    ChannelPreconditionFailed,
    DeliveryError,
    PublishError,
)
from pamqp.commands import Basic

from axon.adapters.amqp import QUORUM, TIMEOUT_S, Link, Publisher, translated, within
from axon.adapters.amqp_start_errors import explained
from axon.adapters.service_address import ServiceAddress, address_of
from axon.errors import DependencyDown, Misconfigured
from axon.ports.queue import OWN_MAX_WAITING, OWN_TTL_S, Delivery
from axon.runtime.clock import Clock, SystemClock

CONSUMER_TIMEOUT_S = 1800.0
"""RabbitMQ's default consumer timeout in seconds: it closes a channel that holds a delivery for longer."""
_HAND_OVER_AT = 0.8
_STUCK_S = 3.0
"""Seconds after which a get whose caller was cancelled is considered lost."""
_OWN: Mapping[str, Any] = {
    **QUORUM,
    "x-max-length": OWN_MAX_WAITING,
    "x-overflow": "reject-publish",
    "x-message-ttl": int(OWN_TTL_S * 1000),
    "x-dead-letter-exchange": "",
    "x-dead-letter-strategy": "at-least-once",
    "x-expires": 24 * 3600 * 1000,
}
"""Arguments of own lanes. They must never change, because a queue cannot be redeclared with others. The default
dead-letter strategy (at most once) loses messages. An own lane unused for a day is deleted."""
_ALL = 0
"""Delivery tag that means every unacked delivery on the channel."""


@dataclass(frozen=True, slots=True)
class _Held:
    """A held delivery: the broker's delivery tag on this connection, and the monotonic time since when it is held."""

    delivery: Delivery
    tag: int
    since: float


class RabbitQueue:
    """Takes and publishes, on two connections. Held deliveries return to their lanes when the taking connection is
    lost.

    After such a loss, an ack or a return of a held delivery does nothing and is no error.
    """

    def __init__(
        self,
        url: str | ServiceAddress,
        prefix: str = "axon",
        *,
        timeout_s: float = TIMEOUT_S,
        consumer_timeout_s: float = CONSUMER_TIMEOUT_S,
        clock: Clock | None = None,
    ) -> None:
        self._link = Link(url, name=f"{prefix}-take")
        self._address = address_of(url)
        self._prefix = prefix
        self._timeout_s = timeout_s
        self._hand_over_s = _HAND_OVER_AT * consumer_timeout_s
        self._clock = clock or SystemClock()
        self.publisher = Publisher(url, name=f"{prefix}-publish", timeout_s=timeout_s, clock=self._clock)
        self._asking = asyncio.Lock()
        self._known: set[str] = set()
        self._declared: set[str] = set()
        """Lanes that this taker has declared, without own lanes."""
        self._owned: set[str] = set()
        self._has_exchange = False
        self._tags = itertools.count(1)
        self._taking: AbstractChannel | None = None
        self._held: dict[int, _Held] = {}

    async def open(self) -> None:
        with explained(self._address):
            await self.publisher.open()
            try:
                await self._link.open(timeout_s=self._timeout_s)
            except BaseException:
                await self.publisher.aclose()
                raise

    async def aclose(self) -> None:
        """Returns all unacked deliveries, in the order they were taken."""
        channel, self._taking = self._taking, None
        self._held.clear()
        if channel is not None and not channel.is_closed:
            with suppress(DependencyDown):
                async with within(self._timeout_s):
                    await channel.basic_nack(_ALL, multiple=True, requeue=True, wait=False)
        await self._link.aclose()
        await self.publisher.aclose()

    async def declare(self, lanes: Sequence[str]) -> None:
        """Creates the lanes. Call it at start, long before they are used: a single node that is killed within half a
        second of a queue's declaration loses the queue with its messages (seen on 3.10.8)."""
        for lane in lanes:
            async with within(self._timeout_s), self._asking:
                await self._declare(lane)
            self._declared.add(lane)

    async def publish(self, lane: str, body: bytes) -> None:
        await self.publisher.publish(self._name(lane), body)

    async def declare_own(self, own: str) -> None:
        async with within(self._timeout_s), self._asking:
            await self._declare(own, _OWN)
            channel = await self._declare_exchange()
            arguments: dict[str, Any] = {"x-match": "all", "own": own}
            await channel.queue_bind(self._name(own), self._exchange, arguments=arguments)
        self._owned.add(own)

    async def offer(self, own: str, lane: str, body: bytes) -> bool:
        if not self._has_exchange:
            async with within(self._timeout_s), self._asking:
                await self._declare_exchange()
        try:
            await self.publisher.publish(self._name(lane), body, {"own": own}, exchange=self._exchange)
        except DependencyDown as failure:
            if isinstance(failure.__cause__, (PublishError, DeliveryError)):
                return False  # no queue is bound, or it is full
            self._has_exchange = False  # publishing to a missing exchange closes the channel for all
            raise
        return True

    async def take(self, lanes: Sequence[str]) -> Delivery | None:
        async with within(self._timeout_s):
            for lane in lanes:
                if await self._exists(lane) and (delivery := await self._get(lane)) is not None:
                    return delivery
        return None

    async def ack(self, delivery: Delivery) -> None:
        await self._answer(delivery, lambda channel, tag: channel.basic_ack(tag, wait=False))

    async def give_back(self, delivery: Delivery) -> None:
        """Returns a delivery; it comes before new jobs and after those returned earlier."""
        await self._answer(delivery, lambda channel, tag: channel.basic_nack(tag, requeue=True, wait=False))

    async def depths(self, lanes: Sequence[str]) -> Mapping[str, int]:
        """Counts waiting jobs. A returned delivery is counted a moment later, because the broker does not confirm
        it. Lanes that this taker has declared are created again if they are gone."""
        counts = {}
        async with within(self._timeout_s):
            for lane in lanes:
                count = await self._count(lane)
                if count is None and lane in self._owned:
                    await self.declare_own(lane)
                counts[lane] = count or 0
        return counts

    def aging(self) -> Sequence[Delivery]:
        """Deliveries held for 80% of the consumer timeout, after which the broker would requeue all of them."""
        latest = self._clock.monotonic() - self._hand_over_s
        return [held.delivery for held in self._held.values() if held.since <= latest]

    async def hand_over(self, delivery: Delivery) -> None:
        """Publishes a copy to the end of the lane and acks this delivery; the job's owner keeps running it.

        A worker that takes the copy finds the job owned and parks it. A crash between the confirm and the ack leaves
        both deliveries, which at-least-once delivery allows. A delivery that has already returned needs no copy.
        """
        if delivery.tag in self._held:
            await self.publish(delivery.lane, delivery.body)
            await self.ack(delivery)

    async def keep_young(self) -> None:
        """Hands over deliveries that near the consumer timeout, until cancelled."""
        while True:
            await asyncio.sleep(self._hand_over_s / 20)
            for delivery in self.aging():
                with suppress(DependencyDown):  # tried again in the next round
                    await self.hand_over(delivery)

    async def _declare_exchange(self) -> AbstractChannel:
        channel = await self._link.channel("ask")
        await channel.exchange_declare(self._exchange, exchange_type="headers", durable=True)
        self._has_exchange = True
        return channel

    async def _declare(self, lane: str, arguments: Mapping[str, Any] = QUORUM) -> int:
        """Declares a queue; returns the number of messages in it."""
        channel = await self._link.channel("ask")
        try:
            answer = await channel.queue_declare(self._name(lane), durable=True, arguments=dict(arguments))
        except BaseException as error:
            self._link.drop("ask")
            if isinstance(error, (ChannelPreconditionFailed, ChannelAccessRefused)):
                raise Misconfigured(f"Lane {lane!r} exists with other arguments, or may not be made.") from error
            raise
        self._known.add(lane)
        return answer.message_count or 0

    async def _exists(self, lane: str) -> bool:
        """Whether the lane exists. A get from a missing queue would close the channel and requeue all held
        deliveries."""
        if lane not in self._known and await self._count(lane) is not None:
            self._known.add(lane)
        return lane in self._known

    async def _count(self, lane: str) -> int | None:
        """Number of waiting jobs; None when the lane does not exist. A lane that this taker has declared is created
        again. Calls are serialised, because the broker closes the channel if the queue is missing."""
        async with self._asking:
            if lane in self._declared:
                return await self._declare(lane)
            channel = await self._link.channel("ask")
            try:
                answer = await channel.queue_declare(self._name(lane), passive=True)
            except BaseException as error:
                self._link.drop("ask")
                if isinstance(error, ChannelNotFoundEntity):
                    return None
                raise
        return answer.message_count or 0

    async def _get(self, lane: str) -> Delivery | None:
        """Takes one message. If the caller is cancelled, the get goes on in the background and its message is returned:
        breaking it off would close the channel and requeue all held deliveries."""
        channel = await self._link.channel("take")
        if channel is not self._taking:
            self._taking = channel
            self._held.clear()
        getting = asyncio.ensure_future(channel.basic_get(self._name(lane)))
        try:
            message = await asyncio.shield(getting)
        except ChannelNotFoundEntity:
            self._known.discard(lane)
            raise
        except asyncio.CancelledError:
            self._link.leave(self._return_late(channel, getting))
            raise
        return self._hold(lane, message)

    async def _return_late(self, channel: AbstractChannel, getting: asyncio.Future[DeliveredMessage]) -> None:
        """Returns the message of a cancelled get. A get from a queue without a leader may block its channel for ever
        (seen on 3.10.8); then the connection is given up with all it holds."""
        with suppress(DependencyDown), translated():
            await asyncio.wait([getting], timeout=_STUCK_S)
            if not getting.done() and channel is self._taking:
                self._link.abandon()
            got = (await getting).delivery
            if isinstance(got, Basic.GetOk) and got.delivery_tag is not None:
                await channel.basic_nack(got.delivery_tag, requeue=True, wait=False)

    def _hold(self, lane: str, message: DeliveredMessage) -> Delivery | None:
        got = message.delivery
        if not isinstance(got, Basic.GetOk):
            return None
        assert got.delivery_tag is not None
        home = (got.routing_key or "").removeprefix(self._name(""))
        delivery = Delivery(
            tag=next(self._tags),
            lane=home,
            body=message.body,
            redelivered=bool(got.redelivered),
            own=home != lane,
        )
        self._held[delivery.tag] = _Held(delivery, got.delivery_tag, self._clock.monotonic())
        return delivery

    async def _answer(self, delivery: Delivery, send: Callable[[AbstractChannel, int], Awaitable[None]]) -> None:
        """Sends an ack or a return, once: a second one would close the channel."""
        if not self._link.is_open:
            raise DependencyDown("The queue connection is closed.", code="queue_unavailable")
        channel, held = self._taking, self._held.pop(delivery.tag, None)
        if held is None or channel is None or channel.is_closed:
            return
        try:
            async with within(self._timeout_s):
                await send(channel, held.tag)
        except BaseException as error:
            if channel is self._taking and not channel.is_closed:
                self._held[delivery.tag] = held  # not sent: the frame never entered the driver's queue
            elif isinstance(error, DependencyDown):
                return  # the broker has requeued it
            raise

    @property
    def _exchange(self) -> str:
        return f"{self._prefix}.own"

    def _name(self, lane: str) -> str:
        return f"{self._prefix}.lane.{lane}"
