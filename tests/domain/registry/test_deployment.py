"""Which deployments may be cold, by their settings, and that records of earlier releases still read."""

from dataclasses import replace

import msgspec
import pytest

from axon.domain.registry.deployment import Deployment
from axon.domain.registry.record import record_of, row_of

SMALL = Deployment(name="small", model="small", created=1.0)


@pytest.mark.parametrize(
    ("min_replicas", "idle_s", "hot", "may_be_cold"),
    [(0, 60, False, True), (0, 60, True, False), (0, 0, False, False), (1, 60, False, False), (3, 0, True, False)],
)
def test_only_what_needs_no_replica_has_an_idle_time_and_is_not_hot_may_be_cold(
    min_replicas: int, idle_s: float, hot: bool, may_be_cold: bool
) -> None:
    found = replace(SMALL, min_replicas=min_replicas, idle_s=idle_s, hot=hot)
    assert found.may_be_cold == may_be_cold


def test_a_record_from_before_hot_deployments_reads_as_one_that_is_not_hot() -> None:
    row = row_of(SMALL)
    old = {
        name: value for name, value in msgspec.json.decode(row.body).items() if name not in ("hot", "cold_patience_s")
    }
    read = record_of(replace(row, body=msgspec.json.encode(old).decode()))
    assert read == SMALL
