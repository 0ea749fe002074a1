"""A version is rolled out, back and out again under conversations, the second time among faults; nobody notices."""

import pytest

from tests.fleet.rollout_scene import chance_of, scene, show
from tests.long import share

_TURNS = 1000
_TALKS = 100


@pytest.mark.services
@pytest.mark.long
@pytest.mark.timeout(1200)
def test_no_turn_fails_and_no_conversation_changes_its_version_while_versions_come_and_go() -> None:
    with scene() as opened:
        calm = opened.run("v1", "v2", int(share(_TURNS)))
        stormy = opened.run("v2", "v3", int(share(_TURNS)), with_faults=True)
    show([calm, stormy])
    for each in (calm, stormy):
        assert each.failures == []
        assert each.strays == []
        assert each.unlikely == []
        assert each.num_turns >= share(_TURNS)
        assert each.num_talks >= share(_TALKS)
    assert len(stormy.faults) == 5


def test_a_share_is_likely_near_its_mean_and_unlikely_far_from_it() -> None:
    assert chance_of(50, 100, 0.5) == 1.0
    assert chance_of(40, 100, 0.5) == pytest.approx(0.0569, abs=1e-4)
    assert chance_of(75, 100, 0.5) < 1e-6
    assert (chance_of(0, 9, 0.0), chance_of(1, 9, 0.0)) == (1.0, 0.0)
    assert (chance_of(9, 9, 1.0), chance_of(8, 9, 1.0)) == (1.0, 0.0)
