"""The admin API of workers: one that has announced itself is told to drain, and whoever asks is told why not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace

import httpx
import pytest
from structlog.testing import capture_logs

from axon.domain.audit import AuditEntry
from axon.errors import DependencyDown
from axon.registry.drain_orders import DrainListener
from tests.gateway.admin.office import Office, ok, refused


def _announce(office: Office, *workers: str) -> None:
    presences = [SimpleNamespace(worker=each) for each in workers]
    office.gateway.offers = SimpleNamespace(all=lambda: [SimpleNamespace(fleet=SimpleNamespace(presences=presences))])


@asynccontextmanager
async def listening(office: Office, worker: str) -> AsyncIterator[None]:
    """Until its end the worker listens; then it must have been told to drain."""
    told = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(DrainListener(office.live.wakeups, worker, told.set).run())
        while await office.live.wakeups.counts([f"drain/{worker}"]) != [1]:  # noqa: ASYNC110 - it has no event for its listeners
            await asyncio.sleep(0)
        yield
        async with asyncio.timeout(10):
            await told.wait()
        task.cancel()


async def test_a_worker_is_told_to_drain(office: Office, admin: httpx.AsyncClient) -> None:
    _announce(office, "w-1", "w-2")
    async with listening(office, "w-1"):
        shown = await ok(admin.post("/v1/admin/workers/w-1/drain"))
    assert shown == {"id": "w-1", "object": "worker", "draining": True}
    (entry,) = (await ok(admin.get("/v1/admin/audit?kind=worker")))["data"]
    assert (entry["action"], entry["name"]) == ("drain", "w-1")


async def test_a_drain_that_the_trail_cannot_keep_is_in_the_log(
    office: Office, admin: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(entry: AuditEntry) -> None:
        raise DependencyDown("store")

    _announce(office, "w-1")
    monkeypatch.setattr(office.store.audit, "add", away)
    async with listening(office, "w-1"):
        with capture_logs() as lines:
            assert (await admin.post("/v1/admin/workers/w-1/drain")).status_code == 503
    (line,) = (each for each in lines if each["event"] == "admin.worker_drained")
    assert line["worker"] == "w-1"


async def test_a_worker_that_does_not_listen_is_a_409_that_says_what_to_do(
    office: Office, admin: httpx.AsyncClient
) -> None:
    _announce(office, "w-2")
    await refused(admin.post("/v1/admin/workers/w-2/drain"), 409, "worker_not_drained", "worker_id")
    assert (await ok(admin.get("/v1/admin/audit?kind=worker")))["data"] == []


async def test_an_unknown_worker_is_not_found(office: Office, admin: httpx.AsyncClient) -> None:
    _announce(office)
    await refused(admin.post("/v1/admin/workers/w-9/drain"), 404, "worker_not_found", "worker_id")


async def test_draining_needs_the_scope_admin(office: Office) -> None:
    async with office.client(await office.key("ops")) as holder:
        await refused(holder.post("/v1/admin/workers/w-1/drain"), 403, "insufficient_permissions")
