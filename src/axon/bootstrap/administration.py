"""Administration of tenants, plans, keys and the registry in the store itself, for the command line. Opens no queue."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from axon.bootstrap.registry import make_catalog
from axon.bootstrap.services import check_store_file, load_pepper, open_live, open_store
from axon.domain.audit import AuditEntry
from axon.domain.fleet.status import FleetStatus
from axon.errors import DependencyDown, Misconfigured
from axon.ports.live import Live
from axon.ports.store import AuditStore
from axon.registry.catalog import Catalog
from axon.registry.fleet_report import FleetReports
from axon.runtime.clock import Clock, SystemClock
from axon.settings import Settings
from axon.tenants.keyring import Keyring
from axon.tenants.revocations import Revocations, postpone
from axon.tenants.tenancy import Tenancy


@dataclass(frozen=True, slots=True, kw_only=True)
class Administration:
    """Administrative operations on an open store."""

    tenancy: Tenancy
    keyring: Keyring
    catalog: Catalog
    audit: AuditStore


@asynccontextmanager
async def open_administration(
    settings: Settings, *, makes: bool = False, tells: bool = False
) -> AsyncIterator[Administration]:
    """Opens the store. Without ``makes``, a missing SQLite file is an error. With ``tells``, opens a shared ``live``
    too, so that gateways learn at once of a revocation or a change of the registry."""
    if not makes:
        check_store_file(settings)
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        store = await open_store(settings, stack)

        async def in_store(key_id: str, entry: AuditEntry) -> bool:
            return await store.keys.revoke(key_id, at=clock.now(), entry=entry)

        async def pinned(version: str) -> int:
            return await store.pinned.count(version, since=clock.now() - settings.sessions.pin_ttl_s)

        live = await _shared_live(settings, clock, stack) if tells else None
        revoke = Revocations(live.cache, store.keys, clock).revoke if live else in_store
        yield Administration(
            tenancy=Tenancy(store, clock, defaults=settings.admission.terms),
            keyring=Keyring(store.keys, revoke, lambda: load_pepper(settings), clock),
            catalog=make_catalog(settings, store, clock, live, pinned),
            audit=store.audit,
        )


async def read_fleet(settings: Settings) -> FleetStatus | None:
    """The last report of control's leader on its fleet; None if there is none. Raises ``Misconfigured`` where ``live``
    is another process's memory, and ``DependencyDown`` while it is away."""
    if settings.live.startswith("memory:"):
        raise Misconfigured("A fleet needs a shared `live`: name it with --live or AXON_LIVE.")
    async with AsyncExitStack() as stack:
        live = await open_live(settings, SystemClock(), stack)
        return await FleetReports(live.cache).last()


async def revoke_without_store(settings: Settings, key_id: str) -> bool:
    """Revokes a key at every gateway while the store is away; False where no ``live`` is shared."""
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        live = await _shared_live(settings, clock, stack)
        if live is not None:
            await postpone(live.cache, key_id, at=clock.now(), actor="cli")
        return live is not None


async def _shared_live(settings: Settings, clock: Clock, stack: AsyncExitStack) -> Live | None:
    """The shared ``live``; None where ``live`` is another process's memory, or away."""
    if settings.live.startswith("memory:"):
        return None
    try:
        return await open_live(settings, clock, stack)
    except DependencyDown:
        return None
