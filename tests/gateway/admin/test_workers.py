"""The admin API of workers: one that has announced itself is told to drain, and whoever asks is told why not."""

import asyncio
from types import SimpleNamespace

import httpx

from axon.registry.drain_orders import DrainListener
from tests.gateway.admin.office import Office, ok, refused


def _announce(office: Office, *workers: str) -> None:
    presences = [SimpleNamespace(worker=each) for each in workers]
    office.gateway.offers = SimpleNamespace(all=lambda: [SimpleNamespace(fleet=SimpleNamespace(presences=presences))])


async def test_a_worker_is_told_to_drain(office: Office, admin: httpx.AsyncClient) -> None:
    _announce(office, "w-1", "w-2")
    told = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        listening = tasks.create_task(DrainListener(office.live.wakeups, "w-1", told.set).run())
        while await office.live.wakeups.counts(["drain/w-1"]) != [1]:  # noqa: ASYNC110 - it has no event for its listeners
            await asyncio.sleep(0)
        shown = await ok(admin.post("/v1/admin/workers/w-1/drain"))
        async with asyncio.timeout(10):
            await told.wait()
        listening.cancel()
    assert shown == {"id": "w-1", "object": "worker", "draining": True}


async def test_a_worker_that_does_not_listen_is_a_409_that_says_what_to_do(
    office: Office, admin: httpx.AsyncClient
) -> None:
    _announce(office, "w-2")
    await refused(admin.post("/v1/admin/workers/w-2/drain"), 409, "worker_not_drained", "worker_id")


async def test_an_unknown_worker_is_not_found(office: Office, admin: httpx.AsyncClient) -> None:
    _announce(office)
    await refused(admin.post("/v1/admin/workers/w-9/drain"), 404, "worker_not_found", "worker_id")


async def test_draining_needs_the_scope_admin(office: Office) -> None:
    async with office.client(await office.key("ops")) as holder:
        await refused(holder.post("/v1/admin/workers/w-1/drain"), 403, "insufficient_permissions")
