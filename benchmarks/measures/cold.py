"""Times the starts of engine processes and whole servers, each to its first token. Knows no engine by name."""

import asyncio
import http.client
import json
import os
import signal
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from axon.domain.sampling import Sampling
from axon.engine.config import EngineConfig
from axon.engine.protocol.messages import Add
from axon.worker.child.process import EngineProcess, Launched, launch
from benchmarks.peers.server import running

if TYPE_CHECKING:
    from benchmarks.peers.engines import Engine

NUM_PROMPT = 32
START_TIMEOUT_S = 300.0
_FAILOVER_TOKENS = 400
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
    take: Callable[[EngineConfig, Path | None], Awaitable[Launched]] | None = None,
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
    """The same from a process that has imported everything, has read the tokenizer for grammars, and waits."""
    spare = await launch()
    spare.warm(config, folder)
    await until_idle(spare.process.pid)

    async def take(config: EngineConfig, model_dir: Path | None) -> Launched:
        return spare

    rss_bytes = resident_bytes(spare.process.pid)
    return await time_start(config, folder, num_tokens=num_tokens, take=take, rss_bytes=rss_bytes)


def time_server(engine: "Engine", folder: Path) -> float:
    """Seconds from the start of a whole server's process to its first token over HTTP."""
    began = time.perf_counter()
    with running(engine.server(folder)) as server:
        server.wait()
        with closing(_stream(engine, server.port, folder, num_tokens=2)) as chunks:
            return next(chunks) - began


def time_failover(engine: "Engine", folder: Path) -> float:
    """Seconds that a stream stands still after the engine process of ``axon serve`` was killed beside a spare."""
    with running(engine.server(folder)) as server:
        server.wait()
        _wait_for_child(server.pid, "axon-spare")
        with closing(_stream(engine, server.port, folder, num_tokens=_FAILOVER_TOKENS)) as chunks:
            arrivals = list(islice(chunks, _FAILOVER_TOKENS // 4))
            os.kill(_wait_for_child(server.pid, "axon-engine"), signal.SIGKILL)
            arrivals += chunks
    return max(after - before for before, after in pairwise(arrivals))


def _stream(engine: "Engine", port: int, folder: Path, *, num_tokens: int) -> Generator[float, None, None]:
    """The time at which each chunk of a streamed completion arrives."""
    endpoint = engine.endpoint(port, folder)
    body = {"model": endpoint.model, "prompt": list(range(100, 100 + NUM_PROMPT)), "max_tokens": num_tokens}
    body |= {"stream": True, "temperature": 0, "ignore_eos": True}
    headers = {"Content-Type": "application/json", **dict(endpoint.headers)}
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=START_TIMEOUT_S)) as connection:
        connection.request("POST", "/v1/completions", json.dumps(body), headers)
        reply = connection.getresponse()
        assert reply.status == 200, reply.read()
        while line := reply.readline():
            if line.startswith(b"data: {"):
                yield time.perf_counter()


def _wait_for_child(parent: int, name: str) -> int:
    """The process id of the child that goes by this name."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
            if Path(f"/proc/{pid}/comm").read_text().strip() == name:
                return int(pid)
        time.sleep(0.05)
    raise TimeoutError(f"process {parent} has no child {name}")


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
