"""A worker on a host that computes ranks of another host's engine."""

from collections.abc import Callable

import pytest

from tests.fleet.fleet import Fleet
from tests.services.process import free_port


@pytest.mark.services
@pytest.mark.model
def test_it_is_ready_though_it_takes_no_jobs(fresh: Callable[..., Fleet]) -> None:
    """A cluster waits for all pods of a group to be ready; this one has nothing to announce."""
    group = {"engine_hosts": 2, "engine_tensor_parallel": 2, "engine_rendezvous": f"tcp://127.0.0.1:{free_port()}"}
    own = {"engine_kind": "axon", "engine_dtype": "float32", "worker_host_index": 1, "lifecycle_drain_s": 1.0}
    member = fresh().add("worker", **group, **own)  # returns when it is ready
    assert member.probe("/livez") == 200
    assert member.stop() == 0
