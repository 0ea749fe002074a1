"""The admin API of the registry over the whole application: models, versions, deployments, aliases, prices, changes."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from axon.domain.tenants.key import Scope
from axon.gateway.http.scopes import NEEDED
from tests.gateway.admin.office import Office, ok, opened_office, refused

VERSION = {"label": "v1", "source": "/models/small", "digest": "d" * 64, "text": "mark", "max_model_len": 2048}
URL = "/v1/admin"


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    async with opened_office(tmp_path) as office:
        yield office


@pytest.fixture
async def key(office: Office) -> str:
    return await office.key("ops", Scope.ADMIN)


@pytest.fixture
async def admin(office: Office, key: str) -> AsyncIterator[httpx.AsyncClient]:
    async with office.client(key) as client:
        yield client


@pytest.fixture
async def small(admin: httpx.AsyncClient) -> dict[str, Any]:
    """A model with a version that is deployed under its name."""
    ask = {"id": "small", "max_model_len": 4096, "licence": "mit", "version": VERSION, "deploy": True}
    return await ok(admin.post(f"{URL}/models", json=ask))


async def test_no_route_of_the_registry_is_open_to_a_tenant(office: Office) -> None:
    async with office.client(await office.key("ops")) as tenant:
        paths = [name for name in NEEDED if any(f"{URL}/{kind}" in name for kind in KINDS)]
        assert len(paths) == 31
        for name in paths:
            method, _, path = name.partition(" ")
            reply = await tenant.request(method, path.format(model_id="a", label="b", deployment_id="c", alias_id="d"))
            assert reply.status_code == 403, name


KINDS = ("models", "deployments", "aliases", "prices", "changes")


class TestModels:
    async def test_a_model_is_added_with_its_version_and_deployment(
        self, admin: httpx.AsyncClient, office: Office, small: dict[str, Any]
    ) -> None:
        assert small == {
            "id": "small",
            "object": "model",
            "capabilities": ["chat"],
            "max_model_len": 4096,
            "licence": "mit",
            "revision": 1,
            "created_at": int(office.clock.now()),
        }
        assert await ok(admin.get(f"{URL}/models/small")) == small
        version = await ok(admin.get(f"{URL}/models/small/versions/v1"))
        assert (version["id"], version["object"], version["digest"]) == ("small@v1", "model.version", "d" * 64)
        assert (version["settings"]["dtype"], version["advice"]["temperature"]) == ("auto", 1.0)
        deployment = await ok(admin.get(f"{URL}/deployments/small"))
        assert (deployment["stable"], deployment["members"][0]["letter"]) == ("small@v1", "")

    async def test_models_are_listed_page_by_page_by_name(self, admin: httpx.AsyncClient) -> None:
        for name in ("c", "a", "b"):
            await ok(admin.post(f"{URL}/models", json={"id": name, "capabilities": ["tools", "chat"]}))
        first = await ok(admin.get(f"{URL}/models?limit=2"))
        assert ([each["id"] for each in first["data"]], first["has_more"]) == (["a", "b"], True)
        assert first["data"][0]["capabilities"] == ["chat", "tools"]
        rest = await ok(admin.get(f"{URL}/models?after=b"))
        assert ([each["id"] for each in rest["data"]], rest["has_more"]) == (["c"], False)

    async def test_bodies_are_validated_by_field(self, admin: httpx.AsyncClient, small: dict[str, Any]) -> None:
        for path, ask, param in (
            ("models", {}, "id"),
            ("models", {"id": "a@b"}, "id"),
            ("models", {"id": "a", "deploy": True}, "deploy"),
            ("models", {"id": "a", "capabilities": ["fly"]}, "capabilities.0"),
            ("models", {"id": "a", "capabilities": []}, "capabilities"),
            ("models", {"id": "a", "max_model_len": 10**400}, "max_model_len"),
            ("models", {"id": "a", "version": {"label": "v1"}}, "version.source"),
            ("models/small/versions", {**VERSION, "label": "v2", "max_model_len": "long"}, "max_model_len"),
            ("models/small/versions", {**VERSION, "label": "v2", "settings": {"dtpye": "x"}}, "settings.dtpye"),
            ("models/small/versions", {**VERSION, "label": "v2", "digest": ""}, "digest"),
            ("deployments", {"id": "a", "model": "small"}, "version"),
            ("deployments", {"id": "a", "model": "small", "version": "v1", "max_replicas": 0}, "max_replicas"),
            ("deployments", {"id": "a", "model": "small", "version": "v1", "stable": "v1"}, "stable"),
            ("aliases", {"id": "best"}, "deployment"),
            ("prices", {"model": "small", "prompt": -1}, "prompt"),
        ):
            reply = await admin.post(f"{URL}/{path}", json=ask)
            error = reply.json()["error"]
            assert (reply.status_code, error["param"]) == (400, param), (ask, error)

    async def test_a_model_is_removed_after_all_that_needs_it(
        self, admin: httpx.AsyncClient, small: dict[str, Any]
    ) -> None:
        await refused(admin.delete(f"{URL}/models/small"), 409, "model_in_use")
        await refused(admin.delete(f"{URL}/models/small/versions/v1"), 409, "version_in_use")
        assert (await ok(admin.delete(f"{URL}/deployments/small")))["deleted"]
        gone = await ok(admin.delete(f"{URL}/models/small/versions/v1"))
        assert gone == {"id": "small@v1", "object": "model.version.deleted", "deleted": True}
        assert (await ok(admin.delete(f"{URL}/models/small")))["deleted"]
        await refused(admin.get(f"{URL}/models/small"), 404, "model_not_found")


class TestRevisions:
    async def test_a_change_names_the_revision_it_was_made_from(
        self, admin: httpx.AsyncClient, small: dict[str, Any]
    ) -> None:
        path = f"{URL}/models/small"
        await refused(admin.patch(path, json={"licence": "gpl"}), 400, "revision_required", "revision")
        changed = await ok(admin.patch(path, json={"licence": "gpl", "revision": small["revision"]}))
        assert (changed["licence"], changed["max_model_len"]) == ("gpl", 4096)
        assert changed["revision"] > small["revision"]
        await refused(admin.patch(path, json={"licence": "bsd", "revision": 1}), 409, "revision_mismatch", "revision")
        assert await ok(admin.get(path)) == changed

    async def test_of_many_changes_made_from_one_revision_exactly_one_is_made(
        self, admin: httpx.AsyncClient, small: dict[str, Any]
    ) -> None:
        path, asks = f"{URL}/models/small", [{"licence": f"writer {number}", "revision": 1} for number in range(8)]
        replies = await asyncio.gather(*(admin.patch(path, json=ask) for ask in asks))
        statuses = [reply.status_code for reply in replies]
        assert sorted(statuses) == [200] + [409] * 7
        winner = asks[statuses.index(200)]["licence"]
        assert (await ok(admin.get(path)))["licence"] == winner

    async def test_the_revision_may_come_as_if_match(self, admin: httpx.AsyncClient, small: dict[str, Any]) -> None:
        path = f"{URL}/models/small"
        changed = await ok(admin.patch(path, json={"licence": "gpl"}, headers={"If-Match": '"1"'}))
        again = admin.patch(path, json={"licence": "bsd"}, headers={"If-Match": "1"})
        await refused(again, 409, "revision_mismatch")
        await refused(admin.delete(path, headers={"If-Match": "1"}), 409, "revision_mismatch")
        for header in ("*", "-1", '"x"', "9" * 40):
            wrong = admin.patch(path, json={"licence": "bsd"}, headers={"If-Match": header})
            await refused(wrong, 400, "invalid_value", "If-Match")
        both = admin.patch(path, json={"licence": "bsd", "revision": 1}, headers={"If-Match": str(changed["revision"])})
        await refused(both, 400, "invalid_value", "revision")

    async def test_every_kind_that_can_change_compares(self, admin: httpx.AsyncClient, small: dict[str, Any]) -> None:
        await ok(admin.post(f"{URL}/aliases", json={"id": "best", "deployment": "small"}))
        for path, change in (
            ("deployments/small", {"max_replicas": 3}),
            ("aliases/best", {"deployment": "small"}),
            ("models/small", {"max_model_len": 1}),
        ):
            await refused(admin.patch(f"{URL}/{path}", json=change), 400, "revision_required")
            await refused(admin.patch(f"{URL}/{path}", json={**change, "revision": 99}), 409, "revision_mismatch")
            await refused(admin.delete(f"{URL}/{path}", headers={"If-Match": "99"}), 409, "revision_mismatch")


class TestVersions:
    async def test_versions_are_registered_and_listed_newest_first(
        self, admin: httpx.AsyncClient, small: dict[str, Any]
    ) -> None:
        ask = {
            **VERSION,
            "label": "v0",
            "source_revision": "abc",
            "settings": {"dtype": "float32", "draft": "small@v1"},
            "advice": {"temperature": 0.6},
            "reasons": True,
            "fingerprints": ["old-mark"],
        }
        made = await ok(admin.post(f"{URL}/models/small/versions", json=ask))
        assert (made["id"], made["settings"]["draft"], made["advice"]["top_p"]) == ("small@v0", "small@v1", 1.0)
        assert (made["reasons"], made["fingerprints"], made["kernel"]) == (True, ["old-mark"], "")
        listed = await ok(admin.get(f"{URL}/models/small/versions"))
        assert [each["label"] for each in listed["data"]] == ["v0", "v1"]
        await refused(admin.get(f"{URL}/models/other/versions"), 404, "model_not_found")
        await refused(admin.get(f"{URL}/models/small/versions/v9"), 404, "version_not_found")
        await refused(admin.post(f"{URL}/models/small/versions", json=ask), 409, "version_exists")


class TestDeployments:
    async def test_a_deployment_is_created_changed_and_listed(
        self, admin: httpx.AsyncClient, small: dict[str, Any]
    ) -> None:
        ask = {"id": "gold", "model": "small", "version": "small@v1", "pool": "gold", "fallbacks": ["small"]}
        made = await ok(admin.post(f"{URL}/deployments", json=ask))
        assert (made["stable"], made["min_replicas"], made["rollout"]) == ("small@v1", 1, None)
        change = {"min_replicas": 0, "max_replicas": 4, "idle_s": 600, "fallbacks": [], "revision": made["revision"]}
        change |= {"hot": True, "cold_patience_s": 45}
        assert (made["hot"], made["cold_patience_s"]) == (False, 300.0)
        changed = await ok(admin.patch(f"{URL}/deployments/gold", json=change))
        assert (changed["max_replicas"], changed["idle_s"], changed["fallbacks"]) == (4, 600.0, [])
        assert (changed["hot"], changed["cold_patience_s"]) == (True, 45.0)
        assert (changed["pool"], changed["members"]) == ("gold", made["members"])
        listed = await ok(admin.get(f"{URL}/deployments"))
        assert [each["id"] for each in listed["data"]] == ["gold", "small"]
        fixed = {"num_lanes": 8, "revision": changed["revision"]}
        reply = await admin.patch(f"{URL}/deployments/gold", json=fixed)
        assert (reply.status_code, reply.json()["error"]["param"]) == (400, "num_lanes")

    async def test_a_deployments_autoscaler_is_set_piece_by_piece(
        self, admin: httpx.AsyncClient, small: dict[str, Any]
    ) -> None:
        floor = {"replicas": 2, "start": "08:00", "end": "20:00", "days": ["mon"], "zone": "Europe/Berlin"}
        ask = {"id": "gold", "model": "small", "version": "v1", "max_replicas": 4, "scaling": {"floors": [floor]}}
        made = await ok(admin.post(f"{URL}/deployments", json=ask))
        assert made["scaling"]["floors"] == [floor]
        aims = {"utilisation": 0.6, "target_wait_s": 5, "price_per_h": 2.5, "cost_per_h": 10}
        change = {"scaling": aims, "revision": made["revision"]}
        changed = await ok(admin.patch(f"{URL}/deployments/gold", json=change))
        assert changed["scaling"] == {**made["scaling"], **aims}
        for scaling, param in (
            ({"cost_per_h": 2}, "scaling.cost_per_h"),
            ({"floors": [{**floor, "zone": "Mars"}]}, "scaling.floors.zone"),
            ({"floors": [{**floor, "hour": 8}]}, "scaling.floors.0.hour"),
            ({"utilization": 0.5}, "scaling.utilization"),
            ({"utilisation": "0.5"}, "scaling.utilisation"),
        ):
            body = {"scaling": scaling, "revision": changed["revision"]}
            reply = await admin.patch(f"{URL}/deployments/gold", json=body)
            assert (reply.status_code, reply.json()["error"]["param"]) == (400, param)
        assert await ok(admin.get(f"{URL}/deployments/gold")) == changed
        clear = {"scaling": {"floors": [], "utilisation": 0}, "revision": changed["revision"]}
        cleared = await ok(admin.patch(f"{URL}/deployments/gold", json=clear))
        assert (cleared["scaling"]["floors"], cleared["scaling"]["cost_per_h"]) == ([], 10.0)

    async def test_a_label_is_a_version_of_the_deployments_model(
        self, admin: httpx.AsyncClient, small: dict[str, Any]
    ) -> None:
        made = await ok(admin.post(f"{URL}/deployments", json={"id": "a", "model": "small", "version": "v1"}))
        assert made["stable"] == "small@v1"
        unknown = admin.post(f"{URL}/deployments", json={"id": "b", "model": "small", "version": "v7"})
        await refused(unknown, 404, "version_not_found")


async def test_an_alias_is_made_switched_and_removed(admin: httpx.AsyncClient, small: dict[str, Any]) -> None:
    await ok(admin.post(f"{URL}/deployments", json={"id": "other", "model": "small", "version": "v1"}))
    made = await ok(admin.post(f"{URL}/aliases", json={"id": "best", "deployment": "small"}))
    again = admin.post(f"{URL}/aliases", json={"id": "best", "deployment": "other"})
    await refused(again, 409, "alias_exists")
    switch = {"deployment": "other", "revision": made["revision"]}
    assert (await ok(admin.patch(f"{URL}/aliases/best", json=switch)))["deployment"] == "other"
    await refused(admin.patch(f"{URL}/aliases/none", json=switch), 404, "alias_not_found")
    assert [each["id"] for each in (await ok(admin.get(f"{URL}/aliases")))["data"]] == ["best"]
    assert (await ok(admin.delete(f"{URL}/aliases/best")))["object"] == "alias.deleted"
    await refused(admin.get(f"{URL}/aliases/best"), 404, "alias_not_found")


async def test_prices_are_dated_and_the_latest_comes_first(
    admin: httpx.AsyncClient, office: Office, small: dict[str, Any]
) -> None:
    now = await ok(admin.post(f"{URL}/prices", json={"model": "small", "prompt": 0.15, "output": 0.6}))
    assert (now["object"], now["since"], now["version"]) == ("price", office.clock.now(), "")
    ask = {"model": "small", "version": "v1", "output": 0.5, "since": office.clock.now() + 60, "currency": "EUR"}
    later = await ok(admin.post(f"{URL}/prices", json=ask))
    assert later["version"] == "small@v1"
    assert (await ok(admin.get(f"{URL}/prices")))["data"] == [later, now]
    assert (await ok(admin.get(f"{URL}/prices?model=other")))["data"] == []
    await refused(admin.post(f"{URL}/prices", json=ask), 409, "price_exists")


async def test_the_trail_names_the_key_and_what_it_changed(
    admin: httpx.AsyncClient, office: Office, key: str, small: dict[str, Any]
) -> None:
    await ok(admin.patch(f"{URL}/models/small", json={"licence": "gpl", "revision": 1}))
    first = await ok(admin.get(f"{URL}/changes?limit=3"))
    assert [(each["id"], each["kind"], each["action"]) for each in first["data"]] == [
        ("1", "model", "add"),
        ("2", "version", "add"),
        ("3", "deployment", "add"),
    ]
    assert first["has_more"]
    rest = await ok(admin.get(f"{URL}/changes?after={first['last_id']}"))
    (change,) = rest["data"]
    assert (change["actor"], change["name"], change["action"]) == (key[4:12], "small", "change")
    assert (change["before"]["licence"], change["after"]["licence"]) == ("mit", "gpl")
    assert not rest["has_more"]
    newest = await ok(admin.get(f"{URL}/changes?order=desc&limit=3"))
    assert [each["id"] for each in newest["data"]] == ["4", "3", "2"]
    assert newest["has_more"]
    oldest = await ok(admin.get(f"{URL}/changes?order=desc&after={newest['last_id']}"))
    assert [each["id"] for each in oldest["data"]] == ["1"]
    assert not oldest["has_more"]
    for query in ("after=x", "after=-1", f"after={'9' * 40}", "limit=0", "limit=1000"):
        reply = await admin.get(f"{URL}/changes?{query}")
        assert reply.status_code == 400, query
