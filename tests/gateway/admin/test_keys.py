"""Keys over HTTP: made, rotated and revoked."""

import json

import httpx

from axon.domain.tenants.key import parse_key
from tests.gateway.admin.office import Office, ok, refused


class TestKeys:
    async def test_a_keys_text_is_in_the_answer_that_made_it_and_nowhere_else(
        self, admin: httpx.AsyncClient, office: Office
    ) -> None:
        body = {"tenant": "ops", "name": "ci", "scopes": ["read"], "expires_in_s": 60}
        made = await ok(admin.post("/v1/admin/keys", json=body))
        parsed = parse_key(made.pop("key"))
        assert parsed is not None
        assert (made["id"], made["scopes"], made["expires_at"]) == (parsed.id, ["read"], int(office.clock.now()) + 60)
        assert await ok(admin.get(f"/v1/admin/keys/{parsed.id}")) == made
        listed = await ok(admin.get("/v1/admin/keys", params={"tenant": "ops"}))
        assert made in listed["data"]
        assert parsed.secret not in json.dumps(listed)
        assert (await ok(admin.get("/v1/admin/keys", params={"tenant": "none"})))["data"] == []

    async def test_a_key_may_ask_and_read_unless_it_is_told_otherwise_and_expires_in_time(
        self, admin: httpx.AsyncClient, office: Office
    ) -> None:
        made = await ok(admin.post("/v1/admin/keys", json={"tenant": "ops", "expires_in_s": 10}))
        assert made["scopes"] == ["inference", "read"]
        async with office.client(made["key"]) as client:
            assert (await client.get("/v1/models")).status_code == 200
            await refused(client.get("/v1/admin/tenants"), 403, "insufficient_permissions")
            office.clock.advance(10.0)
            await refused(client.get("/v1/models"), 401, "invalid_api_key")
        assert (await ok(admin.get(f"/v1/admin/keys/{made['id']}")))["status"] == "expired"

    async def test_after_a_rotation_both_are_good_for_the_overlap_and_then_the_new_one_alone(
        self, admin: httpx.AsyncClient, office: Office
    ) -> None:
        old = await ok(admin.post("/v1/admin/keys", json={"tenant": "ops", "name": "ci", "scopes": ["inference"]}))
        new = await ok(admin.post(f"/v1/admin/keys/{old['id']}/rotate", json={"overlap_s": 30}))
        assert (new["tenant"], new["name"], new["scopes"], new["previous"]) == ("ops", "ci", ["inference"], old["id"])
        assert new["expires_at"] is None
        async with office.client(old["key"]) as before, office.client(new["key"]) as after:
            office.clock.advance(29.0)
            for client in (before, after):
                assert (await client.get("/v1/models")).status_code == 200
            office.clock.advance(1.0)
            await refused(before.get("/v1/models"), 401, "invalid_api_key")
            assert (await after.get("/v1/models")).status_code == 200
        await refused(admin.post(f"/v1/admin/keys/{old['id']}/rotate"), 409, "key_ended")

    async def test_a_rotated_key_lives_as_long_as_the_old_one_was_made_for(
        self, admin: httpx.AsyncClient, office: Office
    ) -> None:
        old = await ok(admin.post("/v1/admin/keys", json={"tenant": "ops", "expires_in_s": 100}))
        office.clock.advance(90.0)
        new = await ok(admin.post(f"/v1/admin/keys/{old['id']}/rotate"))
        assert new["expires_at"] == int(office.clock.now()) + 100
        assert (await ok(admin.get(f"/v1/admin/keys/{old['id']}")))["expires_at"] == old["expires_at"]

    async def test_a_revoked_key_is_out_within_a_second(self, admin: httpx.AsyncClient, office: Office) -> None:
        made = await ok(admin.post("/v1/admin/keys", json={"tenant": "ops"}))
        async with office.client(made["key"]) as client:
            assert (await client.get("/v1/models")).status_code == 200
            assert (await ok(admin.post(f"/v1/admin/keys/{made['id']}/revoke")))["revoked"]
            office.clock.advance(1.001)
            await refused(client.get("/v1/models"), 401, "invalid_api_key")

    async def test_what_cannot_be_is_refused(self, admin: httpx.AsyncClient) -> None:
        keys = "/v1/admin/keys"
        await refused(admin.post(keys, json={"tenant": "none"}), 404, "tenant_not_found")
        await refused(admin.post(keys, json={"tenant": "ops", "scopes": ["root"]}), 400, "invalid_value", "scopes")
        await refused(admin.post(keys, json={"tenant": "ops", "scopes": []}), 400, "invalid_value", "scopes")
        for life in (0, -1, 1e12):
            body = {"tenant": "ops", "expires_in_s": life}
            await refused(admin.post(keys, json=body), 400, "invalid_value", "expires_in_s")
        for call in (admin.get(f"{keys}/none"), admin.post(f"{keys}/none/rotate"), admin.post(f"{keys}/none/revoke")):
            await refused(call, 404, "key_not_found")
        made = await ok(admin.post(keys, json={"tenant": "ops"}))
        call = admin.post(f"{keys}/{made['id']}/rotate", json={"overlap_s": 1e9})
        await refused(call, 400, "invalid_value", "overlap_s")
