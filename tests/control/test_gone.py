"""A version is gone when the registry says so, or when others answer and it was missing for long; else it waits."""

import pytest

from axon.adapters.live.memory.live import open_memory_live
from axon.control.gone import PATIENCE_S, GoneVersions
from axon.errors import DependencyDown
from axon.runtime.clock import FakeClock
from tests.contracts.builders import make_job, make_presence


class Fleet:
    """The workers that announce themselves, and rounds of questions one second apart."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.live = open_memory_live(self.clock, retention_s=60.0)
        self.gone = GoneVersions(self.live.presences, self.clock)

    async def asked(self, seconds: int, version: str = "v1", *, workers: tuple[str, ...] = (), **changes: str) -> bool:
        """The answer after so many rounds."""
        answer = False
        for _ in range(seconds):
            for worker in workers:
                await self.live.presences.put(make_presence(worker, version=worker), ttl_s=1.5)
            self.gone.look()
            answer = await self.gone.is_gone(make_job(version=version, **changes))
            self.clock.advance(1.0)
        return answer


@pytest.mark.parametrize(("is_removed", "is_gone"), [(True, True), (False, False)])
async def test_the_registry_decides_about_its_versions(is_removed: bool, is_gone: bool) -> None:
    fleet = Fleet()
    fleet.gone = GoneVersions(fleet.live.presences, fleet.clock, is_removed=lambda version: is_removed)
    assert await fleet.asked(100, workers=("v2",)) is is_gone


async def test_a_version_that_nobody_has_while_others_answer_is_gone_after_a_while() -> None:
    fleet = Fleet()
    assert not await fleet.asked(int(PATIENCE_S), workers=("v2",))
    assert await fleet.asked(2, workers=("v2",))


async def test_a_deployment_without_any_worker_is_cold_and_nothing_of_it_is_gone() -> None:
    fleet = Fleet()
    assert not await fleet.asked(1000)
    assert not await fleet.asked(5, workers=("v2",))


async def test_a_version_that_comes_back_is_timed_anew() -> None:
    fleet = Fleet()
    for _ in range(3):
        assert not await fleet.asked(8, workers=("v2",))
        assert not await fleet.asked(1, workers=("v1", "v2"))


async def test_the_time_in_which_nobody_asked_does_not_count() -> None:
    fleet = Fleet()
    assert not await fleet.asked(2, workers=("v2",))
    await fleet.asked(30, "v2", workers=("v2",))
    assert not await fleet.asked(2, workers=("v2",))


async def test_workers_of_another_pool_do_not_tell() -> None:
    assert not await Fleet().asked(100, workers=("v2",), lane="small#gold/00")


async def test_when_nobody_can_say_who_is_there_nothing_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = Fleet()
    await fleet.asked(9, workers=("v2",))

    async def away(deployment: str) -> None:
        raise DependencyDown

    monkeypatch.setattr(fleet.live.presences, "all", away)
    assert not await fleet.asked(100)
