"""Pools: a tenant that has one is served by its workers and by no others, and hears at once where there are none."""

import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.fleet.fleet import Fleet
from tests.fleet.test_roles import AMQP, POSTGRES, REDIS, run
from tests.journeys.server import wait_until

BODY = {"model": "echo", "prompt": "For us alone. ", "max_tokens": 5}


@pytest.mark.services
def test_a_pools_tenant_is_served_by_its_workers_alone(fresh: Callable[..., Fleet]) -> None:
    fleet = fresh(worker_announce_s=0.2).start(gateways=1, workers=1)
    [gateway], [shared] = fleet.gateways, fleet.workers
    fleet.axon("tenants", "create", "gilded", "--limit", "pool=gold")
    made = json.loads(fleet.axon("keys", "create", "--tenant", "gilded", "--json"))
    headers = {"Authorization": f"Bearer {made['key']}"}
    with httpx.Client(base_url=gateway.url, headers=headers, timeout=60) as http:
        refused = http.post("/v1/completions", json=BODY)
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "pool_unavailable")
        assert refused.headers["retry-after-ms"]
        golden = fleet.add("worker", worker_pool="gold", worker_announce_s=0.2)
        [ready] = [line for line in golden.log.splitlines() if "process.ready" in line]
        assert json.loads(ready)["facts"]["Pool"] == "gold"
        wait_until(lambda: http.post("/v1/completions", json=BODY).status_code == 200, "the pool answers")
        for body in ({}, {"service_tier": "priority"}, {"service_tier": "flex"}):
            assert http.post("/v1/completions", json={**BODY, **body}).status_code == 200
        assert golden.metric("axon_taken_total") >= 4
        assert shared.metric("axon_taken_total") == 0
        with fleet.client(gateway.url) as others:
            assert others.post("/v1/completions", json=BODY).status_code == 200
        assert shared.metric("axon_taken_total") == 1
        golden.kill()
        wait_until(lambda: gateway.metric("axon_workers") == 1, "the gateway does not see the worker any more")
        assert http.post("/v1/completions", json=BODY).json()["error"]["code"] == "pool_unavailable"


def test_a_server_with_one_worker_has_no_pools(tmp_path: Path) -> None:
    ran = run("serve", "--engine", "echo", folder=tmp_path, worker_pool="gold")
    assert ran.returncode == 2, ran.stderr
    assert "worker.pool" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_pools_name_is_checked_before_anything_is_started(tmp_path: Path) -> None:
    ran = run("worker", "--pool", "a/b", "--queue", AMQP, "--live", REDIS, "--store", POSTGRES, folder=tmp_path)
    assert ran.returncode == 2, ran.stderr
    assert "worker.pool is 'a/b'" in ran.stderr
