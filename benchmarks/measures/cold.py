"""Times the starts of engine processes and whole servers, each to its first token. Knows no engine by name."""

import asyncio
import http.client
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from axon.domain.sampling import Sampling
from axon.engine.config import EngineConfig
from axon.engine.protocol.messages import Add
from axon.worker.child.process import EngineProcess, Launched, launch

if TYPE_CHECKING:
    from benchmarks.peers.engines import Engine

NUM_PROMPT = 32
START_TIMEOUT_S = 300.0
_QUIET_S = 0.5
_TICKS_PER_S = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """One start, in seconds from its beginning."""

    ready_s: float
    first_token_s: float
    last_token_s: float
    tokens: tuple[int, ...]
    cpu_s: float
    """Seconds of processor of the process at its last token."""
    rss_bytes: int
    """Resident memory of the process before it loaded the model; 0 where it was started for this."""


async def time_start(
    config: EngineConfig,
    folder: Path | None,
    *,
    num_tokens: int,
    take: Callable[[EngineConfig], Awaitable[Launched]] | None = None,
    rss_bytes: int = 0,
) -> Started:
    """Starts an engine, asks it for ``num_tokens`` greedy tokens, and kills it."""
    began = time.perf_counter()
    engine = EngineProcess(config, folder, take=take) if take else EngineProcess(config, folder)
    try:
        await engine.open(timeout_s=START_TIMEOUT_S)
        ready = time.perf_counter()
        sampling = Sampling(max_tokens=num_tokens, temperature=0.0, ignore_eos=True)
        engine.add(Add(id="a", prompt_ids=list(range(100, 100 + NUM_PROMPT)), sampling=sampling, seed=0))
        tokens: list[int] = []
        first = 0.0
        async for output in engine.outputs():
            tokens += [emitted.token for emitted in output.emitted]
            first = first or (time.perf_counter() if tokens else 0.0)
            if len(tokens) >= num_tokens:
                break
        return Started(
            ready_s=ready - began,
            first_token_s=first - began,
            last_token_s=time.perf_counter() - began,
            tokens=tuple(tokens),
            cpu_s=cpu_s(engine.pid) if engine.pid else 0.0,
            rss_bytes=rss_bytes,
        )
    finally:
        engine.kill()
        await engine.aclose()


async def time_start_from_spare(config: EngineConfig, folder: Path | None, *, num_tokens: int) -> Started:
    """The same from a process that has imported everything and waits."""
    spare = await launch()
    spare.warm(config)
    await until_idle(spare.process.pid)

    async def take(_: EngineConfig) -> Launched:
        return spare

    rss_bytes = resident_bytes(spare.process.pid)
    return await time_start(config, folder, num_tokens=num_tokens, take=take, rss_bytes=rss_bytes)


def time_server(engine: "Engine", folder: Path) -> float:
    """Seconds from the start of a whole server's process to its first token over HTTP."""
    server = engine.server(folder)
    began = time.perf_counter()
    server.start()
    try:
        server.wait()
        endpoint = engine.endpoint(server.port, folder)
        body = {"model": endpoint.model, "prompt": list(range(100, 100 + NUM_PROMPT)), "max_tokens": 2, "stream": True}
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=START_TIMEOUT_S)
        headers = {"Content-Type": "application/json", **dict(endpoint.headers)}
        connection.request("POST", "/v1/completions", json.dumps(body), headers)
        reply = connection.getresponse()
        line = reply.readline()
        while line and not line.startswith(b"data: {"):
            line = reply.readline()
        assert reply.status == 200, line
        elapsed = time.perf_counter() - began
        connection.close()
        return elapsed
    finally:
        server.stop()


async def until_idle(pid: int, timeout_s: float = 60.0) -> None:
    """Waits until a process that was started has used no processor for half a second."""
    used, since = -1.0, time.monotonic()
    deadline = since + timeout_s
    while time.monotonic() - since < _QUIET_S and time.monotonic() < deadline:
        now_used = cpu_s(pid)
        if now_used != used or now_used == 0:
            used, since = now_used, time.monotonic()
        await asyncio.sleep(0.05)


def cpu_s(pid: int) -> float:
    """Seconds of processor that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def resident_bytes(pid: int) -> int:
    """Resident memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
