"""The pins' contract. A missing pin means nothing; one that is there binds everybody."""

import asyncio

import pytest

from axon.domain.moved import Moved
from axon.domain.session.pin import Pin
from axon.ports.live import Live, Pins
from tests.contracts.backends import LiveBackend

KEY = "pin_0123"
OLD, NEW = Pin(0, "small@v1"), Pin(1, "small@v2", "small@v1", "version_failed")


@pytest.fixture
def pins(live: Live) -> Pins:
    return live.pins


class TestPins:
    async def test_the_first_pin_binds_all_others(self, pins: Pins) -> None:
        assert await pins.get(KEY) is None
        assert await pins.pin(KEY, OLD, ttl_s=10) == OLD
        assert await pins.pin(KEY, Pin(0, "small@v2"), ttl_s=10) == OLD
        assert await pins.pin(KEY, Pin(7, "small@v3"), ttl_s=10) == OLD
        assert await pins.get(KEY) == OLD
        assert await pins.get("another") is None

    async def test_of_many_at_once_one_binds(self, pins: Pins) -> None:
        wanted = [Pin(0, f"small@v{number}") for number in range(8)]
        bound = await asyncio.gather(*[pins.pin(KEY, each, ttl_s=10) for each in wanted])
        assert len(set(bound)) == 1
        assert await pins.get(KEY) == bound[0]

    async def test_a_move_is_a_compare_and_set_whose_loser_gets_the_winners_pin(self, pins: Pins) -> None:
        await pins.pin(KEY, OLD, ttl_s=10)
        first = await pins.move(KEY, OLD, NEW, ttl_s=10)
        second = await pins.move(KEY, OLD, Pin(1, "small@v3"), ttl_s=10)
        assert first == second == await pins.get(KEY) == NEW
        assert await pins.move(KEY, Pin(1, "small@v1"), Pin(2, "small@v3"), ttl_s=10) == NEW
        assert await pins.move(KEY, Pin(0, "small@v2"), Pin(2, "small@v3"), ttl_s=10) == NEW

    async def test_a_missing_pin_is_not_moved(self, pins: Pins) -> None:
        assert await pins.move(KEY, OLD, NEW, ttl_s=10) is None
        assert await pins.get(KEY) is None

    async def test_a_move_is_told_until_a_turn_was_accepted_under_it(self, pins: Pins) -> None:
        await pins.pin(KEY, OLD, ttl_s=10)
        await pins.move(KEY, OLD, NEW, ttl_s=10)
        held = await pins.get(KEY)
        assert held is not None
        assert held.moved == Moved("small@v1", "small@v2", "version_failed")
        confirmed = await pins.confirm(KEY, held, ttl_s=10)
        assert confirmed is not None
        assert confirmed == NEW
        assert confirmed.moved is None
        held = await pins.get(KEY)
        assert held is not None
        assert held.moved is None

    async def test_a_pin_that_no_turn_confirms_expires_and_a_confirmed_one_stays(
        self, lives: LiveBackend, pins: Pins
    ) -> None:
        for key in ("kept", "left"):
            await pins.pin(key, OLD, ttl_s=0.5)
        assert await pins.confirm("kept", OLD, ttl_s=10) == OLD
        await lives.pass_time(0.6)
        assert await pins.get("left") is None
        assert await pins.get("kept") == OLD

    async def test_confirming_another_pin_prolongs_nothing(self, lives: LiveBackend, pins: Pins) -> None:
        await pins.pin(KEY, OLD, ttl_s=0.5)
        assert await pins.confirm(KEY, Pin(0, "small@v2"), ttl_s=10) == OLD
        await lives.pass_time(0.6)
        assert await pins.get(KEY) is None
        assert await pins.confirm(KEY, OLD, ttl_s=10) is None
        assert await pins.get(KEY) is None

    async def test_a_dropped_pin_is_gone(self, pins: Pins) -> None:
        await pins.pin(KEY, OLD, ttl_s=10)
        await pins.drop(KEY)
        await pins.drop(KEY)
        assert await pins.get(KEY) is None
        assert await pins.pin(KEY, NEW, ttl_s=10) == NEW

    async def test_after_losing_everything_no_pin_is_there(self, lives: LiveBackend, pins: Pins) -> None:
        await pins.pin(KEY, OLD, ttl_s=10)
        await lives.lose_everything()
        assert await pins.get(KEY) is None
