"""A registered deployment in a fleet: asked before a worker runs, served by workers that follow the registry."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.fleet.fleet import Fleet
from tests.fleet.versions import MODEL, Registry, rotated, sent
from tests.journeys.server import wait_until

PROMPT = "one version after the other."


@pytest.mark.services
def test_a_request_waits_for_the_first_worker_of_a_registered_deployment(fresh: Callable[..., Fleet]) -> None:
    fleet = fresh().start(gateways=2, workers=1)
    body = {"model": MODEL, "prompt": PROMPT, "max_tokens": 64}
    with Registry(fleet) as registry, ThreadPoolExecutor(1) as pool, fleet.client(fleet.gateways[1].url) as http:
        registry.add("v1")
        wait_until(lambda: http.get(f"/v1/models/{MODEL}").status_code == 200, "the other gateway has heard of it")
        listed = http.get(f"/v1/models/{MODEL}").json()
        assert (listed["state"], listed["version"], listed["max_model_len"]) == ("loading", "v1", 4096)
        waiting = pool.submit(http.post, "/v1/completions", json=body)
        registry.worker("v1")
        answer = sent(waiting.result())
        assert answer["choices"][0]["text"] == rotated(PROMPT, 0)
        assert answer["system_fingerprint"] == "small@v1"
        [version] = registry.http.get(f"/v1/admin/models/{MODEL}/versions").json()["data"]
        assert version["kernel"] == "echo"
        registry.add("v2")
        refused = fleet.make("worker", worker_deployment=MODEL, worker_version="v2")
        refused.start(wait=False)
        wait_until(lambda: refused.exit_code is not None, "it ends")
        assert "does not run the version v2" in refused.log
