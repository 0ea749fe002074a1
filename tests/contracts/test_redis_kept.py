"""What a real Redis keeps of the live ports and for how long, that it agrees with its twin, and its scripts."""

import random
import re
import tempfile
from collections.abc import AsyncIterator, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from axon.adapters.live.memory.live import open_memory_live
from axon.adapters.live.redis.live import RedisLive
from axon.adapters.live.redis.shares import RedisShares
from axon.domain.log.chunk import End
from axon.domain.log.ownership import LogView
from axon.ports.live import TokenLog
from axon.runtime.clock import FakeClock
from tests.contracts.builders import make_chunk
from tests.contracts.redis_calls import JOB, append, claimed, ids, opened
from tests.services.redis import RedisServer, shared_server
from tests.services.require import require

pytestmark = pytest.mark.services


@pytest.fixture(autouse=True)
def redis_is_installed() -> None:
    require("redis-server")


@pytest.fixture
def server() -> Iterator[RedisServer]:
    """One of the test's own, whose keys are counted; in no folder of pytest's, which are closed to its user."""
    with tempfile.TemporaryDirectory(prefix="axon-redis-") as name:
        server = RedisServer(Path(name) / "redis")
        server.start()
        yield server
        server.kill()


@pytest.fixture
async def live(server: RedisServer, no_task_is_left: None) -> AsyncIterator[RedisLive]:
    async with opened(server, deadline_s=1.0) as live:
        yield live
    with server.admin() as admin:
        assert [key for key in admin.scan_iter() if admin.pttl(key) == -1] == []


class TestKeeping:
    async def test_a_pool_with_too_many_tenants_keeps_the_most_served(self, live: RedisLive) -> None:
        shares = RedisShares(live._client, max_tenants=10)
        await shares.charge("pool", {f"t{number}": float(number) for number in range(11)})
        counters = await shares.counters("pool", [f"t{number}" for number in range(11)])
        assert sorted(counters) == sorted(f"t{number}" for number in range(2, 11))

    async def test_a_stream_that_outlived_its_job_is_not_taken_for_the_next_one(
        self, server: RedisServer, live: RedisLive
    ) -> None:
        await append(live.log, make_chunk(1, 3, epoch=await claimed(live.log)))
        with server.admin() as admin:
            assert admin.delete(f"axon:{{{JOB}}}:job") == 1
        await append(live.log, make_chunk(1, 1, epoch=await claimed(live.log)))
        assert await ids(live.log) == [1]

    async def test_an_unfinished_stream_goes_when_nobody_cares_for_long(
        self, server: RedisServer, live: RedisLive
    ) -> None:
        await append(live.log, make_chunk(1, epoch=await claimed(live.log)))
        with server.admin() as admin:
            job, log = (admin.pttl(f"axon:{{{JOB}}}:{name}") for name in ("job", "log"))
        assert 0 < job < log

    @pytest.mark.parametrize("seed", range(20))
    async def test_the_log_agrees_with_its_twin_on_any_calls(self, seed: int) -> None:
        chance = random.Random(seed)
        twin = open_memory_live(FakeClock(), retention_s=60.0).log
        async with opened(shared_server(cluster=seed % 2 == 1), prefix=f"twin{chance.random()}") as live:
            epochs: list[tuple[int, int]] = [(0, 0)]
            for _ in range(40):
                at = chance.randrange(max(0, len(epochs) - 2), len(epochs))
                told = [await act(log, chance.getstate(), epochs[at][own]) for own, log in enumerate((twin, live.log))]
                chance.random()
                if told[0][0] == "claim" and told[0][1] is not None:
                    assert told[1][1] is not None
                    assert told[0][1].crashes == told[1][1].crashes
                    epochs.append((told[0][1].epoch, told[1][1].epoch))
                else:
                    assert told[0] == told[1]


async def act(log: TokenLog, state: Any, epoch: int) -> tuple[str, Any]:
    """One call, the same for the same state; what it told, without the epochs that no two logs share."""
    chance = random.Random()
    chance.setstate(state)
    view = await log.read(JOB, after=0)
    last = view.last if view else 0
    match chance.choices(
        ["open", "claim", "release", "append", "mark", "end", "flag", "read"], [2, 3, 1, 9, 3, 1, 1, 4]
    ):
        case ["open"]:
            return "open", await log.open(JOB, b"job", reader_ttl_s=chance.choice([None, 60.0]))
        case ["claim"]:
            return "claim", await log.claim(JOB, "w1", over=epoch)
        case ["release"]:
            await log.release(JOB, epoch, crashes=chance.randrange(4))
            return "release", None
        case ["flag"]:
            return "flag", await log.flag(JOB, cancel=chance.random() < 0.3, reader_ttl_s=60.0)
        case ["read"]:
            return "read", plain(await log.read(JOB, after=chance.randrange(last + 3)))
        case [kind]:
            first = last + chance.choice([1, 1, 1, 1, 0, 2])
            count = 0 if kind == "mark" else chance.randrange(0, 4)
            ends = (End(0, "stop"),) if kind == "mark" else ()
            terminal = "completed" if kind == "end" else ""
            return kind, await append(log, make_chunk(first, count, epoch=epoch, terminal=terminal, ends=ends))
    raise AssertionError


def plain(view: LogView | None) -> Any:
    if view is None:
        return None
    chunks = [(chunk.first, chunk.tokens, chunk.ends, chunk.terminal) for chunk in view.chunks]
    return view.owner, view.last, view.ended, view.cancelled, chunks


def lua() -> dict[str, str]:
    folder = resources.files("axon.adapters.live.redis").joinpath("lua")
    return {file.name.removesuffix(".lua"): file.read_text() for file in folder.iterdir()}


def test_every_script_says_its_name_and_units_first_and_touches_declared_keys_alone() -> None:
    for name, source in lua().items():
        assert re.match(rf"-- {name}: .*(Times in|No times)", source), name
        for command, first in re.findall(r"redis\.call\('(\w+)'(?:, ([^,)]+))?", source):
            assert command in ("TIME", "INFO", "PUBLISH") or first.startswith("KEYS["), (name, command)
