"""A server that holds many things for a while: streams that nobody reads, silent streams, kept sessions.

Each measure starts ``axon serve`` with an engine that echoes, makes the things, and watches the memory of its process.
"""

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.measures.figures import Figures
from benchmarks.measures.held import Streams
from benchmarks.measures.load import LoadError, make_prompt, run_load
from benchmarks.measures.memory_use import held_figures, monotonic, rss_bytes, tcp_bytes, watch
from benchmarks.measures.places import Place, Started, serving

NUM_SAMPLES = 40
READER_TOKENS = 1000
"""About 250 kB of events: more than the buffers of a connection take."""
RETENTION_S = 60.0
"""Seconds that the log keeps an ended stream while readers come and go, so that it is as full as it gets after two
minutes and not after an hour."""
SETTLE_SHARE = 0.3
KV_BYTES = 4 << 30
"""Room for all streams at once; an engine that echoes needs a five-hundredth of it."""
LONG_TOKENS = 8000
_EMBEDDED = Place(name="embedded")
_NUM_AT_ONCE = 16
_WARM = 200


@contextmanager
def started(folder: Path, max_sequences: int, num_connections: int, **settings: object) -> Iterator[Started]:
    """A server that has served some requests and refuses none of those to come."""
    unlimited = {
        "admission_concurrent": 0,
        "admission_backlog_total": num_connections + 100,
        "admission_backlog_s": 0,
        "admission_slo_ttft_default_s": 0,
        "gateway_max_connections": num_connections + 100,
        "sessions_turn_timeout_s": 7200,
        "lifecycle_drain_s": 1,
    }
    with serving(_EMBEDDED, folder / "server", "echo", max_sequences, **{**unlimited, **settings}) as server:
        yield server


async def warm(server: Started, num_requests: int = _WARM, num_tokens: int = 8) -> None:
    """Lets the process import and allocate what a first request needs."""
    prompts = [make_prompt(f"warm/{index}", 8) for index in range(num_requests)]
    await run_load(server.endpoint, prompts, num_streams=_NUM_AT_ONCE, num_tokens=num_tokens)


def measure_readers(folder: Path, num_readers: int, seconds: float) -> Figures:
    """Streams whose clients never read. The server resets them; they come again."""
    body: dict[str, object] = {
        "prompt": make_prompt("never read", 32),
        "max_tokens": READER_TOKENS,
        "ignore_eos": True,
        "temperature": 0,
        "stream": True,
    }
    settings = {"sessions_retention_s": RETENTION_S, "engine_kv_memory_bytes": KV_BYTES}
    with started(folder, num_readers, num_readers, **settings) as server:
        asyncio.run(warm(server))
        before, tcp_before = rss_bytes(server.pid), tcp_bytes()
        with Streams(server.endpoint, body, reads=False) as streams:
            streams.open(num_readers)
            samples = watch(server.pid, seconds, NUM_SAMPLES, streams.turn, monotonic)
            kernel = (tcp_bytes() - tcp_before) / num_readers
            counts = {"opened": float(streams.num_opened), "reset": float(streams.num_reset)}
    return held_figures(num_readers, before, samples, SETTLE_SHARE) | {"kernel_bytes_each": kernel} | counts


def measure_followers(folder: Path, num_followers: int, seconds: float) -> Figures:
    """Streams that wait behind a long answer in the engine's one slot."""
    first: dict[str, object] = {"prompt": "a", "max_tokens": LONG_TOKENS, "ignore_eos": True, "stream": True}
    body: dict[str, object] = {"prompt": make_prompt("silent", 32), "max_tokens": 8, "stream": True}
    with started(folder, 1, num_followers + 1, engine_echo_step_s=0.5) as server:
        asyncio.run(warm(server, num_requests=4, num_tokens=1))
        with (
            Streams(server.endpoint, first, reads=True) as ahead,
            Streams(server.endpoint, body, reads=True) as streams,
        ):
            ahead.open(1)
            before = rss_bytes(server.pid)
            streams.open(num_followers)
            _settle(streams)
            samples = watch(server.pid, seconds, NUM_SAMPLES, streams.turn, monotonic)
            counts = {"opened": float(streams.num_opened), "ended": float(streams.num_reset)}
    return held_figures(num_followers, before, samples, 0.0) | counts


async def measure_sessions(folder: Path, num_sessions: int, seconds: float) -> Figures:
    """Responses that the server keeps, each the first of its conversation."""
    with started(folder, _NUM_AT_ONCE, 100) as server:
        await _respond(server, min(_WARM, num_sessions), "warm")
        database = folder / "server" / "axon"
        before, stored_before = rss_bytes(server.pid), _folder_bytes(database)
        began = time.perf_counter()
        await _respond(server, num_sessions, "kept")
        made_s = time.perf_counter() - began
        samples = watch(server.pid, seconds, NUM_SAMPLES, time.sleep, monotonic)
        stored = (_folder_bytes(database) - stored_before) / num_sessions
    made = {"stored_bytes_each": stored, "made_per_s": num_sessions / made_s}
    return held_figures(num_sessions, before, samples, 0.0) | made


def _settle(streams: Streams, seconds: float = 3.0) -> None:
    """Lets the server take in what was sent."""
    until = monotonic() + seconds
    while (left_s := until - monotonic()) > 0:
        streams.turn(left_s)


async def _respond(server: Started, count: int, name: str) -> None:
    """Asks for kept responses, some at once."""
    numbers = iter(range(count))

    async def stream() -> None:
        for number in numbers:
            await _response(server, make_prompt(f"{name}/{number}", 32))

    async with asyncio.TaskGroup() as tasks:
        for _ in range(_NUM_AT_ONCE):
            tasks.create_task(stream())


async def _response(server: Started, text: str) -> None:
    endpoint = server.endpoint
    data = json.dumps({"model": endpoint.model, "input": text, "max_output_tokens": 32}).encode()
    headers = {"Host": "127.0.0.1", "Content-Type": "application/json", "Content-Length": str(len(data))}
    lines = [f"{key}: {value}" for key, value in {**headers, "Connection": "close", **dict(endpoint.headers)}.items()]
    async with asyncio.timeout(60):
        reader, writer = await asyncio.open_connection("127.0.0.1", endpoint.port)
        writer.write("\r\n".join(["POST /v1/responses HTTP/1.1", *lines, "", ""]).encode() + data)
        try:
            head = await reader.readuntil(b"\r\n")
            if b" 200 " not in head:
                raise LoadError((head + await reader.read(2000)).decode(errors="replace"))
            await reader.read()
        finally:
            writer.close()


def _folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("axon.db*"))
