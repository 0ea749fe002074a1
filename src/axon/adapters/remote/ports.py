"""The ports as a front has them: every call goes to the hub.

What this adapter cannot promise: several records that are applied together are refused together when one of them cannot
be sent. No front applies any; they go into the journal one by one.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from axon.adapters.live.buffered_listener import BufferedListener
from axon.adapters.remote.link import Link
from axon.adapters.remote.methods import Method, methods_of
from axon.adapters.remote.registry import RemoteRegistry
from axon.ports.batch_store import BatchStore, FileRecords
from axon.ports.conversation_store import IdleConversations
from axon.ports.live import Live
from axon.ports.store import (
    AuditStore,
    KeyStore,
    Markers,
    PinnedSessions,
    PlanStore,
    RegistryStore,
    SessionTurns,
    StorageStore,
    TenantStore,
    Terms,
    Tombstones,
    UsageStore,
    WebSessionStore,
)
from axon.runtime.clock import Clock

if TYPE_CHECKING:
    from axon.ports.journal import Journal
    from axon.ports.queue import Lanes

_MAX_WAITING = 256
"""Notifications that a listener keeps until they are taken; a slow one loses the oldest."""


class _Remote:
    """A port whose methods are added to it by ``_remote``."""

    def __init__(self, link: Link) -> None:
        self._link = link


class _RemoteLeases(_Remote):
    def for_thread(self, *, deadline_s: float) -> None:
        """None: a front holds no lease."""


class _RemoteWakeups(_Remote):
    @asynccontextmanager
    async def listen(self, channel: str) -> AsyncIterator[BufferedListener]:
        listener = BufferedListener(_MAX_WAITING)
        number = self._link.listen(channel, listener.put)
        try:
            yield listener
        finally:
            self._link.leave(number)
            listener.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteStore:
    """The hub's store."""

    keys: KeyStore
    web_sessions: WebSessionStore
    tenants: TenantStore
    plans: PlanStore
    registry: RegistryStore
    audit: AuditStore
    usage: UsageStore
    storage: StorageStore
    turns: SessionTurns
    pinned: PinnedSessions
    markers: Markers
    terms: Terms
    conversations: IdleConversations
    tombstones: Tombstones
    files: FileRecords
    batches: BatchStore
    pinging: Any

    async def ping(self) -> None:
        await self.pinging.ping()


class RemotePorts:
    """All ports of the hub, over one connection."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._link = link = Link(path, clock)
        self.live = Live(
            log=_remote("log", link),
            leases=_remote("leases", link, _RemoteLeases),
            accounts=_remote("accounts", link),
            crowds=_remote("crowds", link),
            shares=_remote("shares", link),
            cache=_remote("cache", link),
            pins=_remote("pins", link),
            presences=_remote("presences", link),
            wakeups=_remote("wakeups", link, _RemoteWakeups),
        )
        self.queue: Lanes = _remote("queue", link)
        self.journal: Journal = _remote("journal", link)
        self.store = RemoteStore(
            keys=_remote("keys", link),
            web_sessions=_remote("web_sessions", link),
            tenants=_remote("tenants", link),
            plans=_remote("plans", link),
            registry=RemoteRegistry(_remote("registry", link)),
            audit=_remote("audit", link),
            usage=_remote("usage", link),
            storage=_remote("storage", link),
            turns=_remote("turns", link),
            pinned=_remote("pinned", link),
            markers=_remote("markers", link),
            terms=_remote("terms", link),
            conversations=_remote("conversations", link),
            tombstones=_remote("tombstones", link),
            files=_remote("files", link),
            batches=_remote("batches", link),
            pinging=_remote("store", link),
        )

    async def open(self) -> None:
        await self._link.open()

    async def aclose(self) -> None:
        await self._link.aclose()


def _remote(port: str, link: Link, base: type[_Remote] = _Remote) -> Any:
    """An object with all methods of a port."""
    methods = {each.name.partition(".")[2]: _calling(each) for each in methods_of(port)}
    return type(f"Remote{port.title()}", (base,), methods)(link)


def _calling(method: Method) -> Callable[..., Awaitable[Any]]:
    def call(self: _Remote, *args: object, **kwargs: object) -> Awaitable[Any]:
        return self._link.call(method, method.values(args, kwargs))

    return call
