"""Clients of several kinds that ask, lose their connections, come back, and note all they are told. Knows no fault.

Some read to the end, some leave at a random piece and go on elsewhere, some send the same request again under its
idempotency key. All of them come back after a loss and after a 503, to any of the servers. Every choice follows from
the seed; what the servers do in between does not.
"""

import asyncio
import contextlib
import itertools
import json
import random
import threading
import time
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any

import httpx

from tests.faults.history import Ask, History, Told
from tests.journeys.server import Server
from tests.services.process import wait_for

_KINDS = ("reader", "hopper", "repeater")
_RETRYABLE_ERRORS = ("dependency_unavailable", "queue_unavailable", "storage_unavailable", "journal_behind")
"""An answer that broke off for one of these can be read on."""
_RETRY_S = 0.2
_PROMPT = "The quick brown fox jumps over the lazy dog, then sleeps. "


def echo_asks(num_tokens: int) -> list[Ask]:
    """Greedy and seeded, of characters that are one token each: a token's seq is the length of the text up to it."""
    body = {"model": "echo", "max_tokens": num_tokens, "ignore_eos": True, "stream_options": {"include_usage": True}}
    greedy = [
        Ask(name=f"greedy-{number}-{num_tokens}", body={**body, "prompt": f"{number} {_PROMPT}", "temperature": 0})
        for number in range(3)
    ]
    seeded = [
        Ask(name=f"seeded-{number}-{num_tokens}", body={**body, "prompt": _PROMPT, "temperature": 1, "seed": number})
        for number in range(3)
    ]
    return greedy + seeded


def undisturbed(server: Server, asks: Sequence[Ask]) -> list[Ask]:
    """The asks with their answers, had before anything goes wrong."""

    def answered(ask: Ask) -> Ask:
        body = {name: value for name, value in ask.body.items() if name != "stream_options"}
        return replace(ask, text=http.post("/v1/completions", json=body).json()["choices"][0]["text"])

    with server.client() as http, ThreadPoolExecutor(len(asks)) as at_once:
        return list(at_once.map(answered, asks))


class Workload:
    """Clients at work for the length of a block: each asks ``turns_each`` times, and on until ``finish``."""

    def __init__(
        self,
        servers: Sequence[Server],
        asks: Sequence[Ask],
        *,
        seed: int,
        num_clients: int = 12,
        turns_each: int = 2,
        stall_s: float = 4.0,
        answer_s: float = 20.0,
        give_up_s: float = 90.0,
    ) -> None:
        self.history = History(seed=seed, asks={ask.name: ask for ask in asks})
        self._servers = list(servers)
        self._key = servers[0].key
        self._asks = list(asks)
        self._num_clients, self._turns_each = num_clients, turns_each
        self._stall_s, self._answer_s, self._give_up_s = stall_s, answer_s, give_up_s
        self._finishing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="workload", daemon=True)
        self._began = 0.0
        self._failure: BaseException | None = None

    def __enter__(self) -> "Workload":
        self._began = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, _error: BaseException | None, _: TracebackType | None) -> None:
        self._finishing.set()
        if kind is None:
            self.finish()

    @property
    def now(self) -> float:
        return time.monotonic() - self._began

    def wait_for_running(self, num_turns: int) -> None:
        """Returns while so many turns have tokens and are not over."""
        wait_for(lambda: len(self.history.running) >= num_turns or self._failure, f"{num_turns} streams run", 30.0)
        assert self._failure is None, self._failure

    def wait_for_ended(self, num_turns: int, *, asked_after: float, timeout_s: float = 60.0) -> None:
        """Returns when so many turns that were asked after a time have ended."""

        def enough() -> bool:
            turns = list(self.history.turns)
            return sum(told.asked_at > asked_after and told.ended_at is not None for told in turns) >= num_turns

        wait_for(enough, f"{num_turns} new turns end", timeout_s)

    def finish(self, timeout_s: float = 120.0) -> History:
        """Lets every client end what it has begun."""
        self._finishing.set()
        self._thread.join(timeout_s)
        assert not self._thread.is_alive(), f"clients still wait after {timeout_s:g} s"
        if self._failure is not None:
            raise self._failure
        return self.history

    def _run(self) -> None:
        try:
            asyncio.run(self._clients())
        except BaseException as error:
            self._failure = error

    async def _clients(self) -> None:
        async with asyncio.TaskGroup() as clients:
            for number in range(self._num_clients):
                clients.create_task(self._client(number))

    async def _client(self, number: int) -> None:
        rng = random.Random(f"{self.history.seed}/{number}")
        kind = _KINDS[number % len(_KINDS)]
        headers = {"Authorization": f"Bearer {self._key}"}
        async with httpx.AsyncClient(headers=headers, timeout=httpx.Timeout(self._answer_s, connect=2.0)) as http:
            for turn in itertools.count():
                if turn >= self._turns_each and self._finishing.is_set():
                    return
                ask = rng.choice(self._asks)
                told = Told(client=number, ask=ask.name, asked_at=self.now)
                if kind == "repeater":
                    told.idempotency_key = f"{self.history.seed}-{number}-{turn}"
                self.history.turns.append(told)
                await _Asking(self, http, rng, ask, told, hops=kind == "hopper").run()

    # --- what one asking needs

    @property
    def servers(self) -> list[Server]:
        return self._servers

    @property
    def stall_s(self) -> float:
        return self._stall_s

    @property
    def give_up_s(self) -> float:
        return self._give_up_s


@dataclass(slots=True)
class _Asking:
    """One turn, over as many connections as it takes."""

    workload: Workload
    http: httpx.AsyncClient
    rng: random.Random
    ask: Ask
    told: Told
    hops: bool

    async def run(self) -> None:
        try:
            async with asyncio.timeout(self.workload.give_up_s):
                while not self.told.num_done:
                    await self._attempt()
        except TimeoutError:
            self.told.error = self.told.error or "gave up"
        self.told.ended_at = self.workload.now

    async def _attempt(self) -> None:
        """One connection. A repeater asks again under its key and is told everything from the start."""
        again = not self.told.stream_id or bool(self.told.idempotency_key)
        server = self.rng.choice(self.workload.servers)
        try:
            async with self._connection(server, again) as reply:
                if reply.status_code != 200:
                    await self._refused(reply)
                    return
                self._accepted(reply.headers["x-axon-stream"])
                await self._read(reply, leave_after=self.rng.randint(1, 40) if self.hops else None)
        except (httpx.TransportError, TimeoutError) as error:
            self.told.losses.append(f"{self.workload.now:.2f} {type(error).__name__} at {self.told.seq}")
            await asyncio.sleep(_RETRY_S)

    @contextlib.asynccontextmanager
    async def _connection(self, server: Server, again: bool) -> AsyncIterator[httpx.Response]:
        asked_at = time.monotonic()
        if again:
            key = {"Idempotency-Key": self.told.idempotency_key} if self.told.idempotency_key else {}
            body = {**self.ask.body, "stream": True}
            asking = self.http.stream("POST", f"{server.url}/v1/completions", json=body, headers=key)
        else:
            url = f"{server.url}/v1/streams/{self.told.stream_id}"
            asking = self.http.stream("GET", url, params={"after": self.told.seq})
        try:
            async with asking as reply:
                self._waited(asked_at)
                yield reply
        except httpx.ReadTimeout:
            self._waited(asked_at)
            raise

    def _waited(self, asked_at: float) -> None:
        self.told.slowest_answer_s = max(self.told.slowest_answer_s, time.monotonic() - asked_at)

    def _accepted(self, stream_id: str) -> None:
        told = self.told
        if told.stream_id and told.stream_id != stream_id:
            told.error = f"{told.idempotency_key} led to {told.stream_id} and to {stream_id}"
        told.stream_id = stream_id
        told.finishes.clear()  # marks right behind the seq are told again
        told.usage.clear()
        if told.idempotency_key:
            told.pieces.clear()

    async def _refused(self, reply: httpx.Response) -> None:
        """Comes back when it is told to; a refusal for good ends the turn."""
        await reply.aread()
        wait_ms = reply.headers.get("retry-after-ms", "")
        code = reply.json()["error"]["code"]
        self.told.refusals.append(f"{self.workload.now:.2f} {reply.status_code} {code} {wait_ms}")
        if reply.status_code != 503 or not wait_ms:
            self.told.error = f"{reply.status_code} {reply.text}"
            self.told.num_done = 1
        await asyncio.sleep(min(float(wait_ms or 0) / 1000, 1.0))

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
                num_pieces += self._heard(event)
            elif line:
                self.told.error = f"not a data line: {line}"
            if num_pieces == leave_after:
                return
        if not self.told.num_done:
            raise httpx.ReadError("The stream broke off.")

    async def _next(self, lines: AsyncIterator[str]) -> str | None:
        """The next line; a server that says nothing for too long is left."""
        async with asyncio.timeout(self.workload.stall_s):
            return await anext(lines, None)

    def _broke(self, error: dict[str, Any]) -> bool:
        """Whether the stream's own error only asks to come back."""
        if error["code"] in _RETRYABLE_ERRORS:
            self.told.losses.append(f"{self.workload.now:.2f} {error['code']} at {self.told.seq}")
            return True
        self.told.error = json.dumps(error)
        return False

    def _heard(self, event: dict[str, Any]) -> int:
        for choice in event.get("choices", ()):
            if choice["text"]:
                self.told.pieces.append((event["axon"]["seq"], choice["text"]))
            if choice["finish_reason"]:
                self.told.finishes.append(choice["finish_reason"])
        if event.get("usage"):
            self.told.usage.append(event["usage"]["completion_tokens"])
        return 1
