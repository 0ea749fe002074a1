"""Assembles files and batches for a gateway: where the bytes are, the routes' parts, and the runner."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from axon.domain.batch import Batch
from axon.domain.tenants.tenant import Tenant, Terms, terms_of
from axon.errors import Unavailable
from axon.ports.files import FileStore
from axon.ports.store import Store
from axon.runtime.clock import Clock
from axon.settings import Settings

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from axon.gateway.batches.runner import BatchRunner
    from axon.gateway.turn.context import Gateway

_TERMS_S = 1.0
"""A tenant's terms are read at most this often, as a key's are."""
_MAX_KNOWN = 1000


async def open_files(settings: Settings, stack: AsyncExitStack) -> FileStore:
    """Opens the folder or the bucket of the files' bytes; the stack closes it."""
    place = settings.batches.files_dir
    if place.startswith("s3://"):
        from axon.adapters.files.bucket import BucketFiles, location_of

        bucket = BucketFiles(location_of(place))
        await bucket.open()
        stack.push_async_callback(bucket.aclose)
        return bucket
    from axon.adapters.files.directory import DirectoryFiles

    root = files_folder(settings)
    assert root is not None, "a place that is no bucket is a folder"
    folder = DirectoryFiles(root)
    await folder.open()
    stack.push_async_callback(folder.aclose)
    return folder


def files_folder(settings: Settings) -> Path | None:
    """The folder of the files' bytes; None if they are in a bucket."""
    folder = settings.batches.files_dir
    if folder.startswith("s3://"):
        return None
    return Path(folder).expanduser() if folder else settings.data_dir / "files"


class Batches:
    """The parts behind the routes, and the runner once there is an application that answers lines."""

    def __init__(self, settings: Settings, store: Store, files: FileStore) -> None:
        from axon.gateway.batches.room import BatchParts, upload_places

        self._settings, self._store, self._files = settings, store, files
        self._wake: Callable[[], None] = lambda: None
        self.room = BatchParts(
            config=settings.batches,
            files=store.files,
            bytes=files,
            batches=store.batches,
            wake=lambda: self._wake(),
            uploads=upload_places(settings.batches.max_uploads, settings.batches.max_all_uploads),
        )

    def runner(self, app: "ASGIApp", gateway: "Gateway", *, name: str) -> "BatchRunner":
        """The runner of this gateway, which sends lines to ``app``."""
        from axon.gateway.batches.calls import Calls, line_scopes
        from axon.gateway.batches.driver_parts import DriverParts
        from axon.gateway.batches.runner import BatchRunner
        from axon.gateway.http.scopes import check_names_version

        def check_model(batch: Batch, terms: Terms, model: str) -> None:
            if gateway.offers.names_version(model, terms.allows):
                check_names_version(line_scopes(batch))
            with contextlib.suppress(Unavailable):  # it may have workers again when its lines are asked
                gateway.offers.find(model, terms.allows, tenant=batch.tenant, with_fallbacks=True)

        parts = DriverParts(
            config=self._settings.batches,
            files=self._store.files,
            bytes=self._files,
            batches=self._store.batches,
            calls=Calls(app, gateway.sessions.lookup),
            clock=gateway.clock,
            metrics=gateway.metrics.batches,
            max_body_bytes=self._settings.gateway.max_body_bytes,
            check_model=check_model,
            terms=terms_reader(self._store, gateway.clock, self._settings.admission.terms),
        )
        runner = BatchRunner(parts, name=name, stopping=gateway.lifecycle.stopping)
        self._wake = runner.wake
        return runner


def terms_reader(store: Store, clock: Clock, defaults: Terms) -> Callable[[str], Awaitable[Terms | None]]:
    """Reads the terms that hold for a tenant, at most once a second; None while it is suspended."""
    known: dict[str, tuple[float, Terms | None]] = {}
    reading = asyncio.Lock()

    async def read(tenant_id: str) -> Terms | None:
        async with reading:
            until, terms = known.get(tenant_id, (0.0, None))
            if clock.monotonic() < until:
                return terms
            tenant = await store.tenants.get(tenant_id) or Tenant(id=tenant_id)
            plan = await store.plans.get(tenant.plan)
            terms = None if tenant.suspended_at is not None else terms_of(tenant, plan, defaults)
            if len(known) > _MAX_KNOWN:
                known.clear()
            known[tenant_id] = clock.monotonic() + _TERMS_S, terms
            return terms

    return read
