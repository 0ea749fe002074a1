"""Looked-up drafts beside several streams: text that repeats itself is found, and prompts do not wait for drafts."""

from functools import cache

import pytest

from tests.engine.schedule.lookups_on_machines import Looping, Stand, Told
from tests.engine.schedule.machines import NEOVERSE, TILED, XEON, Day, Machine

DAY = Day(jitter=0.05, seed=3)
BURSTS = 3


@cache
def bursts(machine: Machine, load: Looping, *, speculates: bool) -> list[Told]:
    """The bursts behind the first, in which the machine is new to the controller."""
    stand = Stand(machine, DAY, speculates=speculates, max_streams=max(16, load.streams))
    return [stand.run(load) for _ in range(BURSTS)][1:]


@pytest.mark.parametrize(
    ("machine", "streams", "gain"),
    [(XEON, 1, 1.5), (XEON, 4, 1.15), (XEON, 16, 1.1), (TILED, 4, 1.4), (TILED, 16, 1.25)],
)
def test_text_that_repeats_itself_is_faster_in_burst_after_burst(machine: Machine, streams: int, gain: float) -> None:
    load = Looping(streams=streams)
    plain, ours = (bursts(machine, load, speculates=speculates) for speculates in (False, True))
    for without, with_drafts in zip(plain, ours, strict=True):
        assert with_drafts.speed > gain * without.speed


@pytest.mark.parametrize("machine", [XEON, NEOVERSE, TILED])
@pytest.mark.parametrize("streams", [4, 16])
def test_prompts_wait_little_for_the_drafts_of_streams(machine: Machine, streams: int) -> None:
    load = Looping(streams=streams)
    plain, ours = (bursts(machine, load, speculates=speculates) for speculates in (False, True))
    assert sum(each.ttft_s for each in ours) < 1.2 * sum(each.ttft_s for each in plain)


@pytest.mark.parametrize(("machine", "streams"), [(XEON, 4), (NEOVERSE, 16), (TILED, 16)])
def test_text_that_does_not_repeat_itself_has_no_drafts(machine: Machine, streams: int) -> None:
    load = Looping(streams=streams, begins=128)
    assert max(each.drafts_per_token for each in bursts(machine, load, speculates=True)) < 0.01
