"""The contract for the bytes of files, in a folder and in a bucket: whole or not there, read, replaced, deleted."""

import asyncio
import itertools
import os
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from axon.adapters.files import directory
from axon.adapters.files.bucket import BucketFiles, Location
from axon.adapters.files.directory import DirectoryFiles
from axon.errors import NotFound
from axon.ports.files import FileStore
from tests.services import s3

LARGE = 20 << 20
"""More than two parts of a multipart upload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where files are, and the same place as another process sees it."""

    files: FileStore
    again: FileStore


@pytest.fixture(params=["folder", "bucket", "prefix"])
async def kept(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    if request.param == "folder":
        folders = [DirectoryFiles(tmp_path) for _ in range(2)]
        for each in folders:
            await each.open()
        return Place(files=folders[0], again=folders[1])
    for name, value in s3.CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    server = await asyncio.to_thread(s3.shared_server)
    bucket = await asyncio.to_thread(server.new_bucket)
    location = Location(bucket=bucket, prefix="" if request.param == "bucket" else "some/where/")
    buckets = [BucketFiles(location, endpoint=server.url) for _ in range(2)]
    for store in buckets:
        await store.open()
    return Place(files=buckets[0], again=buckets[1])


@pytest.fixture
def files(kept: Place) -> FileStore:
    return kept.files


async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def broken(num_bytes: int) -> AsyncIterator[bytes]:
    for _ in range(0, num_bytes, 1 << 20):
        yield bytes(1 << 20)
    raise RuntimeError("cut off")


async def whole(files: FileStore, file_id: str) -> bytes:
    return b"".join([piece async for piece in files.read(file_id)])


async def test_a_file_is_whole_or_not_there(kept: Place) -> None:
    files = kept.files
    assert await files.put("file-1", pieces(b"ab", b"", b"cd")) == 4
    for num_bytes in (1, LARGE):
        with pytest.raises(RuntimeError, match="cut off"):
            await files.put("file-2", broken(num_bytes))
        with pytest.raises(RuntimeError, match="cut off"):
            await files.put("file-1", broken(num_bytes))
    assert await whole(kept.again, "file-1") == b"abcd"
    with pytest.raises(NotFound):
        await anext(kept.again.read("file-2"))


async def test_a_file_is_replaced_by_one_of_its_id(kept: Place) -> None:
    await kept.files.put("file-1", pieces(b"old", b"er"))
    assert await kept.files.put("file-1", pieces(b"new")) == 3
    assert await whole(kept.again, "file-1") == b"new"


@pytest.mark.parametrize("name", ["../whole/file-1", "", "a/b", "file-\x00", "file-2"])
async def test_an_id_that_no_file_has_is_not_found(files: FileStore, name: str) -> None:
    await files.put("file-1", pieces(b"a"))
    with pytest.raises(NotFound):
        await anext(files.read(name))


async def test_a_large_file_in_odd_pieces_is_read_as_it_was_written(kept: Place) -> None:
    data = os.urandom(1 << 20) * (LARGE >> 20)
    cuts = [0, 1, 2, 70_001, (8 << 20) - 1, (8 << 20) + 3, (16 << 20) + 5, LARGE]
    parts = [data[start:end] for start, end in itertools.pairwise(cuts)]
    assert await kept.files.put("file-1", pieces(*parts)) == LARGE
    read = [piece async for piece in kept.again.read("file-1")]
    assert b"".join(read) == data
    assert max(map(len, read)) <= 1 << 20


async def test_a_file_of_exactly_one_part_and_an_empty_one_are_kept(files: FileStore) -> None:
    for name, data in (("one-part", bytes(8 << 20)), ("empty", b"")):
        assert await files.put(name, pieces(data)) == len(data)
        assert await whole(files, name) == data


async def test_a_reader_may_stop_before_the_end(files: FileStore) -> None:
    await files.put("file-1", pieces(bytes(3 << 20)))
    reading = files.read("file-1")
    assert await anext(reading)
    await reading.aclose()


@pytest.mark.parametrize("num_bytes", [1 << 20, LARGE])
async def test_a_cancelled_write_leaves_no_file(kept: Place, num_bytes: int) -> None:
    begun = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(0, num_bytes, 1 << 20):
            yield bytes(1 << 20)
        begun.set()
        await asyncio.Event().wait()

    writing = asyncio.create_task(kept.files.put("file-1", endless()))
    await asyncio.wait_for(begun.wait(), 60)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    with pytest.raises(NotFound):
        await anext(kept.again.read("file-1"))


async def test_a_deleted_file_is_gone_and_may_be_deleted_again(kept: Place) -> None:
    await kept.files.put("file-1", pieces(b"a"))
    for _ in range(2):
        await kept.files.delete("file-1")
    with pytest.raises(NotFound):
        await anext(kept.again.read("file-1"))
    assert await kept.files.old(before=4e9, limit=9) == []


async def test_old_files_are_found_page_by_page_in_the_order_of_their_ids(files: FileStore) -> None:
    for number in (3, 1, 2):
        await files.put(f"file-{number}", pieces(b"a"))
    assert await files.old(before=1e9, limit=9) == []
    assert await files.old(before=4e9, limit=2) == ["file-1", "file-2"]
    assert await files.old(before=4e9, limit=2, after="file-2") == ["file-3"]
    assert await files.old(before=4e9, limit=2, after="file-1z") == ["file-2", "file-3"]


async def test_a_folder_is_cleaned_of_what_a_crash_has_left(tmp_path: Path) -> None:
    files = DirectoryFiles(tmp_path)
    await files.open()
    await files.put("file-1", pieces(b"a"))
    (tmp_path / "partial" / "left").write_bytes(b"half")
    (tmp_path / "whole" / ".nfs0001").write_bytes(b"")
    (tmp_path / "whole" / "folder").mkdir()
    now = (tmp_path / "whole" / "file-1").stat().st_mtime
    assert await files.old(before=now - 10, limit=9) == []
    assert (tmp_path / "partial" / "left").exists()
    assert await files.old(before=now + 10, limit=9) == ["file-1"]
    assert not (tmp_path / "partial" / "left").exists()


@pytest.mark.parametrize("name", ["_write", "read"])
async def test_a_cancelled_call_closes_its_file_after_the_thread_has_left_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    files, begun, go_on = DirectoryFiles(tmp_path), threading.Event(), threading.Event()
    await files.open()
    await files.put("file-1", pieces(b"abc"))
    sizes: list[int] = []

    def slow(file: int, _: object) -> bytes:
        begun.set()
        assert go_on.wait(10)
        sizes.append(os.fstat(file).st_size)  # raises if the descriptor is closed
        return b""

    if name == "_write":
        monkeypatch.setattr(directory, "_write", slow)
        task = asyncio.create_task(files.put("file-2", pieces(b"a")))
    else:
        monkeypatch.setattr(os, "read", slow)
        task = asyncio.create_task(anext(files.read("file-1"), b""))  # type: ignore[arg-type]
    assert await asyncio.to_thread(begun.wait, 10)
    task.cancel()
    await asyncio.wait([task], timeout=0.05)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sizes == [0 if name == "_write" else 3]


async def test_a_folder_that_hangs_leaves_the_event_loops_own_threads_alone(tmp_path: Path) -> None:
    files = DirectoryFiles(tmp_path)
    await files.open()
    os.mkfifo(tmp_path / "whole" / "file-1")  # whoever opens it waits for a writer
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    reading = asyncio.ensure_future(anext(files.read("file-1"), b""))
    await asyncio.wait([reading], timeout=0.05)
    writer = await asyncio.wait_for(asyncio.to_thread(os.open, tmp_path / "whole" / "file-1", os.O_WRONLY), 20.0)
    os.write(writer, b"a")
    assert await reading == b"a"
    os.close(writer)
