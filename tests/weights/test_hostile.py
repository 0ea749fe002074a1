"""Sources that mean harm, or are broken: nothing is written outside, held without end, or told as a trace."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from axon.errors import AxonError, FetchFailed, InvalidInput
from axon.weights import hub
from axon.weights.cache import WeightsCache
from axon.weights.config import WeightsConfig
from axon.weights.hub import HubSource
from axon.weights.names import choose
from axon.weights.source import MAX_FILES, HubRepo, StatedFile
from axon.weights.sums import with_sums
from axon.weights.text import fetch_text
from tests.journeys.server import wait_until
from tests.weights.conftest import bucket_source
from tests.weights.object_server import COMMIT, Files

WEIGHTS = "model.safetensors"
Answer = Callable[["Handler"], None]
Seen = list[tuple[str, str | None]]
"""Host and Authorization of each request."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    info: bytes
    file: Answer
    seen: Seen

    def log_message(self, *_: Any) -> None:
        """Silent."""

    def say(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.seen.append((self.headers["Host"], self.headers["Authorization"]))
        if self.path.startswith("/api/"):
            return self.say(200, self.info)
        return type(self).file(self)


def endless(handler: Handler) -> None:
    """As many bytes as anybody takes."""
    handler.send_response(200)
    handler.send_header("Connection", "close")
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(bytes(1 << 16))
    except OSError:
        handler.close_connection = True


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """A client that has gone is no news."""


@asynccontextmanager
async def hostile(
    info: object, file: Answer = lambda handler: handler.say(200, b"abcd")
) -> AsyncIterator[tuple[HubSource, Seen]]:
    """A hub that says this of its repository, and answers so for each file; yields a source and who was asked."""
    seen: Seen = []
    body = info if isinstance(info, bytes) else json.dumps(info).encode()
    server = Server(("127.0.0.1", 0), type("Bound", (Handler,), {"info": body, "file": file, "seen": seen}))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    location = HubRepo(repo="maker/tiny")
    source = HubSource(location, endpoint=f"http://127.0.0.1:{server.server_address[1]}", timeout_s=5.0)
    try:
        yield source, seen
    finally:
        await source.aclose()
        server.shutdown()
        server.server_close()
        thread.join()


def repository(*files: dict[str, object], sha: object = COMMIT) -> dict[str, object]:
    return {"id": "maker/tiny", "sha": sha, "siblings": list(files)}


def stated(name: object = WEIGHTS, size: object = 4, **more: object) -> dict[str, object]:
    return {"rfilename": name, "size": size, **more}


async def fetched(source: HubSource, folder: Path) -> list[str]:
    cache = WeightsCache(folder, WeightsConfig(tries=2, retry_s=0.01, timeout_s=5.0))
    try:
        async with cache.opened(source) as weights:
            return sorted(path.name for path in weights.folder.iterdir())
    finally:
        await source.aclose()


@pytest.mark.parametrize(
    "info",
    [
        repository(stated(size="4")),
        repository(stated(size=1.5)),
        repository(stated(size=-4)),
        repository(stated(size=4), stated("config.json", -(10**18)), stated("tokenizer.json", 10**17)),
        repository(stated(name=5)),
        repository(stated(lfs=[1])),
        repository(stated(lfs={"sha256": 5})),
        repository(stated(), stated()),
        repository(stated(), sha=5),
        repository(stated(), sha="../../main?x"),
        {"sha": COMMIT, "siblings": "abc"},
        [],
        b"<html>",
        b"[" * 100_000,
    ],
    ids=str,
)
async def test_a_listing_that_no_hub_would_send_is_refused_with_a_sentence(info: object, tmp_path: Path) -> None:
    async with hostile(info) as (source, _):
        with pytest.raises((FetchFailed, InvalidInput)) as refusal:
            await fetched(source, tmp_path)
    assert not refusal.value.retryable


async def test_a_listing_without_an_end_is_cut_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(hub, "_MAX_LISTING_BYTES", 1 << 20)
    async with hostile(b" " * (3 << 20)) as (source, _):
        with pytest.raises(FetchFailed, match="more than 1 MiB"):
            await fetched(source, tmp_path)


async def test_a_hub_that_redirects_in_a_circle_is_told_in_a_sentence(tmp_path: Path) -> None:
    def circle(handler: Handler) -> None:
        handler.say(302, Location=handler.path)

    async with hostile(repository(stated()), circle) as (source, _):
        with pytest.raises(FetchFailed, match="leads nowhere") as refusal:
            await fetched(source, tmp_path)
    assert not refusal.value.retryable


async def test_the_token_is_not_sent_on_to_another_host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")

    def elsewhere(handler: Handler) -> None:
        if handler.headers["Host"].startswith("localhost"):
            return handler.say(200, b"abcd")
        port = handler.headers["Host"].rpartition(":")[2]
        return handler.say(302, Location=f"http://localhost:{port}/file")

    async with hostile(repository(stated()), elsewhere) as (source, seen):
        assert WEIGHTS in await fetched(source, tmp_path)
    assert {host.partition(":")[0]: token for host, token in seen} == {
        "127.0.0.1": "Bearer hf_secret",
        "localhost": None,
    }


async def test_sums_without_an_end_are_cut_off() -> None:
    async with hostile(repository(stated(), stated("SHA256SUMS", 100)), endless) as (source, _):
        listing = await source.listing()
        async with asyncio.timeout(30):
            assert (await with_sums(source, listing, 30.0)).files == listing.files
        await source.aclose()


async def test_a_slow_connection_brings_what_it_brings(tmp_path: Path) -> None:
    """The rest is sent when the first bytes are on disk: nothing waits for a whole megabyte."""
    content = bytes(range(256)) * 1024
    half = len(content) // 2

    def is_on_disk() -> bool:
        return any(path.stat().st_size >= half for path in tmp_path.rglob(WEIGHTS))

    def slow(handler: Handler) -> None:
        handler.send_response(206)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content[:half])
        wait_until(is_on_disk, "the first half is written", 60.0)
        handler.wfile.write(content[half:])

    cache = WeightsCache(tmp_path, WeightsConfig(tries=1, timeout_s=30.0))
    async with hostile(repository(stated(size=len(content))), slow) as (source, seen):
        async with cache.opened(source) as weights:
            assert (weights.folder / WEIGHTS).read_bytes() == content
        await source.aclose()
    assert len(seen) == 2, "the listing, and one download"


def test_a_source_with_more_files_than_a_model_has_is_refused_at_once() -> None:
    many = [StatedFile(name=f"{number}.json", size=1) for number in range(MAX_FILES + 1)]
    with pytest.raises(InvalidInput, match="more than 10,000 files"):
        choose(many)
    assert len(choose([*many[: MAX_FILES - 1], StatedFile(name=WEIGHTS, size=1)]).files) == MAX_FILES


async def test_a_bucket_with_more_objects_than_a_model_has_is_not_listed_to_its_end(
    files: Files, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("axon.weights.bucket.MAX_FILES", 5)
    with pytest.raises(InvalidInput, match="name the folder of one model"):
        await bucket_source(endpoint).listing()


async def test_the_folder_that_a_console_makes_in_a_bucket_is_no_file(files: Files, endpoint: str) -> None:
    files.content["models/tiny/"] = b""
    names = [file.name for file in (await bucket_source(endpoint).listing()).files]
    assert "" not in names
    assert len(names) == len(files.content) - 1


async def test_what_a_bucket_says_of_its_fault_is_told_in_a_few_words(files: Files, endpoint: str) -> None:
    files.refuse = 400
    with pytest.raises(AxonError) as refusal:
        await bucket_source(endpoint).listing()
    assert len(refusal.value.message) < 500


async def test_a_header_is_measured_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    measured: list[threading.Thread] = []

    def header(data: bytes) -> int:
        measured.append(threading.current_thread())
        return len(data)

    monkeypatch.setattr("axon.weights.text.header_bytes", header)
    async with hostile(repository(stated("tiny.gguf"))) as (source, _):
        await fetch_text(source, tmp_path, "d" * 64, convert=lambda gguf, folder: None, timeout_s=5.0)
        await source.aclose()
    assert measured
    assert threading.main_thread() not in measured
