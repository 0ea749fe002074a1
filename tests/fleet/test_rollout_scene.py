"""A version is rolled out, back and out again under conversations, the second time among faults; nobody notices."""

import pytest

from tests.fleet.rollout_scene import chance_of, scene, show
from tests.long import share, whole

_TURNS = 1000
_TALKS = 100
_WIDTH = 8 if whole() else 4
_STORMY = ("v2", "v3") if whole() else ("v1", "v2")
"""The pass among faults, which is the only one of a short run."""


@pytest.mark.services
@pytest.mark.long("rollouts")
@pytest.mark.timeout(1200)
def test_no_turn_fails_and_no_conversation_changes_its_version_while_versions_come_and_go() -> None:
    passes = []
    with scene() as opened:
        if whole():
            passes.append(opened.run("v1", "v2", _TURNS))
        passes.append(opened.run(*_STORMY, int(share(_TURNS)), width=_WIDTH, with_faults=True))
    show(passes)
    for each in passes:
        assert each.failures == []
        assert each.strays == []
        assert each.unlikely == []
        assert each.num_turns >= share(_TURNS)
        assert each.num_talks >= share(_TALKS)
    assert len(passes[-1].faults) == 5


def test_a_share_is_likely_near_its_mean_and_unlikely_far_from_it() -> None:
    assert chance_of(50, 100, 0.5) == 1.0
    assert chance_of(40, 100, 0.5) == pytest.approx(0.0569, abs=1e-4)
    assert chance_of(75, 100, 0.5) < 1e-6
    assert (chance_of(0, 9, 0.0), chance_of(1, 9, 0.0)) == (1.0, 0.0)
    assert (chance_of(9, 9, 1.0), chance_of(8, 9, 1.0)) == (1.0, 0.0)
