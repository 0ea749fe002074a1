"""What waits for workers: turns in lanes, and the tokens that they are expected to cost."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from axon.adapters.live.memory.presences import MemoryPresences
from axon.control.backlog import Backlog, tokens_of_turn
from axon.domain.presence import Presence, Service
from axon.runtime.clock import FakeClock
from tests.contracts.builders import make_presence


class Lanes:
    """A queue with these depths, which notes how many lanes were asked for at once."""

    def __init__(self, depths: Mapping[str, int]) -> None:
        self._depths = depths
        self.asked: list[int] = []

    async def depths(self, lanes: Sequence[str]) -> Mapping[str, int]:
        self.asked.append(len(lanes))
        return {lane: self._depths.get(lane, 0) for lane in lanes}


def test_a_turn_costs_the_mean_of_those_that_were_taken() -> None:
    served = [Service(taken_jobs=1, taken_prompt=100, expected_tokens=50), Service(taken_jobs=3, expected_tokens=250)]
    assert tokens_of_turn(served) == 100
    assert tokens_of_turn([]) == 400


def test_all_lanes_of_a_model_are_counted_a_few_at_a_time() -> None:
    lanes = [f"small/{number:02}" for number in range(100)]
    queue, clock = Lanes({"small/00": 2, "small/99": 3}), FakeClock()
    presences, shown = MemoryPresences(clock), list[tuple[str, int, float]]()

    def lanes_of(found: Mapping[str, Sequence[Presence]]) -> Mapping[str, Sequence[str]]:
        assert [each.worker for each in found["small"]] == ["w1"]
        return {"small": lanes, "empty": []}

    backlog = Backlog(
        queue,  # type: ignore[arg-type]
        presences,
        lambda: ["small", "empty"],
        lanes_of,
        lambda model, num, tokens: shown.append((model, num, tokens)),
    )

    async def story() -> None:
        presence = make_presence()
        service = Service(taken_jobs=2, taken_prompt=10, expected_tokens=30)
        await presences.put(replace(presence, load=replace(presence.load, service=service)), ttl_s=3.0)
        await backlog.look()

    asyncio.run(story())
    assert shown == [("small", 5, 100.0), ("empty", 0, 0.0)]
    assert queue.asked == [64, 36]


def test_a_model_may_be_deployed_during_a_look_and_be_gone_at_the_next() -> None:
    shown, lanes = list[tuple[str, int, float]](), {"small": ["small/00"], "new": ["new/00"]}
    backlog = Backlog(
        Lanes({"new/00": 2}),  # type: ignore[arg-type]
        MemoryPresences(FakeClock()),
        lambda: ["small"],
        lambda found: lanes,
        lambda model, num, tokens: shown.append((model, num, tokens)),
    )
    asyncio.run(backlog.look())
    assert shown == [("small", 0, 0.0), ("new", 2, 800.0)]
    del lanes["new"]
    shown.clear()
    asyncio.run(backlog.look())
    assert shown == [("new", 0, 0.0), ("small", 0, 0.0)]
