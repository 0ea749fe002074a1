"""Responds to the orders that reach this process: says what can be profiled here, and records what is asked for."""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import structlog

from axon.errors import AlreadyProfiled, AxonError, InvalidInput
from axon.ports.live import Live
from axon.profiling.orders import (
    KEPT_S,
    ORDERS,
    Began,
    Done,
    GiveUp,
    Here,
    Order,
    Refused,
    RollCall,
    Subject,
    answers,
    asked,
    encode,
    result_key,
)
from axon.profiling.packing import pack
from axon.profiling.profile import Kind, Profile
from axon.profiling.profiler import Profiler
from axon.runtime.tasks import end

_LISTEN_S = 60.0
_RETRY_S = 1.0
_MAX_ORDERS = 16
"""Orders that one process carries out at once, one for each subject as a rule; the next is refused."""

_logger = structlog.get_logger("axon.profiling")

RecordPacked = Callable[[Kind, float], Awaitable[bytes]]
"""Records a profile and returns it packed; raises ``AlreadyProfiled`` and ``InvalidInput``."""


@dataclass(frozen=True, slots=True)
class Recordable:
    """A subject, and how it is profiled from here."""

    subject: Subject
    record: RecordPacked


class Responder:
    """``run`` until cancelled."""

    def __init__(self, live: Live, own: Recordable, engines: Callable[[], Sequence[Recordable]] = lambda: ()) -> None:
        """``engines`` gives those that run now beside the process itself."""
        self._live, self._own, self._engines = live, own, engines
        self._orders: dict[str, asyncio.Task[None]] = {}
        """By id, those that are being carried out."""

    async def run(self) -> None:
        """Listens for orders. One that is lost with a connection is asked again by whoever wants it."""
        try:
            while True:
                try:
                    async with self._live.wakeups.listen(ORDERS) as listener:
                        while True:
                            await self._take(await listener.next(_LISTEN_S) or b"")
                except AxonError:
                    await asyncio.sleep(_RETRY_S)
        finally:
            await end(*self._orders.values())

    async def _take(self, payload: bytes) -> None:
        match asked(payload):
            case RollCall(id=id):
                here = [each.subject for each in self._all()]
                await self._live.wakeups.notify(answers(id), encode(Here(here)))
            case Order() as order if found := self._find(order.subject):
                if len(self._orders) >= _MAX_ORDERS:
                    await self._live.wakeups.notify(answers(order.id), encode(Refused.of(AlreadyProfiled())))
                    return
                task = self._orders[order.id] = asyncio.create_task(self._carry_out(order, found))
                task.add_done_callback(lambda _: self._orders.pop(order.id, None))
            case GiveUp(id=id) if given_up := self._orders.get(id):
                given_up.cancel()

    def _all(self) -> list[Recordable]:
        return [self._own, *self._engines()]

    def _find(self, name: str) -> Recordable | None:
        return next((each for each in self._all() if each.subject.name == name), None)

    async def _carry_out(self, order: Order, found: Recordable) -> None:
        channel, wakeups = answers(order.id), self._live.wakeups
        name, kind = order.subject, str(order.kind)
        with suppress(AxonError):  # the services are away: whoever asked gives up by its own deadline
            try:
                await wakeups.notify(channel, encode(Began()))
                _logger.info("profile.began", process=name, profile=kind, record_s=order.seconds)
                packed = await found.record(order.kind, order.seconds)
                await self._live.cache.put(result_key(order.id), packed, ttl_s=KEPT_S)
            except asyncio.CancelledError:
                _logger.warning("profile.failed", process=name, profile=kind, error="It was given up.")
                raise
            except AxonError as error:
                _logger.warning("profile.failed", process=name, profile=kind, error=str(error))
                await wakeups.notify(channel, encode(Refused.of(error)))
            else:
                _logger.info("profile.ended", process=name, profile=kind)
                await wakeups.notify(channel, encode(Done()))


def this_process(name: str, role: str, profiler: Profiler) -> Recordable:
    """This process itself as a subject."""

    async def record(kind: Kind, seconds: float) -> bytes:
        if kind is Kind.STEPS:
            raise InvalidInput(f"{name} makes no steps: ask for those of an engine.", param="process")
        profile = await recorded(profiler, kind, seconds)
        return await asyncio.to_thread(pack, profile)

    return Recordable(Subject(name=name, role=role, pid=os.getpid(), host=socket.gethostname()), record)


async def recorded(profiler: Profiler, kind: Kind, seconds: float) -> Profile:
    """Records in the profiler's thread; raises ``AlreadyProfiled``. Being cancelled ends the recording."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Profile] = loop.create_future()

    def tell(result: Profile | BaseException) -> None:
        if future.done():
            return
        if isinstance(result, BaseException):
            future.set_exception(AxonError("The profile could not be recorded.", code="profile_failed"))
        else:
            future.set_result(result)

    def done(result: Profile | BaseException) -> None:
        with suppress(RuntimeError):  # the loop is closed: the process ends
            loop.call_soon_threadsafe(tell, result)

    profiler.start(kind, seconds, done)
    try:
        return await future
    except asyncio.CancelledError:
        profiler.stop()
        raise
