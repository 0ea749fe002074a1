"""A gateway that has only administration, over a real store, and how its answers are checked."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import httpx

from axon.adapters.live.memory.accounts import MemoryAccounts
from axon.adapters.live.memory.cache import MemoryCache
from axon.adapters.live.memory.live import open_memory_live
from axon.adapters.store.sqlite import SqliteStore
from axon.admission.line import read_lines
from axon.bootstrap.gateway.oidc import make_oidc
from axon.domain.registry.adapter import Adapter, AdapterFiles
from axon.domain.tenants.key import HOLDER, Scope
from axon.domain.tenants.tenant import Tenant, Terms
from axon.errors import InvalidInput
from axon.gateway.admin.bodies import Admin
from axon.gateway.admin.overviews import Overviews
from axon.gateway.app import build_app
from axon.gateway.config import GatewayConfig
from axon.gateway.http.auth import Authenticator
from axon.gateway.http.body import Bodies
from axon.gateway.http.guess_limit import GuessLimit
from axon.gateway.pages.assets import Assets
from axon.gateway.pages.parts import Pages
from axon.gateway.pages.rendering.renderer import Renderer
from axon.gateway.pages.sign_in import SignIn
from axon.gateway.pages.web_sessions import WebSessions
from axon.ports.alerts import Alerts
from axon.profiling.asking import Profiles
from axon.registry.catalog import Catalog
from axon.registry.drain_orders import DrainOrders
from axon.registry.fleet_report import FleetReports
from axon.registry.holders import Holders
from axon.registry.observations import Observations
from axon.registry.writer import RegistryWriter
from axon.runtime.clock import FakeClock, SystemClock
from axon.runtime.lifecycle import Lifecycle
from axon.sessions.traced_turns import TracedTurns
from axon.settings import Settings
from axon.telemetry.metrics import Metrics
from axon.telemetry.recent import RecentLines
from axon.tenants.keyring import Keyring
from axon.tenants.one_time_codes import OneTimeCodes
from axon.tenants.revocations import Revocations
from axon.tenants.tenancy import Tenancy
from tests.domain.registry.builders import nobody_pinned
from tests.gateway.offers.builders import make_offers

if TYPE_CHECKING:
    from axon.gateway.admin.settings import SettingInEffect

PEPPER = b"pepper"
OWN = "gateway-1"
"""Name of the process that the routes run in."""


DEFAULTS = Terms(requests_per_minute=600.0, concurrent=64)


async def _uncounted(*who: object) -> None:
    """No tenant here has a limit."""


class Office:
    """The application with a store of its own, and a client for whichever key one has."""

    def __init__(self, store: SqliteStore, alerts: Alerts | None = None, config: GatewayConfig | None = None) -> None:
        self.lines = RecentLines()
        self.settings: list[SettingInEffect] = []
        self.store, self.clock = store, FakeClock()
        revocations = Revocations(MemoryCache(self.clock), store.keys, self.clock)
        self.tenancy = Tenancy(store, self.clock, defaults=DEFAULTS)
        self.keyring = Keyring(store.keys, revocations.revoke, lambda: PEPPER, self.clock)
        self.catalog = Catalog(
            store.registry, RegistryWriter(store.registry, self.clock), self.clock, pinned=nobody_pinned
        )
        self.cache = MemoryCache(self.clock)
        self.fleet = FleetReports(self.cache)
        self.accounts = MemoryAccounts(self.clock)
        self.live = open_memory_live(SystemClock(), retention_s=60.0)
        self.config = config or GatewayConfig()
        self.bodies = Bodies(self.config)
        self.guesses = GuessLimit(self.config.failures_per_minute, self.clock)
        self.authenticator = Authenticator(
            store.keys, PEPPER, self.clock, defaults=DEFAULTS, revoked=revocations.revoked, guesses=self.guesses
        )
        self.web_sessions = WebSessions(store.web_sessions, self.authenticator, self.clock, self.config)
        self.codes, self.renderer = OneTimeCodes(self.cache, self.clock), Renderer()
        self.gateway = SimpleNamespace(
            config=self.config,
            lifecycle=Lifecycle(),
            metrics=Metrics(),
            clock=self.clock,
            offers=make_offers(self.clock),
            bodies=self.bodies,
            opening=SimpleNamespace(count=_uncounted),
            follower=SimpleNamespace(num_streams=0, readers=()),
            traces=None,
        )
        self.traced = TracedTurns(cast("Any", None), cast("Any", None), store.turns, self.clock)
        self.app = build_app(
            cast("Any", self.gateway),
            Admin(
                tenancy=self.tenancy,
                keyring=self.keyring,
                catalog=self.catalog,
                fleet=self.fleet,
                overviews=Overviews(
                    "gateway-1",
                    partial(read_lines, self.accounts),
                    Holders(self.cache, num_slots=4),
                    self.fleet,
                    self.clock,
                ),
                profiles=Profiles(self.live, SystemClock(), OWN),
                lines=self.lines,
                process="gateway-1",
                alerts=alerts,
                traced=self.traced,
                observations=Observations(self.cache),
                drains=DrainOrders(self.live.wakeups, answer_s=0.2),
                audit=store.audit,
                settings=lambda: self.settings,
                fetch_adapter=self._fetch_adapter,
                clock=self.clock,
            ),
            self.authenticator,
            version="0",
            pages=Pages(
                sign_in=SignIn(self.authenticator, self.web_sessions, self.codes, self.guesses),
                sessions=self.web_sessions,
                assets=Assets(),
                oidc=make_oidc(Settings(pepper="p" * 32, gateway=self.config), self.cache, self.clock),
                renderer=self.renderer,
                config=self.config,
                version="0",
            ),
        )

    async def _fetch_adapter(self, model: str, label: str, source: str, tenant: str) -> Adapter:
        if not source.startswith("/adapters/"):
            raise InvalidInput(f"{source} has no adapter.", param="source")
        files = AdapterFiles(digest=sha256(source.encode()).hexdigest(), source=source)
        return Adapter(model=model, label=label, tenant=tenant, files=(files,), created=0.0)

    def client(self, key: str) -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {key}"}
        return httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url="http://axon", headers=headers)

    async def key(self, tenant: str, *scopes: Scope) -> str:
        return (await self.keyring.create(tenant, scopes=scopes or HOLDER, actor="test"))[1]


@asynccontextmanager
async def opened_office(
    folder: Path, alerts: Alerts | None = None, config: GatewayConfig | None = None
) -> AsyncIterator[Office]:
    store = SqliteStore(folder / "axon.db")
    await store.open()
    await store.tenants.add(Tenant(id="ops"))
    office = Office(store, alerts, config)
    try:
        yield office
    finally:
        office.bodies.close()
        await office.renderer.aclose()
        await store.aclose()


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
