"""Stores to back up and restore, on both databases: filled with one of everything, and compared. Knows no archive."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import select

from axon.adapters.backup.contents import summed, tables_of
from axon.adapters.backup.database import snapshot
from axon.adapters.service_address import ServiceAddress
from axon.adapters.store import schema
from axon.adapters.store.postgres import PostgresStore
from axon.adapters.store.sqlite import SqliteStore
from axon.domain.batch import Batch
from axon.domain.file import File, Purpose
from axon.domain.registry.model import Model
from axon.domain.session.erasure import session_mark, turn_mark
from axon.domain.tenants.tenant import Plan, Tenant
from axon.domain.tenants.web_session import WebSession
from axon.domain.turn import opened
from axon.settings import Settings
from tests.contracts.builders import make_ended, make_job, make_key
from tests.contracts.postgres_backend import shared_server
from tests.services.require import require

Store = SqliteStore | PostgresStore
BYTES = b"hello file\n"
_FILE = File(
    id="file-1",
    tenant="acme",
    filename="in.jsonl",
    purpose=Purpose.BATCH,
    num_bytes=len(BYTES),
    created_at=1.0,
    expires_at=1e12,
)
_BATCH = Batch(
    id="batch_1",
    tenant="acme",
    endpoint="/v1/chat/completions",
    input_file_id="file-1",
    created_at=1.0,
    expires_at=1e12,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A store's URL and a data folder of its own."""

    url: str
    data_dir: Path

    @property
    def address(self) -> ServiceAddress:
        return ServiceAddress(url=self.url)

    @property
    def settings(self) -> Settings:
        return Settings(store=self.url, data_dir=self.data_dir)

    @property
    def environ(self) -> dict[str, str]:
        return {"AXON_STORE": self.url, "AXON_DATA_DIR": str(self.data_dir)}

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Store]:
        store = SqliteStore(self.url) if self.url.startswith("sqlite") else PostgresStore(self.url, timeout_s=30.0)
        await store.open()
        try:
            yield store
        finally:
            await store.aclose()

    def contents(self) -> dict[str, tuple[int, str]]:
        """Number and digest of every table's rows."""
        with snapshot(self.address) as connection:
            found = {table.name: summed(connection, table) for table in tables_of(connection)}
        return {name: (each.num_rows, each.digest) for name, each in found.items()}

    def rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        chosen = [schema.metadata.tables[table].c[name] for name in columns]
        with snapshot(self.address) as connection:
            return sorted(tuple(row) for row in connection.execute(select(*chosen)))

    def fill(self, **how: Any) -> None:
        asyncio.run(fill(self, **how))


@contextlib.contextmanager
def sqlite_place(folder: Path) -> Iterator[Place]:
    yield Place(url=f"sqlite:///{folder / 'axon.db'}", data_dir=folder)


@contextlib.contextmanager
def postgres_place(folder: Path) -> Iterator[Place]:
    require("postgres", "initdb")
    server = shared_server()
    url = server.create_database()
    try:
        yield Place(url=url, data_dir=folder)
    finally:
        server.drop_database(url)


async def fill(place: Place, *, num_turns: int = 20, num_bytes: int = 100) -> None:
    """One of everything, ``num_turns`` ended turns of some bytes each, and one that has not ended."""
    whole = place.data_dir / "files" / "whole"
    whole.mkdir(parents=True, exist_ok=True)
    (whole / "file-1").write_bytes(BYTES)
    async with place.opened() as store:
        await store.plans.add(Plan(name="pro"))
        await store.tenants.add(Tenant(id="acme", plan="pro", created_at=1.0))
        await store.keys.add(make_key("k0000001"))
        await store.keys.add(make_key("k0000002"))
        session = WebSession(id="digest", key_id="k0000001", created_at=1.0, ends_at=1e12)
        await store.web_sessions.open(session, now=1.0, most=10)
        await store.registry.write(None, Model(name="small", created=1.0), actor="test", at=1.0)
        texts = tuple(range(num_bytes // 3))
        ended = [
            make_ended(make_job(f"turn_{n}", ordinal=n, retain=True, prompt_ids=texts, session=f"conv_{n % 3}"))
            for n in range(num_turns)
        ]
        for first in range(0, len(ended), 200):
            await store.turns.apply(ended[first : first + 200])
        await store.turns.apply([opened(make_job("turn_open", session="", idempotency_key="once"))])
        await store.tombstones.put([turn_mark("turn_gone"), session_mark("conv_gone")], at=5.0)
        await store.markers.put(["m1"], at=1.0)
        await store.files.put(_FILE)
        await store.batches.add(_BATCH, max_active=10)
        await store.batches.take("gateway-1", now=10.0, until=1e12, limit=1)
