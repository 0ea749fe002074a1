"""AMQP connections with explicit reconnection, and confirmed publishing. Knows no lane and no turn.

It uses plain connections, not the driver's robust ones: those retry out of sight and hand out delivery tags that are no
longer valid. A lost connection is replaced by the next call, within that call's deadline. Driver errors are translated.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import aiormq
from aiormq.abc import AbstractChannel
from aiormq.exceptions import AMQPError, ChannelNotFoundEntity, DeliveryError, PublishError
from pamqp.commands import Basic
from pamqp.exceptions import PAMQPException
from yarl import URL

from axon.adapters.service_address import ServiceAddress, address_of
from axon.errors import AxonError, DependencyDown, Misconfigured
from axon.runtime.clock import Clock, SystemClock

TIMEOUT_S = 2.0
"""Deadline of a call in seconds."""
HEARTBEAT_S = 5
DRIVER_ERRORS = (AMQPError, PAMQPException, OSError, TimeoutError, RuntimeError, ValueError, StopAsyncIteration)
"""Errors of the driver; aiormq raises RuntimeError for a closed connection, ValueError for an unexpected frame and
StopAsyncIteration for a connection that ends while it is being made."""
QUORUM: Mapping[str, Any] = {"x-queue-type": "quorum", "x-delivery-limit": 1_000_000}
"""Arguments of every queue. RabbitMQ 4.x drops a message after 20 returns unless a limit is declared, and on 3.10 -1
means one return; a classic queue would be refused as transient on 4.3 or lose its mirrors on 4.0."""
_PERSISTENT = 2
_CLOSING_S = 4.0
_PUBLISHING = "publish"
"""The name of a publisher's channel."""


@contextmanager
def translated() -> Iterator[None]:
    """Raises ``DependencyDown`` in place of a driver's error."""
    try:
        yield
    except AxonError:
        raise
    except asyncio.CancelledError as error:
        # aiormq cancels tasks that wait on a connection that it closes; that is no cancellation of this task.
        if (task := asyncio.current_task()) is not None and task.cancelling():
            raise
        raise down(error) from error
    except Exception as error:
        # aiormq raises a bare Exception in tasks that wait on a connection that closes without a reason.
        if isinstance(error, DRIVER_ERRORS) or type(error) is Exception:
            raise down(error) from error
        raise


def down(error: BaseException) -> DependencyDown:
    """Translates a driver error. The original becomes the cause, which no client reads."""
    if isinstance(error, (PublishError, ChannelNotFoundEntity)):
        return DependencyDown("The queue was never declared.", code="lane_unknown")
    if isinstance(error, DeliveryError):
        return DependencyDown("The queue refused the message.", code="queue_refused")
    if isinstance(error, TimeoutError):
        return DependencyDown("The queue did not answer in time.", code="queue_unavailable")
    return DependencyDown("The queue does not answer.", code="queue_unavailable")


@asynccontextmanager
async def within(timeout_s: float) -> AsyncIterator[None]:
    """A deadline in seconds; driver errors inside are translated."""
    with translated():
        async with asyncio.timeout(timeout_s):
            yield


class Link:
    """One connection and its named channels, opened on demand and reopened after a loss."""

    def __init__(self, url: str | ServiceAddress, *, name: str) -> None:
        self._address, self._name = address_of(url), name
        _checked(self._address.url)
        self._connection: aiormq.Connection | None = None
        self._channels: dict[str, AbstractChannel] = {}
        self._lock = asyncio.Lock()
        self._open = False
        self._leftovers: set[asyncio.Task[None]] = set()

    @property
    def is_open(self) -> bool:
        """Whether ``open`` was called and ``aclose`` was not; says nothing about the broker."""
        return self._open

    async def open(self, *, timeout_s: float) -> None:
        """Connects, so that a wrong address fails at start."""
        self._open = True
        try:
            async with within(timeout_s), self._lock:
                await self._connected()
        except BaseException:
            self._open = False
            raise

    async def aclose(self) -> None:
        """Closes the connection; the broker requeues its unacked deliveries."""
        self._open = False
        self.abandon()
        while self._leftovers:
            await asyncio.wait(self._leftovers)

    async def channel(self, name: str, *, confirms: bool = False) -> AbstractChannel:
        """The channel of this name, opened anew if it was lost; deliveries of a lost channel are the broker's again."""
        channel = self._channels.get(name)
        if self._open and channel is not None and not channel.is_closed and self._alive():
            return channel
        async with self._lock:
            connection = await self._connected()
            channel = self._channels.get(name)
            if channel is None or channel.is_closed:
                channel = await connection.channel(publisher_confirms=confirms)
                self._channels[name] = channel
            return channel

    def drop(self, name: str, channel: AbstractChannel | None = None) -> None:
        """Forgets a channel that is closed or does not answer, and only this one if it is given; the next call opens
        another one."""
        if channel is None or self._channels.get(name) is channel:
            self._channels.pop(name, None)

    def abandon(self) -> None:
        """Gives up a connection that has stopped answering: the broker requeues its deliveries, and the next call opens
        another one."""
        connection, self._connection = self._connection, None
        self._channels.clear()
        if connection is not None:
            self.leave(_close(connection))

    async def unblocked(self) -> None:
        """Waits while the broker has blocked publishing because of an alarm."""
        if self._connection is not None:
            await self._connection.ready()

    async def blocked(self) -> bool:
        try:
            async with asyncio.timeout(0):
                await self.unblocked()
        except TimeoutError:
            return True
        return False

    def leave(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs the coroutine in the background; ``aclose`` waits for it."""
        task = asyncio.create_task(work, name="amqp-leftover")
        self._leftovers.add(task)
        task.add_done_callback(self._leftovers.discard)

    def _alive(self) -> bool:
        return self._connection is not None and not self._connection.is_closed

    async def _connected(self) -> aiormq.Connection:
        if not self._open:
            raise DependencyDown("The queue connection is closed.", code="queue_unavailable")
        if self._connection is None or self._connection.is_closed:
            self._channels.clear()
            self._connection = None
            connection = aiormq.Connection(self._connection_url())
            try:
                await connection.connect()
            except BaseException:
                self.leave(_close(connection))
                raise
            self._connection = connection
        return self._connection

    def _connection_url(self) -> URL:
        """The URL of a new connection, with our parameters and, over TLS, the CA that vouches for the broker."""
        url, ca_file = self._address.parsed(_checked), self._address.ca_file
        trust = {"cafile": str(ca_file)} if url.scheme == "amqps" and ca_file and "cafile" not in url.query else {}
        return url.update_query(heartbeat=str(HEARTBEAT_S), name=self._name, **trust)


class Publisher:
    """Publishes persistent, mandatory messages with publisher confirms. It has a separate connection, because during an
    alarm the broker stops reading a connection that publishes, which would stop acks too."""

    def __init__(
        self, url: str | ServiceAddress, *, name: str, timeout_s: float = TIMEOUT_S, clock: Clock | None = None
    ) -> None:
        self._link = Link(url, name=name)
        self._timeout_s = timeout_s
        self._clock = clock or SystemClock()
        self._retired: AbstractChannel | None = None
        self._retired_at = float("-inf")

    async def open(self) -> None:
        await self._link.open(timeout_s=self._timeout_s)

    async def aclose(self) -> None:
        await self._link.aclose()

    async def publish(
        self, queue: str, body: bytes, headers: Mapping[str, str] | None = None, *, exchange: str = ""
    ) -> None:
        """Returns when a quorum has the message; after ``DependencyDown`` it may have been stored or not.

        With an exchange, ``queue`` is the routing key, to which the message goes when it is dead-lettered.
        """
        try:
            with translated():
                async with asyncio.timeout(self._timeout_s):
                    await self._send(exchange, queue, body, headers)
        except DependencyDown as failure:
            if isinstance(failure.__cause__, TimeoutError) and await self._link.blocked():
                raise DependencyDown("The queue takes no messages now.", code="queue_blocked") from None
            raise

    async def publish_all(self, queue: str, bodies: Sequence[bytes]) -> None:
        """Publishes in order, pipelined; raises if one is not confirmed, and then the others may have been stored."""
        if len(bodies) == 1:
            await self.publish(queue, bodies[0])
            return
        results = await asyncio.gather(*(self.publish(queue, body) for body in bodies), return_exceptions=True)
        for failure in results:
            if failure is not None:
                raise failure

    async def _send(self, exchange: str, queue: str, body: bytes, headers: Mapping[str, str] | None) -> None:
        channel = await self._link.channel(_PUBLISHING, confirms=True)
        await self._link.unblocked()
        properties = Basic.Properties(delivery_mode=_PERSISTENT, headers=dict(headers or {}))
        try:
            await channel.basic_publish(
                body, exchange=exchange, routing_key=queue, properties=properties, mandatory=True
            )
        except PublishError:
            raise
        except DeliveryError:
            self._retire(channel)
            raise

    def _retire(self, channel: AbstractChannel) -> None:
        """Lets the next message open another channel, because this one refused a message.

        A RabbitMQ channel (3.10.8) whose first message to a quorum queue came while the queue had no leader refuses
        every later one too, even when there is a leader again. Messages that wait for their confirmation stay on the
        retired channel, which is closed when the next one is retired, at least one deadline later: until then messages
        go on the new one, be it that it refuses them too.
        """
        now = self._clock.monotonic()
        if now - self._retired_at < self._timeout_s:
            return
        previous, self._retired, self._retired_at = self._retired, channel, now
        self._link.drop(_PUBLISHING, channel)
        if previous is not None and not previous.is_closed:
            self._link.leave(_close(previous))


async def _close(resource: aiormq.Connection | AbstractChannel) -> None:
    """Closes a connection or a channel; does nothing if it is gone already."""
    try:
        async with within(_CLOSING_S):
            await resource.close(aiormq.ConnectionClosed(0, "closed by us"))
    except DependencyDown:
        pass


def _checked(url: str) -> URL:
    """Parses the URL; raises ``Misconfigured`` without quoting it, because it may hold a password."""
    try:
        parsed = URL(url)
    except ValueError as error:
        raise Misconfigured("The queue's URL cannot be read.") from error
    if parsed.scheme not in ("amqp", "amqps") or not parsed.host:
        raise Misconfigured("The queue's URL must be amqp://user:password@host:port/vhost, or amqps://.")
    return parsed
