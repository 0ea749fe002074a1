"""Tenants over HTTP: made, changed, suspended and removed."""

from dataclasses import fields

import httpx
import pytest

from axon.domain.tenants.tenant import Limits
from tests.gateway.admin.office import Office, ok, refused


class TestTenants:
    async def test_a_tenant_is_made_shown_changed_and_listed(self, admin: httpx.AsyncClient) -> None:
        made = await ok(admin.post("/v1/admin/tenants", json={"id": "acme", "name": "Acme", "limits": {"weight": 2}}))
        assert (made["id"], made["place"], made["status"], made["limits"]) == ("acme", 1, "active", {"weight": 2.0})
        assert (made["terms"]["weight"], made["terms"]["requests_per_minute"]) == (2.0, 600.0)
        assert await ok(admin.get("/v1/admin/tenants/acme")) == made
        change = {"limits": {"weight": None, "models": ["small"], "highest_tier": "flex", "tokens_per_day": 5}}
        changed = await ok(admin.patch("/v1/admin/tenants/acme", json=change))
        assert changed["limits"] == {"models": ["small"], "highest_tier": "flex", "tokens_per_day": 5}
        assert (changed["name"], changed["terms"]["weight"]) == ("Acme", 1.0)
        listed = await ok(admin.get("/v1/admin/tenants"))
        assert {each["id"] for each in listed["data"]} == {"acme", "ops"}

    async def test_what_is_not_named_in_a_change_stays(self, admin: httpx.AsyncClient) -> None:
        await ok(admin.post("/v1/admin/tenants", json={"id": "acme", "name": "Acme", "limits": {"weight": 2}}))
        changed = await ok(admin.patch("/v1/admin/tenants/acme", json={"limits": {"kv_share": 0.5}}))
        assert (changed["name"], changed["limits"]) == ("Acme", {"weight": 2.0, "kv_share": 0.5})
        assert (await ok(admin.patch("/v1/admin/tenants/acme", json={"name": ""})))["name"] == ""

    async def test_null_in_a_change_takes_the_name_away_and_leads_back_to_the_default_plan(
        self, admin: httpx.AsyncClient
    ) -> None:
        await ok(admin.post("/v1/admin/plans", json={"id": "pro"}))
        await ok(admin.post("/v1/admin/tenants", json={"id": "acme", "name": "Acme", "plan": "pro"}))
        changed = await ok(admin.patch("/v1/admin/tenants/acme", json={"name": None, "plan": None}))
        assert (changed["name"], changed["plan"]) == ("", "default")
        await refused(admin.patch("/v1/admin/tenants/acme", json={"plan": ""}), 404, "plan_not_found")

    async def test_whoever_misspells_a_limit_is_told_which_there_are(self, admin: httpx.AsyncClient) -> None:
        for call in (
            admin.patch("/v1/admin/tenants/ops", json={"limits": {"wieght": 2}}),
            admin.post("/v1/admin/plans", json={"id": "pro", "limits": {"wieght": 2}}),
        ):
            message = (await call).json()["error"]["message"]
            assert message.startswith("'wieght' is no limit.")
            assert all(limit.name in message for limit in fields(Limits))

    @pytest.mark.parametrize(
        ("limits", "param"),
        [
            ({"weight": 0}, "limits.weight"),
            ({"weight": -1}, "limits.weight"),
            ({"weight": 1e9}, "limits.weight"),
            ({"kv_share": 0}, "limits.kv_share"),
            ({"kv_share": 1.5}, "limits.kv_share"),
            ({"reserved": -0.1}, "limits.reserved"),
            ({"reserved": 1.1}, "limits.reserved"),
            ({"requests_per_minute": -1}, "limits.requests_per_minute"),
            ({"tokens_per_month": 1 << 60}, "limits.tokens_per_month"),
            ({"concurrent": 1.5}, "limits.concurrent"),
            ({"concurrent": "many"}, "limits.concurrent"),
            ({"highest_tier": "urgent"}, "limits.highest_tier"),
            ({"models": ["a\nb"]}, "limits.models"),
            ({"models": [""]}, "limits.models"),
            ({"models": [str(number) for number in range(101)]}, "limits.models"),
            ({"pool": "a pool"}, "limits.pool"),
            ({"requests_per_minutes": 1}, "limits.requests_per_minutes"),
        ],
        ids=str,
    )
    async def test_a_limit_that_makes_no_sense_is_refused_by_name(
        self, admin: httpx.AsyncClient, limits: dict[str, object], param: str
    ) -> None:
        for call in (
            admin.post("/v1/admin/tenants", json={"id": "acme", "limits": limits}),
            admin.patch("/v1/admin/tenants/ops", json={"limits": limits}),
            admin.post("/v1/admin/plans", json={"id": "pro", "limits": limits}),
        ):
            reply = await call
            assert (reply.status_code, reply.json()["error"]["param"]) == (400, param), reply.text
        assert len((await ok(admin.get("/v1/admin/tenants")))["data"]) == 1
        assert (await ok(admin.get("/v1/admin/plans")))["data"] == []

    @pytest.mark.parametrize("tenant_id", ["", "a b", "a/b", "-a", "x" * 65, "größer", "a\n"])
    async def test_an_id_that_no_path_could_name_is_refused(self, admin: httpx.AsyncClient, tenant_id: str) -> None:
        await refused(admin.post("/v1/admin/tenants", json={"id": tenant_id}), 400, "invalid_value", "id")

    async def test_what_is_there_already_or_nowhere_is_told_so(self, admin: httpx.AsyncClient) -> None:
        await refused(admin.post("/v1/admin/tenants", json={"id": "ops"}), 409, "tenant_exists")
        await refused(admin.post("/v1/admin/tenants", json={"id": "new", "plan": "gold"}), 404, "plan_not_found")
        for call in (
            admin.get("/v1/admin/tenants/none"),
            admin.patch("/v1/admin/tenants/none", json={"name": "x"}),
            admin.post("/v1/admin/tenants/none/suspend"),
            admin.post("/v1/admin/tenants/none/resume"),
            admin.delete("/v1/admin/tenants/none"),
        ):
            await refused(call, 404, "tenant_not_found")

    async def test_a_list_is_paged_as_all_lists_are(self, admin: httpx.AsyncClient, office: Office) -> None:
        for number in range(5):
            office.clock.advance(1.0)
            await office.tenancy.create(f"t{number}", actor="test")
        first = await ok(admin.get("/v1/admin/tenants", params={"limit": 2}))
        assert [each["id"] for each in first["data"]] == ["t4", "t3"]
        assert (first["has_more"], first["last_id"]) == (True, "t3")
        rest = await ok(admin.get("/v1/admin/tenants", params={"after": "t3", "order": "desc"}))
        assert [each["id"] for each in rest["data"]] == ["t2", "t1", "t0", "ops"]
        assert not rest["has_more"]
        await refused(admin.get("/v1/admin/tenants", params={"limit": 101}), 400, "invalid_value", "limit")

    async def test_a_suspended_tenants_keys_open_nothing_until_it_is_resumed(
        self, admin: httpx.AsyncClient, office: Office
    ) -> None:
        await office.tenancy.create("acme", actor="test")
        async with office.client(await office.key("acme")) as acme:
            assert (await acme.get("/v1/models")).status_code == 200
            suspended = await ok(admin.post("/v1/admin/tenants/acme/suspend"))
            assert (suspended["status"], suspended["suspended_at"]) == ("suspended", int(office.clock.now()))
            office.clock.advance(1.001)
            await refused(acme.get("/v1/models"), 403, "tenant_suspended")
            assert (await ok(admin.post("/v1/admin/tenants/acme/resume")))["status"] == "active"
            office.clock.advance(1.001)
            assert (await acme.get("/v1/models")).status_code == 200

    async def test_an_admin_does_not_lock_itself_out(self, admin: httpx.AsyncClient) -> None:
        await refused(admin.post("/v1/admin/tenants/ops/suspend"), 409, "own_tenant")

    async def test_a_tenant_goes_when_its_keys_have_ended(self, admin: httpx.AsyncClient, office: Office) -> None:
        await office.tenancy.create("acme", actor="test")
        key, _ = await office.keyring.create("acme", actor="test")
        await refused(admin.delete("/v1/admin/tenants/acme"), 409, "tenant_has_keys")
        await ok(admin.post(f"/v1/admin/keys/{key.id}/revoke"))
        assert (await ok(admin.delete("/v1/admin/tenants/acme")))["deleted"]
        await refused(admin.get("/v1/admin/tenants/acme"), 404, "tenant_not_found")
