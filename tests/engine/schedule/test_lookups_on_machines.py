"""Looked-up drafts beside several streams: text that repeats itself is found, and prompts do not wait for drafts."""

from functools import cache

import pytest

from tests.engine.schedule.lookups_on_machines import Burst, BurstResult, Prose, later_bursts
from tests.engine.schedule.machines import NEOVERSE, TILED, XEON, Machine


@cache
def bursts(machine: Machine, burst: Burst, *, speculates: bool) -> list[BurstResult]:
    return later_bursts(machine, burst, speculates=speculates)


@pytest.mark.parametrize(
    ("machine", "num_streams", "gain"),
    [(XEON, 1, 1.5), (XEON, 4, 1.15), (XEON, 16, 1.03), (TILED, 4, 1.4), (TILED, 16, 1.25)],
)
def test_text_that_repeats_itself_is_faster_in_burst_after_burst(
    machine: Machine, num_streams: int, gain: float
) -> None:
    burst = Burst(num_streams=num_streams)
    plain, ours = (bursts(machine, burst, speculates=speculates) for speculates in (False, True))
    for without, with_drafts in zip(plain, ours, strict=True):
        assert with_drafts.tokens_per_s > gain * without.tokens_per_s


@pytest.mark.parametrize(("machine", "num_streams", "most"), [(XEON, 4, 1.15), (XEON, 16, 1.3), (TILED, 16, 1.1)])
def test_prompts_wait_little_for_the_drafts_of_streams(machine: Machine, num_streams: int, most: float) -> None:
    burst = Burst(num_streams=num_streams)
    plain, ours = (bursts(machine, burst, speculates=speculates) for speculates in (False, True))
    assert sum(each.ttft_s for each in ours) < most * sum(each.ttft_s for each in plain)


@pytest.mark.parametrize(("machine", "num_streams"), [(XEON, 4), (NEOVERSE, 16), (TILED, 16)])
def test_text_that_repeats_only_pairs_of_tokens_is_not_slower(machine: Machine, num_streams: int) -> None:
    burst = Prose(num_streams=num_streams)
    plain, ours = (bursts(machine, burst, speculates=speculates) for speculates in (False, True))
    speed = sum(each.tokens_per_s for each in ours) / sum(each.tokens_per_s for each in plain)
    assert speed > 0.97
