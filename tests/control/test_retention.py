"""Sessions that nobody goes on with are forgotten, and the others are not."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from axon.adapters.store.sqlite import SqliteStore
from axon.control.retention import Retention
from axon.domain.session.conversation import Conversation
from axon.runtime.clock import FakeClock
from tests.contracts.builders import make_ended, make_job


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(tmp_path / "axon.db")
    await store.open()
    yield store
    await store.aclose()


async def test_what_is_idle_goes_and_what_is_used_stays(store: SqliteStore, clock: FakeClock) -> None:
    now = clock.now()
    for name, used_at in (("conv_old", now - 100), ("conv_new", now - 1)):
        await store.conversations.put(Conversation(id=name, tenant="acme", created_at=used_at, metadata={}), at=used_at)
        job = make_job(f"resp_{name}", session=name, created=used_at, retain=True)
        await store.turns.apply([make_ended(job, at=used_at)])
    retention = Retention(store.turns, store.conversations, store.tombstones, idle_ttl_s=50.0, clock=clock)
    await retention.look()
    assert await store.conversations.get("conv_old") is None
    assert await store.conversations.get("conv_new") is not None
    for name, is_gone in (("conv_old", True), ("conv_new", False)):
        turn = await store.turns.get(f"resp_{name}")
        assert turn is not None
        assert turn.job.purged is is_gone
