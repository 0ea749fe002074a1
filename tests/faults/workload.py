"""Clients at work while something breaks. Knows no fault. What they ask follows from the seed, not what comes of it."""

import asyncio
import contextlib
import itertools
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType

import httpx

from tests.faults.asking import KINDS, Asking, Patience
from tests.faults.history import Ask, History, Told
from tests.services.process import wait_for

_PATIENCE = Patience()
_LEAVE_S = 10.0


class Workload:
    """Clients that ask for the length of a block: ``num_requests`` in all, and on until ``finish``.

    ``urls`` tells the gateways as they are known now; ``keys`` has one key of each tenant.
    """

    def __init__(
        self,
        urls: Callable[[], Sequence[str]],
        keys: Mapping[str, str],
        asks: Sequence[Ask],
        *,
        name: str,
        seed: int,
        num_requests: int,
        num_clients: int = 12,
        patience: Patience = _PATIENCE,
    ) -> None:
        self.history = History(seed=seed, asks={ask.name: ask for ask in asks})
        self.num_requests = num_requests
        self._urls, self._asks, self._name = urls, list(asks), name
        self._tenants = list(keys)
        self._keys = dict(keys)
        self.num_clients, self._patience = num_clients, patience
        self._numbers = itertools.count()
        self._finishing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="workload", daemon=True)
        self._began = 0.0
        self._failure: BaseException | None = None
        self._asking: tuple[asyncio.AbstractEventLoop, asyncio.Task[None]] | None = None

    def __enter__(self) -> "Workload":
        self._began = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, _error: BaseException | None, _: TracebackType | None) -> None:
        self._finishing.set()
        if kind is None:
            self.finish()
        elif self._asking is not None:
            loop, task = self._asking
            with contextlib.suppress(RuntimeError):  # it has ended by itself
                loop.call_soon_threadsafe(task.cancel)
            self._thread.join(_LEAVE_S)

    @property
    def now(self) -> float:
        return time.monotonic() - self._began

    def wait_for_running(self, num_turns: int) -> None:
        """Returns while so many turns have tokens and are not over."""
        self._wait(lambda: len(self.history.running) >= num_turns, f"{num_turns} streams run", 60.0)

    def wait_for_ended(self, num_turns: int, *, asked_after: float = -1.0, timeout_s: float = 120.0) -> None:
        """Returns when so many turns that were asked after a time have ended."""

        def enough() -> bool:
            turns = list(self.history.turns)
            return sum(told.asked_at > asked_after and told.ended_at is not None for told in turns) >= num_turns

        self._wait(enough, f"{num_turns} turns end", timeout_s)

    def finish(self, timeout_s: float = 300.0) -> History:
        """Lets every client end what it has begun, once enough was asked."""
        self._finishing.set()
        self._thread.join(timeout_s)
        assert not self._thread.is_alive(), f"clients still wait after {timeout_s:g} s"
        if self._failure is not None:
            raise self._failure
        return self.history

    def _wait(self, true: Callable[[], bool], what: str, timeout_s: float) -> None:
        wait_for(lambda: true() or self._failure, what, timeout_s)
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            asyncio.run(self._clients())
        except BaseException as error:
            self._failure = error

    async def _clients(self) -> None:
        if (me := asyncio.current_task()) is not None:
            self._asking = asyncio.get_running_loop(), me
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=self.num_clients)
        timeout = httpx.Timeout(self._patience.answer_s, connect=2.0)
        async with (
            httpx.AsyncClient(timeout=timeout, limits=limits) as http,
            asyncio.TaskGroup() as clients,
        ):
            for number in range(self.num_clients):
                clients.create_task(self._client(number, http))

    async def _client(self, client: int, http: httpx.AsyncClient) -> None:
        for number in self._numbers:
            if number >= self.num_requests and self._finishing.is_set():
                return
            rng = random.Random(f"{self.history.seed}/{number}")
            ask, kind = rng.choice(self._asks), KINDS[number % len(KINDS)]
            tenant = rng.choice(self._tenants)
            told = Told(client=client, ask=ask.name, asked_at=self.now, kind=kind, tenant=tenant)
            if kind in ("repeater", "waiter"):
                told.idempotency_key = f"{self._name}-{self.history.seed}-{number}"
            self.history.turns.append(told)
            asking = Asking(
                http=http,
                urls=self._urls,
                key=self._keys[tenant],
                rng=rng,
                ask=ask,
                told=told,
                patience=self._patience,
                clock=lambda: self.now,
            )
            await asking.run()
