"""A revoked key's readers are told within a second, whichever source has the revocation and whatever the other does."""

import asyncio
from collections.abc import Collection

import pytest

from axon.errors import DependencyDown
from axon.gateway.turn.revoked_keys import RevokedKeys
from tests.sim.loop import SimLoop

BOUND_S = 1.0


class Readers:
    """The readers of a gateway, all with one key; notes when their streams end."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop
        self.key_ids = frozenset({"k1"})
        self.ended_at: float | None = None

    async def revoke(self, key_ids: Collection[str]) -> None:
        if key_ids and self.ended_at is None:
            self.ended_at = self._loop.monotonic()


@pytest.mark.parametrize("where", ["marked", "stored"])
@pytest.mark.parametrize("other", ["nothing", "down", "hangs"])
@pytest.mark.parametrize("after_s", [0.05, 0.299, 0.301, 0.699, 0.701, 1.25])
def test_streams_of_a_revoked_key_end_within_a_second(where: str, other: str, after_s: float) -> None:
    loop = SimLoop()
    readers = Readers(loop)

    async def has_it(key_ids: Collection[str]) -> frozenset[str]:
        await asyncio.sleep(0.1)  # a source takes its time
        return frozenset(key_ids) if loop.monotonic() >= after_s + 0.1 else frozenset()

    async def has_not(key_ids: Collection[str]) -> frozenset[str]:
        if other == "hangs":
            await asyncio.sleep(1e6)
        if other == "down":
            raise DependencyDown("It is away.")
        return frozenset()

    async def story() -> None:
        marked, stored = (has_it, has_not) if where == "marked" else (has_not, has_it)
        polling = asyncio.create_task(RevokedKeys(readers, marked, stored).run())  # type: ignore[arg-type]
        await asyncio.sleep(5.0)
        polling.cancel()
        await asyncio.wait([polling])

    loop.run(story())
    assert readers.ended_at is not None
    assert after_s <= readers.ended_at <= after_s + BOUND_S
