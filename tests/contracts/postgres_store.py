"""A PostgreSQL store that is opened for a test, and every call of its port."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from axon.adapters.store.postgres import PostgresStore
from axon.domain.registry.model import Model
from axon.domain.tenants.tenant import Limits, Plan, Tenant
from axon.domain.turn import opened
from tests.contracts.builders import make_job, make_key
from tests.contracts.postgres_backend import shared_server
from tests.services.require import require

DEADLINE_S = 1.0
LATE_S = 10.0
"""What a call may take over its deadline: telling the server, and a busy machine."""


@asynccontextmanager
async def opened_store(url: str, **options: Any) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(url, **options)
    await store.open()
    try:
        yield store
    finally:
        await store.aclose()


@asynccontextmanager
async def empty_database() -> AsyncIterator[str]:
    require("postgres", "initdb")
    server = await asyncio.to_thread(shared_server)
    url = server.create_database()
    yield url
    server.drop_database(url)


def calls(store: PostgresStore) -> list[Callable[[], Coroutine[Any, Any, object]]]:
    """Every call of the port."""
    return [
        store.ping,
        lambda: store.keys.add(make_key("k2")),
        lambda: store.keys.find("k0000001"),
        lambda: store.keys.access("k0000001"),
        lambda: store.keys.touch({"k0000001": 1.0}),
        store.keys.all,
        lambda: store.keys.revoke("k0000001", at=1.0),
        lambda: store.keys.rotate(make_key("k3", previous="k0000001"), until=1.0),
        lambda: store.tenants.add(Tenant(id="acme")),
        lambda: store.tenants.get("acme"),
        store.tenants.all,
        lambda: store.tenants.change(Tenant(id="acme"), Tenant(id="acme", name="Acme")),
        lambda: store.tenants.remove("acme", at=1.0),
        lambda: store.plans.add(Plan(name="pro")),
        lambda: store.plans.change(Plan(name="pro"), Plan(name="pro", limits=Limits(weight=2.0))),
        lambda: store.plans.get("pro"),
        store.plans.all,
        lambda: store.plans.remove("pro"),
        store.registry.snapshot,
        store.registry.revision,
        lambda: store.registry.write(None, Model(name="small", created=1.0), actor="test", at=1.0),
        lambda: store.registry.changes(after=0, limit=1),
        lambda: store.usage.sums(since=0.0, until=1.0),
        lambda: store.turns.apply([opened(make_job())]),
        lambda: store.turns.get("turn_1"),
        lambda: store.turns.unfinished(limit=1),
        store.turns.count_unfinished,
        lambda: store.turns.purge(ended_before=1.0),
        lambda: store.markers.put(["m1"], at=1.0),
        lambda: store.markers.seen("m1"),
        store.terms.take,
    ]
