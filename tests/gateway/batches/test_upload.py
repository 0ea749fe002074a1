"""Uploads and downloads whose other side is slow or leaves."""

import asyncio
from collections.abc import AsyncGenerator, MutableMapping
from contextlib import aclosing
from typing import Any

import pytest
from starlette.requests import Request

from axon.gateway.batches.files import Download
from axon.gateway.batches.lines import split
from axon.gateway.batches.upload import Upload
from axon.gateway.http.errors import Timeout

HEAD = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'


class Source:
    """Pieces of a file, which know whether they were closed."""

    is_closed = False

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        try:
            while True:
                yield b"line\n"
        finally:
            self.is_closed = True


def make_upload(*, silence_s: float, timeout_s: float) -> Upload:
    async def receive() -> MutableMapping[str, Any]:
        await asyncio.sleep(0)
        return {"type": "http.request", "body": messages.pop(0), "more_body": True} if messages else await stalled()

    async def stalled() -> MutableMapping[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError

    messages = [HEAD + b"x" * 100, b"y" * 100]
    headers = [(b"content-length", b"1000"), (b"content-type", b"multipart/form-data; boundary=b")]
    request = Request({"type": "http", "method": "POST", "headers": headers}, receive)
    return Upload(request, max_bytes=1000, silence_s=silence_s, timeout_s=timeout_s)


async def read(upload: Upload, *, disk_s: float = 0.0) -> None:
    async for _ in upload.pieces():
        await asyncio.sleep(disk_s)


@pytest.mark.parametrize(("silence_s", "timeout_s"), [(0.01, 60.0), (60.0, 0.01)])
async def test_an_upload_that_stalls_is_a_timeout(silence_s: float, timeout_s: float) -> None:
    with pytest.raises(Timeout):
        await read(make_upload(silence_s=silence_s, timeout_s=timeout_s))


async def test_an_upload_whose_time_ends_while_its_bytes_are_written_is_a_timeout() -> None:
    with pytest.raises(Timeout):
        await read(make_upload(silence_s=60.0, timeout_s=0.01), disk_s=0.02)


async def test_a_file_is_closed_by_whoever_stops_reading_its_lines() -> None:
    source = Source()
    async with aclosing(split(source.pieces(), max_body_bytes=10)) as lines:
        assert (await anext(lines)).data == b"line"
    assert source.is_closed


async def test_a_download_whose_client_leaves_closes_its_file() -> None:
    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        await asyncio.sleep(0)

    source = Source()
    pieces = source.pieces()
    await Download(await anext(pieces), pieces, headers={})({"type": "http", "asgi": {}}, receive, send)
    assert source.is_closed
