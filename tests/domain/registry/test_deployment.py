"""Which deployments may be cold, by their settings, and that records of earlier releases still read."""

from dataclasses import replace

import msgspec
import pytest

from axon.domain.registry.deployment import Deployment
from axon.domain.registry.record import record_of, row_of

SMALL = Deployment(name="small", model="small", created=1.0)


@pytest.mark.parametrize(
    ("min_replicas", "idle_s", "hot", "least"),
    [(0, 60, False, 0), (0, 60, True, 1), (0, 0, False, 1), (1, 60, False, 1), (3, 60, False, 3), (3, 0, True, 3)],
)
def test_only_what_needs_no_replica_has_an_idle_time_and_is_not_hot_may_be_cold(
    min_replicas: int, idle_s: float, hot: bool, least: int
) -> None:
    found = replace(SMALL, min_replicas=min_replicas, idle_s=idle_s, hot=hot)
    assert (found.least_replicas, found.may_be_cold) == (least, least == 0)


def test_a_record_from_before_hot_deployments_reads_as_one_that_is_not_hot() -> None:
    row = row_of(SMALL)
    old = {
        name: value for name, value in msgspec.json.decode(row.body).items() if name not in ("hot", "cold_patience_s")
    }
    read = record_of(replace(row, body=msgspec.json.encode(old).decode()))
    assert read == SMALL
