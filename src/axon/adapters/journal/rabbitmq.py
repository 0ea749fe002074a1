"""The journal on RabbitMQ: one quorum queue of records on their way to the store. Knows no SQL.

A record is durable once a quorum of the broker's nodes has it. The persister copies it to the store later. A barrier
appends a marker after all records so far, and waits until the persister has written the marker to the store.
"""

import asyncio
import itertools
import secrets
from collections.abc import Sequence

from axon.adapters.amqp import QUORUM, TIMEOUT_S, Link, Publisher, within
from axon.adapters.amqp_start_errors import explained
from axon.adapters.service_address import ServiceAddress, address_of
from axon.domain import record
from axon.domain.turn import Turn
from axon.errors import DependencyDown
from axon.ports.store import Markers

JOURNAL_ARGUMENTS = {**QUORUM, "x-single-active-consumer": True}
"""A single active consumer: no marker can be written while another persister still holds earlier records."""
_FIRST_LOOK_S = 0.002
_LONGEST_LOOK_S = 0.05


def journal_name(prefix: str) -> str:
    return f"{prefix}.journal"


class RabbitJournal:
    """Appends records. ``markers`` is the store's; a given ``publisher`` is shared, and its owner closes it."""

    def __init__(
        self,
        url: str | ServiceAddress,
        prefix: str = "axon",
        *,
        markers: Markers,
        publisher: Publisher | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._publisher = publisher or Publisher(url, name=f"{prefix}-journal", timeout_s=timeout_s)
        self._owns_publisher = publisher is None
        self._declaring = Link(url, name=f"{prefix}-journal-declare")
        self._address = address_of(url)
        self._queue = journal_name(prefix)
        self._markers = markers
        self._timeout_s = timeout_s
        self._open = False
        self._under_way: set[asyncio.Future[None]] = set()

    async def open(self) -> None:
        with explained(self._address):
            if self._owns_publisher:
                await self._publisher.open()
            try:
                await self._declare()
            except BaseException:
                await self.aclose()
                raise
        self._open = True

    async def aclose(self) -> None:
        self._open = False
        if self._owns_publisher:
            await self._publisher.aclose()

    async def append(self, turns: Sequence[Turn]) -> None:
        self._check_open()
        if not turns:
            return
        bodies = [_encoded(turn) for turn in turns]
        done = asyncio.get_running_loop().create_future()
        self._under_way.add(done)
        try:
            await self._publisher.publish_all(self._queue, bodies)
        finally:
            self._under_way.discard(done)
            done.set_result(None)

    async def barrier(self, *, timeout_s: float) -> None:
        self._check_open()
        try:
            async with asyncio.timeout(timeout_s):
                await self._pass_barrier()
        except TimeoutError:
            raise DependencyDown("The journal did not catch up in time.", code="journal_behind") from None

    async def _pass_barrier(self) -> None:
        if self._under_way:
            await asyncio.wait(set(self._under_way))  # a marker must not overtake them
        marker = record.Marker(barrier=secrets.token_hex(16))
        await self._publisher.publish(self._queue, record.encode(marker))
        for attempt in itertools.count():
            if await self._markers.seen(marker.barrier):
                return
            await asyncio.sleep(min(_FIRST_LOOK_S * 2**attempt, _LONGEST_LOOK_S))

    async def _declare(self) -> None:
        try:
            await self._declaring.open(timeout_s=self._timeout_s)
            async with within(self._timeout_s):
                channel = await self._declaring.channel("declare")
                await channel.queue_declare(self._queue, durable=True, arguments=JOURNAL_ARGUMENTS)
        finally:
            await self._declaring.aclose()

    def _check_open(self) -> None:
        if not self._open:
            raise DependencyDown("The journal is closed.")


def _encoded(turn: Turn) -> bytes:
    try:
        return record.encode(turn)
    except (UnicodeError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise DependencyDown("The journal cannot take this record.", code=record.REFUSED) from error
