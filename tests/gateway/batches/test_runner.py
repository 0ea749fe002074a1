"""A gateway's runner: what it takes, gives back and deletes."""

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from axon.adapters.files.directory import DirectoryFiles
from axon.adapters.store.sqlite import SqliteStore
from axon.domain.batch import Batch
from axon.domain.file import File, Purpose
from axon.domain.tenants.tenant import Terms
from axon.gateway.batches import runner as module
from axon.gateway.batches.config import BatchesConfig
from axon.gateway.batches.driver import Driver
from axon.gateway.batches.driver_parts import DriverParts
from axon.gateway.batches.runner import BatchRunner
from axon.runtime.clock import FakeClock

BATCH = Batch(
    id="batch_1", tenant="acme", endpoint="/v1/completions", input_file_id="file-1", created_at=1.0, expires_at=1e12
)


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncIterator[DriverParts]:
    async def terms(tenant: str) -> Terms | None:
        return None  # suspended

    store, files = SqliteStore(tmp_path / "axon.db"), DirectoryFiles(tmp_path / "files")
    await store.open()
    await files.open()
    yield DriverParts(
        config=BatchesConfig(),
        files=store.files,
        bytes=files,
        batches=store.batches,
        calls=None,  # type: ignore[arg-type]
        clock=FakeClock(),
        max_body_bytes=1000,
        check_model=lambda batch, terms, model: None,
        terms=terms,
    )
    await store.aclose()


async def test_a_suspended_batch_leaves_its_place_and_is_taken_again_later(parts: DriverParts) -> None:
    await parts.batches.add(BATCH, max_active=1)
    runner = BatchRunner(parts, name="here", stopping=asyncio.Event())
    await runner._look()
    await asyncio.wait_for(asyncio.gather(*runner._driving.values()), 5)
    assert not runner._driving
    now = parts.clock.now()
    assert not await parts.batches.take("other", now=now, until=now + 9, limit=1)
    assert await parts.batches.take("other", now=now + 60, until=now + 69, limit=1)


async def test_a_batch_whose_lease_lapsed_is_not_driven_twice(
    parts: DriverParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run(self: Driver) -> bool:
        await asyncio.Event().wait()
        return True

    monkeypatch.setattr(Driver, "run", run)
    await parts.batches.add(BATCH, max_active=1)
    runner = BatchRunner(parts, name="here", stopping=asyncio.Event())
    await runner._look()
    [task] = runner._driving.values()
    await asyncio.sleep(0)
    parts.clock.advance(60)  # type: ignore[attr-defined]
    await runner._look()
    assert list(runner._driving.values()) == [task]
    await asyncio.wait_for(task, 10)  # it finds that it has no lease
    assert not runner._driving
    await runner._look()
    again = list(runner._driving.values())
    assert len(again) == 1
    again[0].cancel()
    await asyncio.gather(*again, return_exceptions=True)


async def test_bytes_without_a_record_are_deleted_behind_any_number_of_known_files(
    parts: DriverParts, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(module, "_PAGE", 1)
    folder = tmp_path / "files" / "whole"
    file = File(id="", tenant="a", filename="f", purpose=Purpose.BATCH, num_bytes=1, created_at=1.0, expires_at=1e12)
    for name in ("file-1", "file-2", "file-3"):
        (folder / name).write_bytes(b"x")
        os.utime(folder / name, (0, 0))
        if name != "file-3":
            await parts.files.put(replace(file, id=name))
    parts.clock.advance(1e6)  # type: ignore[attr-defined]
    runner = BatchRunner(parts, name="here", stopping=asyncio.Event())
    for _ in range(4):
        parts.clock.advance(100)  # type: ignore[attr-defined]
        await runner._clean()
    assert sorted(each.name for each in folder.iterdir()) == ["file-1", "file-2"]
