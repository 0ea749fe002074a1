"""The admin API over the whole application: tenants, plans, keys and usage, and who may touch them."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
import structlog

from axon.adapters.live.memory_cache import MemoryCache
from axon.adapters.store.sqlite import SqliteStore
from axon.domain.cost import Rates
from axon.domain.key import HOLDER, Scope, parse_key
from axon.domain.replica_use import ReplicaUse, UseKind
from axon.domain.tenant import Limits, Tenant, Terms
from axon.gateway.admin.bodies import Admin
from axon.gateway.app import build_app
from axon.gateway.config import GatewayConfig
from axon.gateway.http.auth import Authenticator
from axon.gateway.http.body import Bodies
from axon.gateway.http.scopes import NEEDED
from axon.registry.catalog import Catalog
from axon.registry.fleet_report import FleetReports
from axon.registry.writer import RegistryWriter
from axon.runtime.clock import FakeClock
from axon.runtime.lifecycle import Lifecycle
from axon.telemetry.metrics import Metrics
from axon.tenants.keyring import Keyring
from axon.tenants.revocations import Revocations
from axon.tenants.tenancy import Tenancy
from tests.contracts.builders import make_ended, make_job
from tests.domain.registry.builders import nobody_pinned
from tests.gateway.offers.builders import make_offers

PEPPER = b"pepper"
DEFAULTS = Terms(requests_per_minute=600.0, concurrent=64)


async def _uncounted(*who: object) -> None:
    """No tenant here has a limit."""


class Office:
    """The application with a store of its own, and a client for whichever key one has."""

    def __init__(self, store: SqliteStore) -> None:
        self.store, self.clock = store, FakeClock()
        revocations = Revocations(MemoryCache(self.clock), store.keys, self.clock)
        self.tenancy = Tenancy(store, self.clock, defaults=DEFAULTS)
        self.keyring = Keyring(store.keys, revocations.revoke, lambda: PEPPER, self.clock)
        self.catalog = Catalog(
            store.registry, RegistryWriter(store.registry, self.clock), self.clock, pinned=nobody_pinned
        )
        self.fleet = FleetReports(MemoryCache(self.clock))
        self.bodies = Bodies(GatewayConfig())
        gateway = SimpleNamespace(
            config=GatewayConfig(),
            lifecycle=Lifecycle(),
            metrics=Metrics(),
            clock=self.clock,
            offers=make_offers(self.clock),
            bodies=self.bodies,
            opening=SimpleNamespace(count=_uncounted),
        )
        self.app = build_app(
            cast("Any", gateway),
            Admin(
                tenancy=self.tenancy,
                keyring=self.keyring,
                catalog=self.catalog,
                fleet=self.fleet,
                clock=self.clock,
            ),
            Authenticator(store.keys, PEPPER, self.clock, defaults=DEFAULTS, revoked=revocations.revoked),
            version="0",
        )

    def client(self, key: str) -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {key}"}
        return httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url="http://axon", headers=headers)

    async def key(self, tenant: str, *scopes: Scope) -> str:
        return (await self.keyring.create(tenant, scopes=scopes or HOLDER))[1]


@asynccontextmanager
async def opened_office(folder: Path) -> AsyncIterator[Office]:
    store = SqliteStore(folder / "axon.db")
    await store.open()
    await store.tenants.add(Tenant(id="ops"))
    office = Office(store)
    try:
        yield office
    finally:
        office.bodies.close()
        await store.aclose()


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    async with opened_office(tmp_path) as office:
        yield office


@pytest.fixture
async def admin(office: Office) -> AsyncIterator[httpx.AsyncClient]:
    async with office.client(await office.key("ops", Scope.ADMIN)) as client:
        yield client


async def ok(call: Any) -> dict[str, Any]:
    reply = await call
    assert reply.status_code == 200, reply.text
    body: dict[str, Any] = reply.json()
    return body


async def refused(call: Any, status: int, code: str, param: str | None = None) -> None:
    reply = await call
    assert (reply.status_code, reply.json()["error"]["code"]) == (status, code), reply.text
    assert set(reply.json()["error"]) == {"message", "type", "param", "code"}
    if param is not None:
        assert reply.json()["error"]["param"] == param


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
            await office.tenancy.create(f"t{number}")
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
        await office.tenancy.create("acme")
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
        await office.tenancy.create("acme")
        key, _ = await office.keyring.create("acme")
        await refused(admin.delete("/v1/admin/tenants/acme"), 409, "tenant_has_keys")
        await ok(admin.post(f"/v1/admin/keys/{key.id}/revoke"))
        assert (await ok(admin.delete("/v1/admin/tenants/acme")))["deleted"]
        await refused(admin.get("/v1/admin/tenants/acme"), 404, "tenant_not_found")


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


async def test_every_route_refuses_a_key_without_its_scope(office: Office) -> None:
    keys = {scope: await office.key("ops", scope) for scope in Scope}
    for route, needed in NEEDED.items():
        method, path = route.split(" ")
        for scope in set(Scope) - needed if needed else ():
            async with office.client(keys[scope]) as client:
                call = client.request(method, path.replace("{", "").replace("}", "").replace(":path", ""))
                if path.startswith("/v1/messages"):  # which answers in Anthropic's shape
                    reply = await call
                    assert (reply.status_code, reply.json()["error"]["type"]) == (403, "permission_error")
                else:
                    await refused(call, 403, "insufficient_permissions")


async def test_a_change_is_logged_with_who_made_it_and_no_secret(admin: httpx.AsyncClient) -> None:
    with structlog.testing.capture_logs() as lines:
        made = await ok(admin.post("/v1/admin/keys", json={"tenant": "ops"}))
        await ok(admin.post("/v1/admin/tenants", json={"id": "acme", "limits": {"weight": 2}}))
        await ok(admin.get("/v1/admin/tenants"))
    changes = [line for line in lines if line["event"].startswith("admin.")]
    assert [line["event"] for line in changes] == ["admin.key_created", "admin.tenant_created"]
    assert all(line["by_tenant"] == "ops" and len(line["by_key"]) == 8 for line in changes)
    assert changes[1]["limits"] == {"weight": 2.0}
    assert made["key"][13:] not in str(lines)
