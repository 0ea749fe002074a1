"""Golden prompts in a fleet: control asks them of the new version before any session begins on it."""

from collections.abc import Callable

import pytest

from tests.fleet.fleet import Fleet
from tests.fleet.versions import Registry
from tests.journeys.server import wait_until


@pytest.mark.services
def test_a_version_that_answers_its_golden_prompts_begins_and_one_that_does_not_is_aborted(
    fresh: Callable[..., Fleet],
) -> None:
    fleet = fresh().start(gateways=1, workers=1)
    with Registry(fleet) as registry:
        registry.add("v1")
        registry.worker("v1")
        registry.add("v2")
        registry.rollout(version="v2", bake_s=0, golden=[{"prompt": "cab", "expected": "dog"}])
        registry.worker("v2")
        wait_until(lambda: registry.rollout()["state"] == "aborted", "it is not begun", 60)
        assert "golden prompt 1 of 1: the answer '" in registry.rollout()["reason"]
        assert registry.members()["small@v2"] != "ready"
        golden = [{"prompt": "a taxi", "expected": "a taxi"}, {"prompt": "a bus", "expected": "a bus"}]
        registry.rollout(version="v2", steps=[100], bake_s=3600, golden=golden)
        wait_until(lambda: registry.rollout()["state"] == "running", "it is begun", 60)
        assert registry.members()["small@v2"] == "ready"
