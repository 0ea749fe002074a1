"""Plans over HTTP, and the limits that they set for tenants."""

import asyncio

import httpx

from tests.gateway.admin.office import Office, ok, refused


class TestPlans:
    async def test_a_plans_limits_hold_for_its_tenants_within_a_second(
        self, admin: httpx.AsyncClient, office: Office
    ) -> None:
        await ok(admin.post("/v1/admin/plans", json={"id": "pro", "limits": {"weight": 2, "concurrent": 3}}))
        await ok(admin.post("/v1/admin/tenants", json={"id": "acme", "plan": "pro", "limits": {"weight": 5}}))
        changed = await ok(admin.patch("/v1/admin/plans/pro", json={"limits": {"concurrent": 4, "weight": None}}))
        assert changed == {"id": "pro", "object": "plan", "limits": {"concurrent": 4}}
        terms = (await ok(admin.get("/v1/admin/tenants/acme")))["terms"]
        assert (terms["weight"], terms["concurrent"], terms["requests_per_minute"]) == (5.0, 4, 600.0)

    async def test_changes_of_a_plan_at_the_same_time_all_stand(self, admin: httpx.AsyncClient) -> None:
        await ok(admin.post("/v1/admin/plans", json={"id": "pro"}))
        limits = {"weight": 2.0, "concurrent": 3, "queued": 4, "tokens_per_day": 5}
        changes = [{"limits": {name: value}} for name, value in limits.items()]
        await asyncio.gather(*(ok(admin.patch("/v1/admin/plans/pro", json=change)) for change in changes))
        assert (await ok(admin.get("/v1/admin/plans/pro")))["limits"] == limits

    async def test_plans_are_listed_made_once_and_removed_when_nobody_is_on_them(
        self, admin: httpx.AsyncClient
    ) -> None:
        for name in ("pro", "free"):
            await ok(admin.post("/v1/admin/plans", json={"id": name}))
        await refused(admin.post("/v1/admin/plans", json={"id": "pro"}), 409, "plan_exists")
        assert [each["id"] for each in (await ok(admin.get("/v1/admin/plans")))["data"]] == ["free", "pro"]
        await ok(admin.patch("/v1/admin/tenants/ops", json={"plan": "pro"}))
        await refused(admin.delete("/v1/admin/plans/pro"), 409, "plan_in_use")
        assert (await ok(admin.delete("/v1/admin/plans/free")))["deleted"]
        for call in (
            admin.get("/v1/admin/plans/free"),
            admin.patch("/v1/admin/plans/free", json={"limits": {}}),
            admin.delete("/v1/admin/plans/free"),
        ):
            await refused(call, 404, "plan_not_found")

    async def test_the_default_plan_stays_while_tenants_are_on_it(self, admin: httpx.AsyncClient) -> None:
        await refused(admin.delete("/v1/admin/plans/default"), 404, "plan_not_found")
        await ok(admin.post("/v1/admin/plans", json={"id": "default", "limits": {"concurrent": 3}}))
        await refused(admin.delete("/v1/admin/plans/default"), 409, "plan_in_use")
        assert (await ok(admin.get("/v1/admin/tenants/ops")))["terms"]["concurrent"] == 3
        await ok(admin.post("/v1/admin/plans", json={"id": "pro"}))
        await ok(admin.patch("/v1/admin/tenants/ops", json={"plan": "pro"}))
        assert (await ok(admin.delete("/v1/admin/plans/default")))["deleted"]
