"""Which deployments may be cold, by their settings, and that records of earlier releases still read."""

from dataclasses import replace

import msgspec
import pytest

from axon.domain.registry.deployment import Deployment
from axon.domain.registry.record import record_of, row_of

SMALL = Deployment(name="small", model="small", created=1.0)


@pytest.mark.parametrize(
    ("min_replicas", "hot", "least"), [(0, False, 0), (0, True, 1), (1, False, 1), (3, False, 3), (3, True, 3)]
)
def test_only_what_is_not_hot_and_needs_no_replica_may_be_cold(min_replicas: int, hot: bool, least: int) -> None:
    found = replace(SMALL, min_replicas=min_replicas, hot=hot)
    assert (found.least_replicas, found.may_be_cold) == (least, least == 0)


def test_a_record_from_before_hot_deployments_reads_as_one_that_is_not_hot() -> None:
    row = row_of(SMALL)
    old = {
        name: value for name, value in msgspec.json.decode(row.body).items() if name not in ("hot", "cold_patience_s")
    }
    read = record_of(replace(row, body=msgspec.json.encode(old).decode()))
    assert read == SMALL
