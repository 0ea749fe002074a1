"""A front's connection to the hub: calls with a deadline, and subscriptions. Never reconnects.

The hub's death ends its fronts, so a connection that is lost is lost for good.
"""

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from axon.adapters.remote.frames import (
    FAILURE,
    LEAVE,
    LISTEN,
    NOTIFIED,
    RESULT,
    Failure,
    answered,
    frame,
)
from axon.adapters.remote.methods import Method
from axon.adapters.remote.path import reachable
from axon.errors import DependencyDown
from axon.runtime.clock import Clock
from axon.runtime.framing import Framer

_CALL_S = 30.0
"""A call without an answer for so long fails."""
_SWEEP_S = 1.0
_FAILURE = msgspec.msgpack.Decoder(Failure)
_PAYLOAD = msgspec.msgpack.Decoder(bytes)


@dataclass(frozen=True, slots=True)
class _Call:
    """A call that waits for its answer, and since when, in monotonic seconds."""

    method: Method
    answer: "asyncio.Future[Any]"
    since: float


class Link(asyncio.Protocol):
    """One connection for all ports of a process."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path, self._clock = path, clock
        self._transport: asyncio.Transport | None = None
        self._frames = Framer()
        self._numbers = itertools.count(1)
        self._calls: dict[int, _Call] = {}
        """By number, and so the oldest first."""
        self._listeners: dict[int, Callable[[bytes], None]] = {}
        self._sweeping: asyncio.TimerHandle | None = None

    async def open(self) -> None:
        try:
            with reachable(self._path) as address:
                await asyncio.get_running_loop().create_unix_connection(lambda: self, address)
        except OSError as error:
            raise DependencyDown(f"The hub does not answer at {self._path}: {error.strerror}.") from error
        self._sweep()

    async def aclose(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
        if self._transport is not None:
            self._transport.abort()
        self._fail_all()

    async def call(self, method: Method, values: tuple[object, ...]) -> Any:
        """Calls a method at the hub; raises what it raises, and ``DependencyDown`` if there is no answer."""
        number = next(self._numbers)
        answer = asyncio.get_running_loop().create_future()
        self._calls[number] = _Call(method, answer, self._clock.monotonic())
        try:
            self._send(frame(number, method.name, values))
            return await answer
        finally:
            self._calls.pop(number, None)

    def listen(self, channel: str, notified: Callable[[bytes], None]) -> int:
        """Subscribes to a channel; calls that follow find the subscription in place. Returns its number."""
        number = next(self._numbers)
        self._send(frame(number, LISTEN, channel))
        self._listeners[number] = notified
        return number

    def leave(self, number: int) -> None:
        """Ends a subscription."""
        del self._listeners[number]
        if self._transport is not None:
            self._transport.write(frame(number, LEAVE, ""))

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._fail_all()

    def data_received(self, data: bytes) -> None:
        try:
            for body in self._frames.feed(data):
                self._take(*answered(body))
        except (ValueError, msgspec.MsgspecError):
            assert self._transport is not None
            self._transport.abort()  # it cannot be told where the next frame begins

    def _take(self, number: int, kind: int, raw: Any) -> None:
        if kind == NOTIFIED:
            if notified := self._listeners.get(number):
                notified(_PAYLOAD.decode(raw))
            return
        call = self._calls.get(number)
        if call is None or call.answer.done():
            return  # its caller has gone
        if kind == RESULT:
            call.answer.set_result(call.method.result.decode(raw))
        else:
            assert kind == FAILURE
            call.answer.set_exception(_FAILURE.decode(raw).error())

    def _send(self, data: bytes) -> None:
        if self._transport is None:
            raise DependencyDown("The connection to the hub is lost.")
        self._transport.write(data)

    def _sweep(self) -> None:
        """Fails the calls that have waited for too long."""
        too_old = self._clock.monotonic() - _CALL_S
        for call in itertools.takewhile(lambda call: call.since < too_old, self._calls.values()):
            _fail(call, f"The hub has not answered {call.method.name} for {_CALL_S:g} s.")
        self._sweeping = asyncio.get_running_loop().call_later(_SWEEP_S, self._sweep)

    def _fail_all(self) -> None:
        for call in self._calls.values():
            _fail(call, "The connection to the hub is lost.")


def _fail(call: _Call, message: str) -> None:
    if not call.answer.done():
        call.answer.set_exception(DependencyDown(message))
