"""A new version that errs, is slower or is mute is taken back by control alone, and the operator is told why."""

from collections.abc import Callable

import pytest

from tests.fleet.fleet import Fleet
from tests.fleet.talks import Talks
from tests.fleet.versions import MODEL, Registry
from tests.journeys.server import wait_until

V1, V2 = "small@v1", "small@v2"
_STEP_S = "0.01"
_SOON = {"min_samples": 20, "mute_s": 1.0}
"""With so few turns on each side, a comparison takes seconds."""


@pytest.mark.services
@pytest.mark.long("rollouts")
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("worse", "reason", "state"),
    [
        ({"echo_fails": "0.5", "echo_step_s": _STEP_S}, "errs", "failed"),
        ({"echo_step_s": "3600"}, "is mute", "failed"),
        ({"echo_step_s": "0.02"}, "is slower", "draining"),
    ],
    ids=["errs", "is mute", "is slower"],
)
def test_a_version_that_is_worse_is_taken_back_by_itself(
    fresh: Callable[..., Fleet], worse: dict[str, str], reason: str, state: str
) -> None:
    fleet = fresh(lifecycle_drain_s=2).start(gateways=2, workers=1)
    with Registry(fleet) as registry:
        registry.add("v1", engine={"echo_step_s": _STEP_S})
        registry.worker("v1")
        registry.add("v2", engine=worse)
        registry.rollout(version="v2", steps=[50], bake_s=0, tolerance=_SOON)
        registry.worker("v2")
        urls = [gateway.url for gateway in fleet.gateways]
        with Talks(urls, fleet.key, width=8, length=1, timeout_s=4.0) as talks:
            wait_until(lambda: registry.rollout()["state"] == "aborted", "it is aborted", 120)
            later = len(talks.talks) + 8
            wait_until(lambda: len(talks.talks) > later + 20, "they talk on", 60)
        print(shown := fleet.axon("rollouts", "status", MODEL))
        assert reason in registry.rollout()["reason"]
        assert "aborted" in shown
        assert registry.members() == {V1: "ready", V2: state}
        assert talks.first_versions(later).keys() == {V1}
