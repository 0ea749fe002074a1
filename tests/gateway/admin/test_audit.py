"""/v1/admin/audit: every change of an administrator is in it, with who made it and what it was, and no secret."""

from typing import Any

import httpx
import pytest

from axon.domain.tenants.key import Scope
from tests.gateway.admin.models.test_registry import VERSION
from tests.gateway.admin.office import Office, ok, refused


@pytest.fixture
async def admin(office: Office) -> httpx.AsyncClient:
    return office.client(await office.key("ops", Scope.ADMIN))


async def trail(admin: httpx.AsyncClient, **query: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await ok(admin.get("/v1/admin/audit", params={"limit": "100", **query})))["data"]
    return found


async def test_every_change_is_told_with_who_made_it_and_what_it_was(office: Office, admin: httpx.AsyncClient) -> None:
    await ok(admin.post("/v1/admin/plans", json={"id": "pro", "limits": {"weight": 2}}))
    await ok(admin.patch("/v1/admin/plans/pro", json={"limits": {"weight": 4}}))
    await ok(admin.post("/v1/admin/tenants", json={"id": "acme", "plan": "pro"}))
    await ok(admin.patch("/v1/admin/tenants/acme", json={"name": "Acme"}))
    await ok(admin.patch("/v1/admin/tenants/acme", json={"name": "Acme"}))
    await ok(admin.post("/v1/admin/tenants/acme/suspend"))
    await ok(admin.post("/v1/admin/tenants/acme/resume"))
    made = await ok(admin.post("/v1/admin/keys", json={"tenant": "acme"}))
    new = await ok(admin.post(f"/v1/admin/keys/{made['id']}/rotate", json={"overlap_s": 0}))
    await ok(admin.post(f"/v1/admin/keys/{new['id']}/revoke"))
    office.clock.advance(1.0)
    await ok(admin.delete("/v1/admin/tenants/acme"))
    await ok(admin.delete("/v1/admin/plans/pro"))
    await ok(admin.post("/v1/admin/models", json={"id": "small"}))
    await ok(admin.post("/v1/admin/prices", json={"model": "small", "prompt": 1}))
    found = await trail(admin)
    own = [each for each in found if each["actor"] != "test"]
    assert {each["actor"] for each in own} == {str(admin.headers["authorization"])[11:19]}
    assert sorted((each["kind"], each["action"]) for each in own) == sorted(
        [
            *(("plan", word) for word in ("add", "change", "remove")),
            *(("tenant", word) for word in ("add", "change", "suspend", "resume", "remove")),
            *(("key", word) for word in ("add", "rotate", "revoke")),
            *(("model", "add"), ("price", "add")),
        ]
    )
    by = {(each["kind"], each["action"]): each for each in own}
    assert (by["plan", "change"]["before"], by["plan", "change"]["after"]) == (
        {"limits": {"weight": 2.0}},
        {"limits": {"weight": 4.0}},
    )
    assert by["tenant", "suspend"]["after"]["status"] == "suspended"
    assert (by["key", "rotate"]["name"], by["key", "rotate"]["after"]["previous"]) == (new["id"], made["id"])
    assert (by["key", "revoke"]["before"]["status"], by["key", "revoke"]["after"]["status"]) == ("valid", "revoked")
    whole = str(found)
    assert not any(text in whole for text in (made["key"], new["key"], made["key"][13:40], "digest"))


async def test_the_trail_is_read_in_pages_and_filtered(office: Office, admin: httpx.AsyncClient) -> None:
    for number in range(3):
        office.clock.advance(1.0)
        await ok(admin.post("/v1/admin/tenants", json={"id": f"t{number}"}))
    first = await ok(admin.get("/v1/admin/audit?limit=2&kind=tenant"))
    assert ([each["name"] for each in first["data"]], first["has_more"]) == (["t2", "t1"], True)
    rest = await ok(admin.get(f"/v1/admin/audit?limit=2&kind=tenant&after={first['last_id']}"))
    assert ([each["name"] for each in rest["data"]], rest["has_more"]) == (["t0"], False)
    assert [each["name"] for each in await trail(admin, text="T1")] == ["t1"]
    await refused(admin.get("/v1/admin/audit?after=none"), 400, "invalid_value", "after")
    await refused(admin.get(f"/v1/admin/audit?text={'x' * 300}"), 400, "invalid_value", "text")


async def test_what_was_refused_is_not_in_it(office: Office, admin: httpx.AsyncClient) -> None:
    before = await trail(admin)
    assert (await admin.post("/v1/admin/tenants", json={"id": "ops"})).status_code == 409
    assert (await admin.delete("/v1/admin/plans/none")).status_code == 404
    assert (await admin.post("/v1/admin/keys/nothing0/revoke")).status_code == 404
    assert await trail(admin) == before


async def test_a_key_without_the_scope_cannot_read_it(office: Office) -> None:
    reply = await office.client(await office.key("ops")).get("/v1/admin/audit")
    assert reply.status_code == 403


async def test_a_key_that_is_given_as_a_name_is_refused_and_written_nowhere(office: Office) -> None:
    key = await office.key("ops", Scope.ADMIN)
    async with office.client(key) as admin:
        await ok(admin.post("/v1/admin/models", json={"id": "small", "version": VERSION, "deploy": True}))
        for method, path, body, param in (
            ("POST", "tenants", {"id": key[:60]}, "id"),
            ("POST", "tenants", {"id": "acme", "name": key}, "name"),
            ("POST", "plans", {"id": key[:60], "limits": {}}, "id"),
            ("POST", "plans", {"id": "pro", "limits": {"models": [key]}}, "limits.models"),
            ("POST", "keys", {"tenant": "ops", "name": f"({key})"}, "name"),
            ("POST", "models", {"id": key[:60], "version": VERSION}, "id"),
            ("POST", "models/small/versions", {**VERSION, "label": key[:60]}, "label"),
            ("POST", "aliases", {"id": key[:60], "deployment": "small"}, "id"),
            ("POST", "deployments/small/rollout/rollback", {"reason": key}, "reason"),
        ):
            reply = await admin.request(method, f"/v1/admin/{path}", json=body)
            assert reply.status_code == 400, (path, reply.text)
            error = reply.json()["error"]
            assert "API key" in error["message"], (path, error)
            assert (error["param"], key[:60] in reply.text) == (param, False), path
        assert key[:60] not in (await admin.get("/v1/admin/audit?limit=1000")).text
