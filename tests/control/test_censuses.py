"""A census asks for the sessions that are still kept."""

import asyncio

from axon.control.censuses import Censuses
from axon.domain.census import Census
from axon.runtime.clock import FakeClock


class Storage:
    """Remembers since when sessions were asked for."""

    def __init__(self) -> None:
        self.since: list[float] = []

    async def census(self, *, since: float) -> Census:
        self.since.append(since)
        return Census(sessions=2)


def test_a_census_is_shown() -> None:
    shown, storage, clock = list[Census](), Storage(), FakeClock()
    asyncio.run(Censuses(storage, shown.append, clock, kept_s=60.0).look())  # type: ignore[arg-type]
    assert (shown, storage.since) == ([Census(sessions=2)], [clock.now() - 60.0])
