"""The admin API of rollouts over the whole application."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from axon.domain.registry import steps
from axon.domain.registry.deployment import Deployment, MemberState
from axon.domain.registry.samples import Observed, Samples, bucket_of_latency
from axon.domain.tenants.key import Scope
from axon.registry.catalog import Catalog
from axon.registry.observations import Observations
from axon.registry.writer import RegistryWriter
from tests.domain.registry.builders import nobody_pinned
from tests.gateway.admin.models.test_registry import VERSION
from tests.gateway.admin.office import Office, ok, refused

URL = "/v1/admin/deployments/small/rollout"


@pytest.fixture
async def admin(office: Office) -> AsyncIterator[httpx.AsyncClient]:
    """An operator, with a model of two versions; the first is deployed under the model's name."""
    async with office.client(await office.key("ops", Scope.ADMIN)) as client:
        await ok(client.post("/v1/admin/models", json={"id": "small", "version": VERSION, "deploy": True}))
        await ok(client.post("/v1/admin/models/small/versions", json={**VERSION, "label": "v2"}))
        yield client


async def warm(office: Office) -> None:
    """What control's leader does when the new version has workers."""

    def change(old: Deployment) -> Deployment:
        for version in ("small@v1", "small@v2"):
            old = steps.with_state(old, version, MemberState.READY, now=1.0)
        return steps.begin(old, cold_pools=(), now=office.clock.now())

    catalog = Catalog(
        office.store.registry, RegistryWriter(office.store.registry, office.clock), office.clock, pinned=nobody_pinned
    )
    await catalog.change_deployment("small", change, actor="control")


async def test_a_rollout_is_started_looked_at_and_promoted(admin: httpx.AsyncClient, office: Office) -> None:
    ask = {"version": "v2", "steps": [5, 12.5, 100], "bake_s": 60, "tolerance": {"slower": 2}}
    started = await ok(admin.post(URL, json=ask))
    assert (started["object"], started["state"], started["share"]) == ("rollout", "waiting", 0)
    assert (started["old"], started["new"], started["stable"]) == ("small@v1", "small@v2", "small@v1")
    assert (started["steps"], started["tolerance"]["slower"]) == ([5, 12.5, 100], 2)
    assert [each["id"] for each in started["versions"]] == ["small@v1", "small@v2"]
    assert await ok(admin.get(URL)) == started
    await warm(office)
    assert (await ok(admin.get(URL)))["share"] == 5
    assert (await ok(admin.post(f"{URL}/step")))["share"] == 12.5
    assert (await ok(admin.post(f"{URL}/pause")))["state"] == "paused"
    assert (await ok(admin.post(f"{URL}/resume", json={})))["state"] == "running"
    promoted = await ok(admin.post(f"{URL}/promote", json={"reason": "it is good"}))
    assert (promoted["state"], promoted["reason"], promoted["stable"]) == ("promoted", "it is good", "small@v2")
    back = await ok(admin.post(f"{URL}/rollback"))
    assert (back["state"], back["stable"], back["share"]) == ("rolled_back", "small@v1", 0)
    again = await ok(admin.post(URL, json={"version": "small@v2"}))
    assert again["id"] != started["id"]
    assert again["steps"] == [1, 10, 50, 100]


async def test_an_abort_by_hand_fails_the_version(admin: httpx.AsyncClient, office: Office) -> None:
    await ok(admin.post(URL, json={"version": "v2"}))
    await warm(office)
    over = await ok(admin.post(f"{URL}/abort", json={"reason": "it swears"}))
    assert (over["state"], over["reason"]) == ("aborted", "it swears")
    assert [each["state"] for each in over["versions"]] == ["ready", "failed"]
    await refused(admin.post(URL, json={"version": "v2"}), 409, "version_not_ready")


async def test_what_cannot_be_done_now_is_a_conflict_that_says_why(admin: httpx.AsyncClient) -> None:
    await refused(admin.get(URL), 404, "rollout_not_found")
    await refused(admin.post(f"{URL}/pause"), 409, "no_rollout")
    await refused(admin.post(URL, json={"version": "v1"}), 409, "already_stable")
    await ok(admin.post(URL, json={"version": "v2"}))
    await refused(admin.post(URL, json={"version": "v2"}), 409, "rollout_under_way")
    await refused(admin.post(f"{URL}/pause"), 409, "rollout_state")
    await refused(admin.post(f"{URL}/promote"), 409, "rollout_state")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"version": "v9"}, 404, "version_not_found"),
        ({"version": "v2", "steps": [50, 10]}, 400, "invalid_value"),
        ({"version": "v2", "steps": [0.001]}, 400, "invalid_value"),
        ({"version": "v2", "steps": [1e308]}, 400, "invalid_value"),
        ({"version": "v2", "steps": [-1e308, 100]}, 400, "invalid_value"),
        ({"version": "v2", "steps": []}, 400, "invalid_value"),
        ({"version": "v2", "golden": [{"prompt": "x" * 9000, "expected": "y"}] * 12}, 400, "invalid_value"),
        ({"version": "v2", "bake_s": -1}, 400, "invalid_value"),
        ({"version": "v2", "tolerance": {"slower": 0.5}}, 400, "invalid_value"),
        ({"version": "v2", "revision": 999}, 409, "revision_mismatch"),
        ({}, 400, "missing_required_parameter"),
    ],
)
async def test_a_rollout_that_cannot_work_is_refused(
    admin: httpx.AsyncClient, body: dict[str, Any], status: int, code: str
) -> None:
    await refused(admin.post(URL, json=body), status, code)
    await refused(admin.get(URL), 404, "rollout_not_found")


async def test_an_unknown_deployment_is_not_found(admin: httpx.AsyncClient) -> None:
    other = URL.replace("small", "large")
    await refused(admin.get(other), 404, "deployment_not_found")
    await refused(admin.post(other, json={"version": "v2"}), 404, "deployment_not_found")
    await refused(admin.post(f"{other}/rollback"), 404, "deployment_not_found")


async def test_the_figures_are_those_of_all_gateways_together(admin: httpx.AsyncClient, office: Office) -> None:
    await refused(admin.get(f"{URL}/figures"), 404, "rollout_not_found")
    rollout = (await ok(admin.post(URL, json={"version": "v2"})))["id"]
    assert (await ok(admin.get(f"{URL}/figures")))["gateways"] == 0
    observations = Observations(office.cache)
    fast, slow = bucket_of_latency(0.01), bucket_of_latency(0.5)
    old = Samples(begun=10, ttft={fast: 4}, itl={fast: 4})
    await observations.put(rollout, "g-1", Observed(old=old, new=Samples(begun=3, errors=2, ttft={slow: 1})))
    await observations.put(rollout, "g-2", Observed(old=old, new=Samples(begun=2, refused=1, mute=1)))
    shown = await ok(admin.get(f"{URL}/figures"))
    assert (shown["object"], shown["id"], shown["gateways"]) == ("rollout.figures", rollout, 2)
    assert (shown["old"]["version"], shown["old"]["turns"], shown["old"]["errors"]) == ("small@v1", 20, 0)
    counts = [shown["new"][name] for name in ("version", "turns", "errors", "refused", "mute")]
    assert counts == ["small@v2", 5, 2, 1, 1]
    assert shown["old"]["ttft_s"] == pytest.approx(0.01, rel=0.06)
    assert shown["new"]["ttft_s"] == pytest.approx(0.5, rel=0.06)
    assert shown["new"]["itl_s"] is None
