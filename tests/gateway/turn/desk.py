"""Requests to a gateway that has one stream, written by hand, and a clock that stands. Knows no route."""

import asyncio
from types import SimpleNamespace
from typing import Any

from starlette.requests import Request

from axon.adapters.live.memory.live import MemoryLive, open_memory_live
from axon.domain.job import Job
from axon.domain.wire import encode
from axon.gateway.http.auth import Identity
from axon.gateway.turn.follow import Follower
from axon.runtime.clock import FakeClock
from axon.sessions.lookup import Lookup
from axon.telemetry.metrics import Metrics
from tests.contracts.builders import claim_epoch, make_chunk


class NoStore:
    """A store and a journal that hold nothing."""

    async def get(self, turn_id: str) -> None:
        return None

    async def barrier(self, *, timeout_s: float) -> None: ...


class Desk:
    """One job's stream and the gateway where it is read."""

    def __init__(self, job: Job) -> None:
        self.job, self.clock, self.metrics = job, FakeClock(), Metrics()
        self.live: MemoryLive = open_memory_live(self.clock, retention_s=3600.0)
        self.gone = asyncio.Event()
        """Set when the client has left."""
        store: Any = NoStore()
        lookup = Lookup(self.live, store, store, self.clock)
        self.follower = Follower(self.live, store, lookup, self.clock, reader_grace_s=30.0, silence_s=15.0)
        self._epoch = 0

    async def open(self) -> None:
        await self.live.log.open(self.job.id, encode(self.job), reader_ttl_s=None)
        epoch = await claim_epoch(self.live.log, self.job.id, "w1", over=0)
        self._epoch = epoch

    async def say(self, first: int, count: int = 1, *, terminal: str = "") -> None:
        chunk = make_chunk(first, count, epoch=self._epoch, terminal=terminal)
        await self.live.log.append([(self.job.id, chunk)])

    async def is_cancelled(self) -> bool:
        view = await self.live.log.read(self.job.id, after=0)
        assert view is not None
        return view.cancelled

    def request(self) -> Request:
        """Of a client that stays until ``gone``."""

        async def receive() -> dict[str, Any]:
            await self.gone.wait()
            return {"type": "http.disconnect"}

        gateway = SimpleNamespace(follower=self.follower, metrics=self.metrics, clock=self.clock)
        app = SimpleNamespace(state=SimpleNamespace(gateway=gateway))
        who = Identity(key_id="k0000001", tenant=self.job.tenant)
        return Request({"type": "http", "app": app, "headers": [], "axon.identity": who}, receive)
