"""The spare engine process: taken at once, replaced, and gone with its worker."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from axon.engine.config import EngineConfig
from axon.worker.child import spare as spare_module
from axon.worker.child.process import EngineProcess
from axon.worker.child.spare import SpareEngine

ECHO = EngineConfig(kind="echo", kv_memory_bytes=1 << 22)
INT8 = EngineConfig(device="cpu", dtype="int8")
PATIENCE_S = 60.0


@asynccontextmanager
async def kept(has_room: Callable[[], bool] = lambda: True) -> AsyncIterator[SpareEngine]:
    spare = SpareEngine(has_room, settle_s=0.0)
    running = asyncio.ensure_future(spare.run())
    try:
        yield spare
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        await spare.aclose()


async def until(true: Callable[[], bool], what: str) -> None:
    for _ in range(int(PATIENCE_S / 0.01)):
        if true():
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"not within {PATIENCE_S:g} s: {what}")


def resident_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def has_mapped(pid: int, library: str) -> bool:
    return library in Path(f"/proc/{pid}/maps").read_text()


def name_of(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "XZ"
    except FileNotFoundError:
        return True


async def test_an_engine_starts_out_of_the_spare_and_another_one_is_kept() -> None:
    async with kept() as spare:
        await spare.prepare(ECHO)
        first = spare.pid
        assert first is not None
        await until(lambda: name_of(first) == "axon-spare", "it has been told to prepare itself")
        engine = EngineProcess(ECHO, None, take=spare.take, on_ready=spare.engine_is_ready)
        ready = await engine.open(timeout_s=PATIENCE_S)
        assert (engine.pid, name_of(first), ready.kernel) == (first, "axon-engine", "echo")
        await until(lambda: spare.pid not in (None, first), "there is another spare")
        await engine.aclose()


async def test_several_engines_share_one_spare() -> None:
    async with kept() as spare:
        await spare.prepare(ECHO)
        first = spare.pid
        engines = [EngineProcess(ECHO, None, take=spare.take, on_ready=spare.engine_is_ready) for _ in range(3)]
        await asyncio.gather(*(engine.open(timeout_s=PATIENCE_S) for engine in engines))
        assert len({engine.pid for engine in engines}) == 3
        assert first in {engine.pid for engine in engines}
        for engine in engines:
            await engine.aclose()


async def test_a_spare_that_died_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("axon.worker.child.spare._FIRST_BACKOFF_S", 0.0)
    async with kept() as spare:
        await spare.prepare(ECHO)
        spare.engine_is_ready()
        first = spare.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        await until(lambda: spare.pid not in (None, first), "there is another spare")


async def test_an_engine_starts_cold_where_the_spare_has_just_died() -> None:
    spare = SpareEngine(lambda: True)
    await spare.prepare(ECHO)
    first = spare.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    await until(lambda: spare.pid is None, "its death is noticed")
    engine = EngineProcess(ECHO, None, take=spare.take)
    await engine.open(timeout_s=PATIENCE_S)
    assert engine.pid != first
    await engine.aclose()


async def test_where_little_memory_is_free_there_is_none() -> None:
    async with kept(lambda: False) as spare:
        await spare.prepare(ECHO)
        assert spare.pid is None
        engine = EngineProcess(ECHO, None, take=spare.take, on_ready=spare.engine_is_ready)
        await engine.open(timeout_s=PATIENCE_S)
        await engine.aclose()


async def test_a_spare_for_int8_has_no_torch_and_little_memory() -> None:
    spare = SpareEngine(lambda: True)
    await spare.prepare(INT8)
    pid = spare.pid
    assert pid is not None
    await until(lambda: has_mapped(pid, "/kernel-"), "it has loaded the kernels, which it does last")
    assert not has_mapped(pid, "libtorch")
    assert resident_bytes(pid) < 100e6
    await spare.aclose()
    assert is_gone(pid)


async def test_the_next_spare_is_told_of_the_model_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Path | None] = []

    class Launched:
        is_alive = True

        def warm(self, config: EngineConfig, model_dir: Path | None) -> None:
            told.append(model_dir)

        async def aclose(self) -> None:
            pass

    async def launch() -> Launched:
        return Launched()

    monkeypatch.setattr(spare_module, "launch", launch)
    spare = SpareEngine(lambda: True)
    for _ in range(2):
        await spare.prepare(ECHO)
        await spare.take(ECHO, Path("/model"))
    assert told == [None, Path("/model")]


WORKER = """
import asyncio
from axon.engine.config import EngineConfig
from axon.worker.child.spare import SpareEngine

async def main():
    spare = SpareEngine(lambda: True)
    await spare.prepare(EngineConfig(kind="echo"))
    print(spare.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_it_ends_with_a_worker_that_is_killed() -> None:
    worker = await asyncio.create_subprocess_exec(sys.executable, "-c", WORKER, stdout=subprocess.PIPE)
    assert worker.stdout is not None
    pid = int(await worker.stdout.readline())
    worker.kill()
    await worker.wait()
    await until(lambda: is_gone(pid), "the spare ends with its worker")
