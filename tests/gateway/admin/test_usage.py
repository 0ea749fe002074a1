"""Usage over HTTP, of turns and of replicas' time."""

import httpx

from axon.domain.billing.cost import Rates
from axon.domain.billing.replica_use import ReplicaUse, UseKind
from axon.domain.tenants.key import Scope
from tests.contracts.builders import make_ended, make_job
from tests.gateway.admin.office import Office, ok, refused


class TestUsage:
    async def test_usage_comes_by_day_by_tenant_and_as_ones_own(self, admin: httpx.AsyncClient, office: Office) -> None:
        now = office.clock.now()  # 2023-11-14
        rates = Rates(output=250_000_000_000, currency="USD")
        for number, tenant in enumerate(("ops", "acme", "acme")):
            job = make_job(f"turn_{number}", tenant=tenant, price=f"p{number}", rates=rates)
            await office.store.turns.apply([make_ended(job, at=now - 86400.0 * number)])
        reader = await office.key("acme", Scope.READ)
        by_day = await ok(admin.get("/v1/admin/usage", params={"since": "2023-11-01"}))
        assert [(each["tenant"], each["day"]) for each in by_day["data"]] == [
            ("acme", "2023-11-12"),
            ("acme", "2023-11-13"),
            ("ops", "2023-11-14"),
        ]
        by_tenant = await ok(admin.get("/v1/admin/usage", params={"by": "tenant", "tenant": "acme"}))
        assert by_tenant["data"] == [
            {
                "object": "usage",
                "tenant": "acme",
                "day": None,
                "model": None,
                "turns": 2,
                "prompt_tokens": 6,
                "cached_tokens": 2,
                "output_tokens": 4,
                "total_tokens": 10,
                "costs": [{"amount": "0.001", "currency": "USD"}],
                "replicas": {"cold_starts": 0, "cold_start_s": 0.0, "dedicated_s": 0.0, "costs": []},
            }
        ]
        by_model = await ok(admin.get("/v1/admin/usage", params={"by": "model", "tenant": "acme"}))
        assert by_model["data"] == [{**by_tenant["data"][0], "model": "small"}]
        async with office.client(reader) as acme:
            own = await ok(acme.get("/v1/usage"))
            assert [each["day"] for each in own["data"]] == ["2023-11-13", "2023-11-12"]
            assert {each["tenant"] for each in own["data"]} == {"acme"}
            assert [each["costs"][0]["amount"] for each in own["data"]] == ["0.0005", "0.0005"]

    async def test_replicas_that_a_tenant_pays_for_are_told_to_it(
        self, admin: httpx.AsyncClient, office: Office
    ) -> None:
        use = ReplicaUse(
            id="cold_start/small#-0/1",
            kind=UseKind.COLD_START,
            tenant="acme",
            deployment="small",
            version="small@v1",
            at=office.clock.now(),
            seconds=12.5,
            price_nanos=3_600 * 10**9,
            currency="USD",
        )
        await office.store.usage.add_replicas([use])
        replicas = {
            "cold_starts": 1,
            "cold_start_s": 12.5,
            "dedicated_s": 0.0,
            "costs": [{"amount": "12.5", "currency": "USD"}],
        }
        reader = await office.key("acme", Scope.READ)
        async with office.client(reader) as acme:
            assert (await ok(acme.get("/v1/usage")))["data"][0]["replicas"] == replicas
        found = await ok(admin.get("/v1/admin/usage", params={"by": "tenant", "tenant": "acme"}))
        assert [(each["turns"], each["replicas"]) for each in found["data"]] == [(0, replicas)]

    async def test_a_time_that_is_none_is_refused(self, admin: httpx.AsyncClient) -> None:
        usage = "/v1/admin/usage"
        await refused(admin.get(usage, params={"since": "yesterday"}), 400, "invalid_value", "since")
        await refused(admin.get(usage, params={"since": "2023-13-01"}), 400, "invalid_value", "since")
        await refused(admin.get(usage, params={"since": "2021-01-01"}), 400, "invalid_value", "until")
        backwards = {"since": "2023-11-02", "until": "2023-11-01"}
        await refused(admin.get(usage, params=backwards), 400, "invalid_value", "until")
        await refused(admin.get(usage, params={"by": "hour"}), 400, "invalid_value", "by")
