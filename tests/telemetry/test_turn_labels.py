"""Turns are labelled by what is deployed, and by their tier."""

import pytest

from axon.telemetry.turn_labels import turn_labels
from tests.contracts.builders import make_job


@pytest.mark.parametrize(("priority", "tier"), [(1, "priority"), (0, "default"), (-1, "flex")])
def test_a_turn_has_its_model_version_and_class(priority: int, tier: str) -> None:
    assert turn_labels(make_job(priority=priority)) == ("small", "v1", tier)
