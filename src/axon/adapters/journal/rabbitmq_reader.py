"""The reading end of the journal on RabbitMQ, for one persister at a time. Knows bytes, no turn.

The broker pushes at most ``prefetch`` unacked records, which bounds this process's memory. It feeds one of several
readers; when that one is lost, the next gets all unacked records, in order.
"""

import asyncio
import itertools
from collections import deque
from collections.abc import Sequence

from aiormq.abc import AbstractChannel, DeliveredMessage
from pamqp.commands import Basic

from axon.adapters.amqp import QUORUM, TIMEOUT_S, Link, Publisher, within
from axon.adapters.amqp_start_errors import explained
from axon.adapters.journal.rabbitmq import JOURNAL_ARGUMENTS, journal_name
from axon.adapters.service_address import ServiceAddress, address_of
from axon.ports.journal import Pending, Record
from axon.runtime.clock import Clock, SystemClock


class RabbitJournalReader:
    """One persister's reader. After a lost connection, unacked records are delivered again."""

    def __init__(
        self,
        url: str | ServiceAddress,
        prefix: str = "axon",
        *,
        prefetch: int = 500,
        timeout_s: float = TIMEOUT_S,
        clock: Clock | None = None,
    ) -> None:
        self._link = Link(url, name=f"{prefix}-persister")
        self._address = address_of(url)
        self._queue = journal_name(prefix)
        self._aside = f"{self._queue}.aside"
        self._prefetch = prefetch
        self._timeout_s = timeout_s
        self._numbers = itertools.count(1)
        self._consuming: AbstractChannel | None = None
        self._arrived = asyncio.Event()
        self._waiting: deque[Record] = deque()
        self._tags: dict[int, int] = {}
        self._clock = clock or SystemClock()
        self._publisher = Publisher(url, name=f"{prefix}-persister-aside", timeout_s=timeout_s, clock=self._clock)
        self._held: dict[int, tuple[float, int]] = {}
        """By tag, of the records that are not acked: the monotonic time at which each came, and its bytes."""

    async def open(self) -> None:
        with explained(self._address):
            try:
                await self._publisher.open()
                await self._link.open(timeout_s=self._timeout_s)
                async with within(self._timeout_s):
                    await self._declare(await self._link.channel("read"))
            except BaseException:
                await self.aclose()
                raise

    async def aclose(self) -> None:
        self._forget()
        await self._link.aclose()
        await self._publisher.aclose()

    async def read(self, limit: int) -> Sequence[Record]:
        """Returns the next records; waits while there are none, or while another reader is the active one."""
        while not self._waiting:
            async with within(self._timeout_s):
                await self._consume()
            await self._arrived.wait()
            self._arrived.clear()
        return [self._waiting.popleft() for _ in range(min(limit, len(self._waiting)))]

    async def ack(self, last: Record) -> None:
        channel, tag = self._consuming, self._tags.get(last.tag)
        if channel is None or tag is None or channel.is_closed:
            return  # from a lost connection: the record comes again
        async with within(self._timeout_s):
            await channel.basic_ack(tag, multiple=True, wait=False)
        for number in [number for number in self._tags if number <= last.tag]:
            del self._tags[number]
            self._held.pop(number, None)

    async def pending(self) -> Pending:
        async with within(self._timeout_s):
            channel = await self._link.channel("count")
            answer = await channel.queue_declare(self._queue, passive=True)
        held, num_ready = list(self._held.values()), answer.message_count or 0
        num_bytes = sum(size for _, size in held)
        mean = num_bytes / len(held) if held else 0.0
        return Pending(
            num_records=len(held) + num_ready,
            oldest_s=self._clock.monotonic() - min(at for at, _ in held) if held else 0.0,
            num_bytes=num_bytes + round(mean * num_ready),
        )

    async def set_aside(self, record: Record, reason: str) -> None:
        await self._publisher.publish(self._aside, record.body, {"reason": reason})

    async def _consume(self) -> None:
        """Starts consuming, also after a loss; records and tags of a lost channel are dropped."""
        channel = await self._link.channel("read")
        if channel is self._consuming:
            return
        self._forget()
        channel.closing.add_done_callback(lambda _closed: self._arrived.set())
        channel.on_consumer_cancel_callbacks.add(self._cancelled)
        try:
            await self._declare(channel)
            # Per consumer: RabbitMQ 4.3 refuses a QoS for the whole channel.
            await channel.basic_qos(prefetch_count=self._prefetch)
            await channel.basic_consume(self._queue, self._take)
        except BaseException:
            # The broker may still make this the active consumer, with nobody here to read.
            self._forget()
            self._link.abandon()
            raise
        self._consuming = channel

    async def _declare(self, channel: AbstractChannel) -> None:
        await channel.queue_declare(self._queue, durable=True, arguments=JOURNAL_ARGUMENTS)
        await channel.queue_declare(self._aside, durable=True, arguments=dict(QUORUM))

    async def _take(self, message: DeliveredMessage) -> None:
        delivery = message.delivery
        if not isinstance(delivery, Basic.Deliver) or delivery.delivery_tag is None:
            return
        record = Record(tag=next(self._numbers), body=message.body)
        self._tags[record.tag] = delivery.delivery_tag
        self._held[record.tag] = self._clock.monotonic(), len(message.body)
        self._waiting.append(record)
        self._arrived.set()

    def _cancelled(self, _frame: Basic.Cancel) -> None:
        """Handles the end of the consumer by the broker, as when the queue's leader moves."""
        self._link.drop("read")
        self._arrived.set()

    def _forget(self) -> None:
        self._consuming = None
        self._waiting.clear()
        self._tags.clear()
        self._held.clear()
