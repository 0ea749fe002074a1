"""Administration of tenants, plans and keys directly in the store, for the command line. Opens no queue, no server."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from axon.bootstrap.services import check_store_file, load_pepper, open_live, open_store
from axon.errors import DependencyDown
from axon.ports.live import Cache
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


@asynccontextmanager
async def open_administration(
    settings: Settings, *, makes: bool = False, revokes: bool = False
) -> AsyncIterator[Administration]:
    """Opens the store. Without ``makes``, a missing SQLite file is an error. With ``revokes``, opens a shared
    ``live`` too, so that gateways learn of a revocation without the store."""
    if not makes:
        check_store_file(settings)
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        store = await open_store(settings, stack)

        async def in_store(key_id: str) -> bool:
            return await store.keys.revoke(key_id, at=clock.now())

        cache = await _shared_cache(settings, clock, stack) if revokes else None
        revoke = Revocations(cache, store.keys, clock).revoke if cache else in_store
        yield Administration(
            tenancy=Tenancy(store, clock, defaults=settings.admission.terms),
            keyring=Keyring(store.keys, revoke, lambda: load_pepper(settings), clock),
        )


async def revoke_without_store(settings: Settings, key_id: str) -> bool:
    """Revokes a key at every gateway while the store is away; False where no ``live`` is shared."""
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        cache = await _shared_cache(settings, clock, stack)
        if cache is not None:
            await postpone(cache, key_id, at=clock.now())
        return cache is not None


async def _shared_cache(settings: Settings, clock: Clock, stack: AsyncExitStack) -> Cache | None:
    """The shared cache; None where ``live`` is another process's memory, or away."""
    if settings.live.startswith("memory:"):
        return None
    try:
        return (await open_live(settings, clock, stack)).cache
    except DependencyDown:
        return None
