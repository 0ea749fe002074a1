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
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from tests.faults.history import Ask, Piece, Told

KINDS = ("reader", "hopper", "repeater", "waiter", "reader", "hopper")
_RETRYABLE_ERRORS = ("dependency_unavailable", "queue_unavailable", "storage_unavailable", "history_unavailable")
"""An answer that broke off for one of these can be read on."""
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

    async def run(self) -> None:
        try:
            async with asyncio.timeout(self.patience.give_up_s):
                while not self.told.num_done:
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
                self._accepted(reply.headers["x-axon-stream"])
                if self.told.kind == "waiter":
                    self._whole(json.loads(await reply.aread()))
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
            options = {"stream": True, "stream_options": {"include_usage": True}} if streams else {}
            asking = self.http.stream(
                "POST", f"{url}/v1/completions", json={**self.ask.body, **options}, headers=headers
            )
        else:
            asking = self.http.stream(
                "GET", f"{url}/v1/streams/{self.told.stream_id}", params={"after": self.told.seq}, headers=headers
            )
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

    def _accepted(self, stream_id: str) -> None:
        told = self.told
        if told.stream_id and told.stream_id != stream_id:
            told.error = f"{told.idempotency_key or 'its stream'} led to {told.stream_id} and to {stream_id}"
        told.stream_id = stream_id
        told.finishes.clear()  # marks right behind the seq are told again
        told.usage.clear()
        if told.idempotency_key:
            told.tell_again()

    async def _refused(self, reply: httpx.Response) -> None:
        """Comes back when it is told to; a refusal for good ends the turn."""
        await reply.aread()
        wait_ms = reply.headers.get("retry-after-ms", "")
        code = reply.json()["error"]["code"]
        self.told.refusals.append(f"{self.clock():.2f} {reply.status_code} {code} {wait_ms}")
        if reply.status_code != 503 or not wait_ms:
            self.told.error = f"{reply.status_code} {reply.text}"
            self.told.num_done = 1
        await asyncio.sleep(min(float(wait_ms or 0) / 1000, _LONGEST_RETRY_S))

    def _whole(self, answer: dict[str, Any]) -> None:
        """One object: all choices, one after the other."""
        seq = 0
        for choice in answer["choices"]:
            seq += len(choice["text"])
            self.told.pieces.append(Piece(self.clock(), seq, choice["index"], choice["text"]))
            self.told.finishes.append(choice["finish_reason"])
        self.told.usage.append(answer["usage"]["completion_tokens"])
        self.told.num_done += 1

    async def _read(self, reply: httpx.Response, leave_after: int | None) -> None:
        lines = reply.aiter_lines()
        num_pieces = 0
        while (line := await self._next(lines)) is not None:
            if line == "data: [DONE]":
                self.told.num_done += 1
            elif line.startswith("data: "):
                event = json.loads(line[6:])
                if "error" in event and self._broke(event["error"]):
                    return
                self._heard(event)
                num_pieces += 1
            elif line:
                self.told.error = f"not a data line: {line}"
            if num_pieces == leave_after:
                return
        if not self.told.num_done:
            raise httpx.ReadError("The stream broke off.")

    async def _next(self, lines: AsyncIterator[str]) -> str | None:
        """The next line; a server that says nothing for too long is left."""
        async with asyncio.timeout(self.patience.stall_s):
            return await anext(lines, None)

    def _broke(self, error: dict[str, Any]) -> bool:
        """Whether the stream's own error only asks to come back."""
        if error["code"] in _RETRYABLE_ERRORS:
            self.told.losses.append(f"{self.clock():.2f} {error['code']} at {self.told.seq}")
            return True
        self.told.error = json.dumps(error)
        return False

    def _heard(self, event: dict[str, Any]) -> None:
        for choice in event.get("choices", ()):
            if choice["text"]:
                self.told.pieces.append(Piece(self.clock(), event["axon"]["seq"], choice["index"], choice["text"]))
            if choice["finish_reason"]:
                self.told.finishes.append(choice["finish_reason"])
        if event.get("usage"):
            self.told.usage.append(event["usage"]["completion_tokens"])
