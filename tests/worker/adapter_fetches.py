"""Adapters' files and how a worker gets them, played: what takes long, is gone, damaged or without room."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from axon.domain.failure import Failure
from axon.domain.job_body import ADAPTERS
from axon.domain.model.adapter import JobAdapter
from axon.domain.turn import TurnState
from axon.errors import FetchFailed
from tests.worker.world import World

SQL = JobAdapter(name="small:sql", digest="1" * 64, source="/adapters/sql")
LAW = JobAdapter(name="small:law", digest="2" * 64, source="/adapters/law")
SLOW_S = 100.0


def adapter(number: int, source: str = "/adapters/x") -> JobAdapter:
    return JobAdapter(name=f"small:{number}", digest=f"{number:064}", source=source)


@dataclass(eq=False)
class Files:
    """An adapter's files; a test may damage them."""

    folder: Path
    is_damaged: bool = False
    is_closed: bool = False

    def is_whole(self) -> bool:
        assert not self.is_closed
        return not self.is_damaged

    def close(self) -> None:
        assert not self.is_closed, "let go of twice"
        self.is_closed = True


@dataclass
class Fetches:
    """Takes a second for each adapter; one whose source is ``gone`` cannot be had, and ``slow`` ones take long."""

    room: int = 1000
    """Adapters that the disk has room for beside each other, if none may give way."""
    asked: list[str] = field(default_factory=list)
    running: set[tuple[str, str]] = field(default_factory=set)
    most: int = 0
    files: dict[str, list[Files]] = field(default_factory=dict)
    closing_s: float = 0.5
    """Seconds that a connection takes to be closed."""
    num_cancelled: int = 0
    gone: set[str] = field(default_factory=set)
    """Digests that cannot be fetched any more."""

    async def __call__(self, adapter: JobAdapter) -> Files:
        digest = adapter.digest
        assert (digest, adapter.source) not in self.running, "fetched twice at the same time"
        self.asked.append(digest)
        self.running.add((digest, adapter.source))
        self.most = max(self.most, len(self.running))
        has_room = len(self.held - {digest}) < self.room
        try:
            await asyncio.sleep(SLOW_S if adapter.source == "slow" else 1.0)
        except asyncio.CancelledError:
            await asyncio.sleep(self.closing_s)
            self.num_cancelled += 1
            raise
        finally:
            self.running.remove((digest, adapter.source))
        if adapter.source == "gone" or digest in self.gone:
            raise FetchFailed("/secret/place is not there.")
        if adapter.source == "broken":
            raise FileExistsError(17, "File exists", "/secret/place")
        if not has_room:
            raise FetchFailed("The disk is full.", code="disk_full")
        self.files.setdefault(digest, []).append(files := Files(Path("/cache") / digest))
        return files

    @property
    def held(self) -> set[str]:
        """The digests whose files are held now."""
        return {digest for digest, files in self.files.items() if any(not each.is_closed for each in files)}


async def ask(world: World, seed: int, adapter: JobAdapter, **more: Any) -> Any:
    return await world.ask(seed=seed, adapter=adapter, needs=(ADAPTERS,), **more)


async def ended(world: World, *jobs: Any) -> None:
    await world.until(lambda: all(job.id in world.kept.turns for job in jobs))


async def fails(world: World, job: Any) -> None:
    await ended(world, job)
    turn = world.kept.turns[job.id]
    assert (turn.state, turn.code) == (TurnState.FAILED, Failure.ADAPTER_UNAVAILABLE)
    assert job.adapter.name in turn.message
    assert "/secret" not in turn.message
