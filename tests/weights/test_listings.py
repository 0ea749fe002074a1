"""Listings of folders: what is found is never older than the question, and a disk that is away costs few threads."""

import asyncio
import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from axon.errors import FetchFailed
from axon.runtime.clock import FakeClock
from axon.weights.listings import Listings
from axon.weights.source import Listing, StatedFile

FOLDER = Path("/models/tiny")


@dataclass
class Disk:
    """A folder with one file, named after the number of looks at it; a look waits while the disk is away."""

    is_there: threading.Event = field(default_factory=threading.Event)
    begun: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    num_looks: int = 0
    fails: bool = False

    def look(self) -> Listing:
        self.num_looks += 1
        number, fails, is_there = self.num_looks, self.fails, self.is_there
        self.begun.release()
        assert is_there.wait(20.0)
        if fails:
            raise FetchFailed("The disk is away.")
        return Listing(files=(StatedFile(name=str(number), size=0, tag=""),))


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def listings(clock: FakeClock) -> Listings:
    return Listings(clock)


def asked(listings: Listings, disk: Disk) -> "asyncio.Task[Listing]":
    return asyncio.create_task(listings.listing(FOLDER, disk.look))


async def given_up(listings: Listings, disk: Disk) -> None:
    """Somebody asks, and goes."""
    task = asked(listings, disk)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])


async def begun(disk: Disk, num_looks: int) -> None:
    """Returns once so many looks have begun; fails if there are more."""
    for _ in range(num_looks):
        assert await asyncio.to_thread(disk.begun.acquire, timeout=20.0)
    assert disk.num_looks == num_looks


def names(listing: Listing) -> list[str]:
    return [file.name for file in listing.files]


async def test_who_asks_while_the_disk_is_away_waits_for_one_look_and_then_looks_anew(
    listings: Listings, disk: Disk, clock: FakeClock
) -> None:
    for _ in range(100):
        await given_up(listings, disk)
    clock.advance(1.0)
    waiting = [asked(listings, disk) for _ in range(3)]
    await begun(disk, 1)
    disk.is_there.set()
    assert ["1"] not in [names(each) for each in await asyncio.gather(*waiting)]
    assert names(await asked(listings, disk)) == [str(disk.num_looks)]


async def test_another_look_finds_what_is_there_again_though_the_first_one_hangs_for_good(
    listings: Listings, disk: Disk, clock: FakeClock
) -> None:
    await given_up(listings, disk)
    await begun(disk, 1)
    away, disk.is_there = disk.is_there, threading.Event()
    disk.is_there.set()
    clock.advance(10.0)
    assert names(await asked(listings, disk)) == ["2"]
    away.set()


async def test_a_folder_that_is_away_for_an_hour_costs_ten_threads(
    listings: Listings, disk: Disk, clock: FakeClock
) -> None:
    for _ in range(3600):
        await given_up(listings, disk)
        clock.advance(1.0)
    await begun(disk, 10)
    disk.is_there.set()


async def test_the_failure_of_an_older_look_is_nobodys_and_that_of_ones_own_is_raised(
    listings: Listings, disk: Disk, clock: FakeClock
) -> None:
    disk.fails = True
    first = asked(listings, disk)
    await begun(disk, 1)
    disk.fails = False
    clock.advance(1.0)
    second = asked(listings, disk)
    await asyncio.sleep(0)
    disk.is_there.set()
    with pytest.raises(FetchFailed, match="The disk is away"):
        await first
    assert names(await second) == ["2"]
