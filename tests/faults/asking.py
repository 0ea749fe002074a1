"""One turn of one client, over as many connections as it takes. Knows no fault; notes all it is told.

A reader reads to the end, a hopper leaves at random pieces and goes on elsewhere, a repeater sends the same request
again under its idempotency key, a waiter does so without streaming. All of them come back: after a 503 to any of the
gateways, after a loss to another one than that which it was lost at.
"""

import asyncio
import contextlib
import json
import random
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.faults.doors import Door, door_of
from tests.faults.history import Ask, Told

KINDS = ("reader", "hopper", "repeater", "waiter", "reader", "hopper")
_RETRYABLE_ERRORS = (
    "dependency_unavailable",
    "queue_unavailable",
    "storage_unavailable",
    "history_unavailable",
    "api_error",
)
"""An answer that broke off for one of these can be read on. The last is all that Anthropic's API has for them: a turn
that failed says it each time, until the client gives up."""
_COME_BACK = (503, 529)
"""The statuses of a refusal that is not for good; the second is Anthropic's."""
_RETRY_S = 0.2
_LONGEST_RETRY_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a client waits for what."""

    stall_s: float = 4.0
    """A stream that says nothing for so long is left, and read on elsewhere."""
    answer_s: float = 20.0
    give_up_s: float = 120.0


@dataclass(slots=True, kw_only=True)
class Asking:
    """One turn: ``run`` until it has ended or the client has given up."""

    http: httpx.AsyncClient
    urls: Callable[[], Sequence[str]]
    """The gateways, as they are known now."""
    key: str
    rng: random.Random
    ask: Ask
    told: Told
    patience: Patience
    clock: Callable[[], float]
    lost_at: str = ""
    """The gateway of the last loss."""
    door: Door = field(init=False)

    def __post_init__(self) -> None:
        self.door = door_of(self.ask, self.told, self.clock)

    async def run(self) -> None:
        try:
            async with asyncio.timeout(self.patience.give_up_s):
                while not (self.told.num_done or self.told.error):
                    await self._attempt()
        except TimeoutError:
            self.told.error = self.told.error or "gave up"
        self.told.ended_at = self.clock()

    async def _attempt(self) -> None:
        """One connection. A repeater and a waiter ask again under their key and are told everything from the start."""
        again = not self.told.stream_id or bool(self.told.idempotency_key)
        urls = self.urls()
        url = self.rng.choice([each for each in urls if each != self.lost_at] or urls)
        leave_after = self.rng.randint(1, 40) if self.told.kind == "hopper" else None
        try:
            async with self._connection(url, again) as reply:
                if reply.status_code != 200:
                    await self._refused(reply)
                    return
                self._accepted(reply.headers["x-axon-stream"], again)
                if self.told.kind == "waiter":
                    self.door.whole(json.loads(await reply.aread()))
                else:
                    await self._read(reply, leave_after)
        except (httpx.TransportError, TimeoutError) as error:
            self.told.losses.append(f"{self.clock():.2f} {type(error).__name__} at {self.told.seq}")
            self.lost_at = url
            await asyncio.sleep(_RETRY_S)

    @contextlib.asynccontextmanager
    async def _connection(self, url: str, again: bool) -> AsyncIterator[httpx.Response]:
        asked_at = time.monotonic()
        headers = {"Authorization": f"Bearer {self.key}"}
        streams = self.told.kind != "waiter"
        if again:
            headers |= {"Idempotency-Key": self.told.idempotency_key} if self.told.idempotency_key else {}
            body = self.door.body(streams=streams)
            asking = self.http.stream("POST", f"{url}{self.ask.route}", json=body, headers=headers)
        else:
            path, query = self.door.resumed()
            asking = self.http.stream("GET", f"{url}{path}", params=query, headers=headers)
        try:
            async with asking as reply:
                self._waited(asked_at)
                yield reply
        except httpx.ReadTimeout:
            self._waited(asked_at)
            raise

    def _waited(self, asked_at: float) -> None:
        """For the first byte of a stream; a whole answer takes as long as it takes."""
        if self.told.kind != "waiter":
            self.told.slowest_answer_s = max(self.told.slowest_answer_s, time.monotonic() - asked_at)

    def _accepted(self, stream_id: str, again: bool) -> None:
        told = self.told
        if told.stream_id and told.stream_id != stream_id:
            told.error = f"{told.idempotency_key or 'its stream'} led to {told.stream_id} and to {stream_id}"
        told.stream_id = stream_id
        told.finishes.clear()  # marks right behind the seq are told again
        told.ends.clear()
        told.usage.clear()
        if told.idempotency_key:
            told.tell_again()
        self.door.connected(anew=again)

    async def _refused(self, reply: httpx.Response) -> None:
        """Comes back when it is told to; a refusal for good ends the turn."""
        await reply.aread()
        wait_ms = reply.headers.get("retry-after-ms", "")
        error = reply.json()["error"]
        code = error["code"] if "code" in error else error["type"]
        self.told.refusals.append(f"{self.clock():.2f} {reply.status_code} {code} {wait_ms}")
        if reply.status_code not in _COME_BACK or not wait_ms:
            self.told.error = f"{reply.status_code} {reply.text}"
            self.told.num_done = 1
        await asyncio.sleep(min(float(wait_ms or 0) / 1000, _LONGEST_RETRY_S))

    async def _read(self, reply: httpx.Response, leave_after: int | None) -> None:
        lines = reply.aiter_lines()
        num_pieces = 0
        while (line := await self._next(lines)) is not None:
            error = self.door.line(line)
            if error is not None and self._broke(error):
                return
            num_pieces += line.startswith("data: {")
            if num_pieces == leave_after:
                return
        if not self.told.num_done:
            raise httpx.ReadError("The stream broke off.")

    async def _next(self, lines: AsyncIterator[str]) -> str | None:
        """The next line; a server that says nothing for too long is left."""
        async with asyncio.timeout(self.patience.stall_s):
            return await anext(lines, None)

    def _broke(self, error: Mapping[str, Any]) -> bool:
        """Whether the stream's own error only asks to come back."""
        if error["code"] in _RETRYABLE_ERRORS:
            self.told.losses.append(f"{self.clock():.2f} {error['code']} at {self.told.seq}")
            return True
        self.told.error = json.dumps(error)
        return False
