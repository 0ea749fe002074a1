"""What gateways observe of the turns of a rollout, and how control's leader finds it."""

from dataclasses import replace

import pytest

from axon.adapters.live.memory.cache import MemoryCache
from axon.domain.registry.rollout import RolloutState
from axon.domain.registry.samples import Observed, Outcome, Samples, bucket_of_latency
from axon.registry import observing as module
from axon.registry.observations import Observations
from axon.registry.observing import Observing
from axon.runtime.clock import FakeClock
from tests.domain.registry.builders import deployment, rollout, snapshot


class World:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.cache = MemoryCache(self.clock)
        self.observations = Observations(self.cache)
        self.view = snapshot(deployment(going=rollout()))
        self.gateway = self.another("gw-1")

    def another(self, name: str) -> Observing:
        return Observing(
            self.observations, gateway=name, snapshot=lambda: self.view, monotonic=lambda: self.clock.monotonic()
        )

    async def seen(self) -> Observed:
        await self.gateway.flush()
        return sum((await self.observations.all("ro_1")).values(), Observed())

    def turn(
        self, name: str, version: str = "small@v2", *, ttft_s: float = 0.4, tokens: int = 11, is_first: bool = True
    ) -> None:
        """A whole turn that completes, with 0.05 s between tokens."""
        self.gateway.begun(name, "small", version, is_first=is_first)
        self.gateway.followed(name)
        self.clock.advance(ttft_s)
        self.gateway.answered(name)
        self.clock.advance(0.05 * (tokens - 1))
        self.gateway.ended(name, Outcome.OK, num_tokens=tokens)


@pytest.fixture
def world() -> World:
    return World()


async def test_turns_are_counted_by_version_with_their_latencies(world: World) -> None:
    world.turn("a")
    world.turn("b", "small@v1", ttft_s=0.8)
    seen = await world.seen()
    assert seen.new == Samples(begun=1, ttft={bucket_of_latency(0.4): 1}, itl={bucket_of_latency(0.05): 1})
    assert (seen.old.begun, dict(seen.old.ttft)) == (1, {bucket_of_latency(0.8): 1})


async def test_later_turns_of_a_session_count_without_their_latencies(world: World) -> None:
    world.turn("a", is_first=False)
    assert (await world.seen()).new == Samples(begun=1)


async def test_a_short_answer_says_nothing_about_the_time_between_tokens(world: World) -> None:
    world.turn("a", tokens=7)
    seen = await world.seen()
    assert sum(seen.new.ttft.values()) == 1
    assert not seen.new.itl


async def test_errors_and_refusals_are_counted(world: World) -> None:
    world.gateway.begun("a", "small", "small@v2", is_first=True)
    world.gateway.ended("a", Outcome.ERROR)
    world.gateway.ended("a", Outcome.ERROR)
    world.gateway.refused("small", "small@v1")
    seen = await world.seen()
    assert (seen.new, seen.old) == (Samples(begun=1, errors=1), Samples(refused=1))


async def test_a_turn_is_mute_once_when_its_first_token_is_late(world: World) -> None:
    for name in ("mute", "fails", "answers"):
        world.gateway.begun(name, "small", "small@v2", is_first=True)
        world.gateway.followed(name)
    world.gateway.answered("answers")
    world.gateway.ended("fails", Outcome.ERROR)
    world.clock.advance(29.9)
    assert (await world.seen()).new.mute == 0
    world.clock.advance(0.2)
    assert (await world.seen()).new.mute == 1
    world.clock.advance(60.0)
    assert (await world.seen()).new.mute == 1


async def test_a_client_that_leaves_before_the_first_token_speaks_against_the_version(world: World) -> None:
    for name in ("impatient", "late", "read", "unread"):
        world.gateway.begun(name, "small", "small@v2", is_first=True)
        if name != "unread":
            world.gateway.followed(name)
    world.gateway.answered("read")
    world.clock.advance(5.0)
    for name in ("impatient", "read", "unread"):
        world.gateway.ended(name, Outcome.LEFT)
    assert (await world.seen()).new.mute == 1
    world.clock.advance(26.0)
    assert (await world.seen()).new.mute == 2
    world.gateway.ended("late", Outcome.LEFT)
    assert (await world.seen()).new.mute == 2, "it was counted when it was late"


async def test_a_turn_that_speaks_until_its_deadline_was_too_long_by_itself(world: World) -> None:
    for name in ("long", "stalled", "silent"):
        world.gateway.begun(name, "small", "small@v2", is_first=True)
        world.gateway.followed(name)
    world.gateway.answered("stalled")
    for _ in range(60):
        world.clock.advance(10.0)
        world.gateway.answered("long")
    world.gateway.ended("long", Outcome.EXPIRED, num_tokens=61, decode_s=600.0)
    seen = (await world.seen()).new
    assert (seen.errors, sum(seen.itl.values())) == (0, 1), "its time between tokens is compared all the same"
    world.gateway.ended("stalled", Outcome.EXPIRED, num_tokens=1)
    world.gateway.ended("silent", Outcome.EXPIRED)
    assert (await world.seen()).new.errors == 2


async def test_a_turn_that_nobody_reads_is_neither_mute_nor_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_OPEN", 3)
    for name in ("a", "b", "c"):
        world.gateway.begun(name, "small", "small@v2", is_first=False)
    world.clock.advance(31.0)
    assert (await world.seen()).new == Samples(begun=3)
    world.turn("d", is_first=False)
    assert (await world.seen()).new == Samples(begun=4)


async def test_the_time_between_tokens_is_the_workers_and_not_that_of_a_slow_reader(world: World) -> None:
    world.gateway.begun("a", "small", "small@v2", is_first=True)
    world.gateway.followed("a")
    world.gateway.answered("a")
    world.clock.advance(60.0)
    world.gateway.ended("a", Outcome.OK, num_tokens=11, decode_s=0.5)
    assert (await world.seen()).new.itl == {bucket_of_latency(0.05): 1}


@pytest.mark.parametrize("state", [RolloutState.WAITING, RolloutState.PROMOTED, RolloutState.ABORTED])
async def test_nothing_is_observed_while_no_rollout_runs(world: World, state: RolloutState) -> None:
    world.view = snapshot(deployment(going=rollout(state=state)))
    world.turn("a")
    world.gateway.refused("small", "small@v1")
    assert await world.seen() == Observed()


async def test_other_deployments_and_versions_are_not_observed(world: World) -> None:
    world.gateway.begun("a", "large", "small@v2", is_first=True)
    world.gateway.begun("b", "small", "small@v3", is_first=True)
    assert await world.seen() == Observed()


async def test_a_rollout_that_is_over_is_forgotten_and_the_next_counts_from_nothing(world: World) -> None:
    world.turn("a")
    world.gateway.begun("open", "small", "small@v2", is_first=True)
    await world.gateway.flush()
    world.view = snapshot(deployment(going=replace(rollout(), id="ro_2")))
    await world.gateway.flush()
    world.gateway.ended("open", Outcome.ERROR)
    world.turn("b", "small@v1")
    await world.gateway.flush()
    (seen,) = (await world.observations.all("ro_2")).values()
    assert (seen.new, seen.old.begun) == (Samples(), 1)


async def test_the_samples_of_all_gateways_are_found_and_those_of_a_lost_live_come_again(world: World) -> None:
    world.turn("a")
    other = world.another("gw-2")
    other.begun("b", "small", "small@v2", is_first=True)
    await other.flush()
    assert (await world.seen()).new.begun == 2
    await world.cache.drop("rollout/ro_1")
    assert await world.observations.all("ro_1") == {}
    await other.flush()
    assert (await world.seen()).new.begun == 2


async def test_what_cannot_be_read_is_left_out(world: World) -> None:
    world.turn("a")
    await world.gateway.flush()
    await world.cache.put("rollout/ro_1/gw-1", b"\xc1", ttl_s=60.0)
    assert await world.observations.all("ro_1") == {}


async def test_the_number_of_observed_turns_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_OPEN", 3)
    for number in range(10):
        world.gateway.begun(f"turn-{number}", "small", "small@v2", is_first=True)
    assert (await world.seen()).new.begun == 3
