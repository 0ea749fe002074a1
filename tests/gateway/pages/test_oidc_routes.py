"""Signing in by OpenID Connect over HTTP, with an issuer on a port of its own."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from structlog.testing import capture_logs

from axon.domain.tenants.key import Scope
from axon.gateway.config import GatewayConfig
from axon.runtime.clock import FakeClock
from tests.contracts.builders import make_key
from tests.gateway.admin.office import Office, opened_office
from tests.gateway.pages.browser import HERE, Browser, code_of
from tests.oidc.issuer_double import CLIENT_ID, IssuerDouble, running_issuer


@pytest.fixture
def double() -> Iterator[IssuerDouble]:
    with running_issuer(FakeClock().time) as double:
        yield double


@pytest.fixture
def config(double: IssuerDouble) -> GatewayConfig:
    return GatewayConfig(
        oidc_issuer=double.url,
        oidc_client_id=CLIENT_ID,
        oidc_redirect_url=f"{HERE}/ui/oidc/callback",
        oidc_claim="groups",
        oidc_keys="staff=k0000001",
    )


@pytest.fixture
async def team(tmp_path: Path, config: GatewayConfig) -> AsyncIterator[Office]:
    """An office whose staff signs in as a key of its own."""
    async with opened_office(tmp_path, config=config) as office:
        await office.store.keys.add(replace(make_key("k0000001", tenant="ops"), scopes=frozenset({Scope.ADMIN})))
        yield office


async def went_to_issuer(browser: Browser, page: str = "") -> str:
    reply = await browser.ask("GET", "/ui/oidc/start", params={"to": page})
    assert reply.status_code == 303
    return reply.headers["location"]


async def came_back(browser: Browser, double: IssuerDouble, address: str, **changed: str) -> httpx.Response:
    """The browser comes back from the issuer's page, which is another site's."""
    (state,) = parse_qs(urlsplit(address).query)["state"]
    asked = {"state": state, "code": double.authorize(address), **changed}
    return await browser.ask("GET", "/ui/oidc/callback", site="cross-site", params=asked)


async def test_a_person_signs_in_without_a_key(team: Office, double: IssuerDouble) -> None:
    browser = Browser(team)
    assert (await browser.ask("GET", "/ui/sign-in")).json() == {"issuer": "127.0.0.1"}
    address = await went_to_issuer(browser, "console")
    assert address.startswith(f"{double.url}/authorize?")
    with capture_logs() as lines:
        reply = await came_back(browser, double, address)
    assert (reply.status_code, reply.headers["location"]) == (303, "../../console")
    session, attempt = reply.headers.get_list("set-cookie")[::-1]
    assert "HttpOnly; SameSite=Strict" in session
    assert attempt.startswith("axon_oidc=; Path=/ui/oidc; Max-Age=0")
    found = (await browser.session()).json()
    assert (found["tenant"], found["scopes"]) == ("ops", ["admin"])
    (line,) = [line for line in lines if line["event"] == "sign_in.accepted"]
    assert (line["way"], line["subject"]) == ("oidc", "person-1")
    assert browser.cookie not in str(lines)


async def test_the_attempts_cookie_is_of_the_browser_and_of_these_routes_alone(team: Office) -> None:
    reply = await Browser(team).ask("GET", "/ui/oidc/start")
    (cookie,) = reply.headers.get_list("set-cookie")
    assert "Path=/ui/oidc; Max-Age=600; HttpOnly; SameSite=Lax" in cookie
    assert reply.headers["referrer-policy"] == "no-referrer"


async def test_behind_https_the_cookies_are_secure_whatever_the_proxy_says(
    tmp_path: Path, config: GatewayConfig
) -> None:
    secure = replace(config, oidc_redirect_url="https://axon.example.com/ui/oidc/callback")
    async with opened_office(tmp_path, config=secure) as office:
        assert (await Browser(office).ask("GET", "/ui/oidc/start")).headers["set-cookie"].endswith("; Secure")
        reply = await Browser(office).sign_in(key=await office.key("ops"))
        assert "Secure" not in reply.headers["set-cookie"], "this browser came by plain HTTP, and would drop it"


async def is_refused(browser: Browser, reply: httpx.Response, why: str) -> None:
    assert (reply.status_code, reply.headers["location"]) == (303, f"../../sign-in?why={why}")
    assert browser.cookie == ""
    assert (await browser.session()).status_code == 401


async def test_a_replayed_state_signs_nobody_in(team: Office, double: IssuerDouble) -> None:
    browser = Browser(team)
    address = await went_to_issuer(browser)
    attempt = browser.http.cookies.get("axon_oidc")
    assert attempt is not None
    await came_back(browser, double, address)
    thief = Browser(team)
    thief.http.cookies.set("axon_oidc", attempt)
    await is_refused(thief, await came_back(thief, double, address), "issuer")


async def test_an_attempt_of_another_browser_signs_nobody_in(team: Office, double: IssuerDouble) -> None:
    victim, attacker = Browser(team), Browser(team)
    address = await went_to_issuer(attacker)
    await is_refused(victim, await came_back(victim, double, address), "issuer")
    await went_to_issuer(victim)
    await is_refused(victim, await came_back(victim, double, address), "issuer")


@pytest.mark.parametrize(
    "changed", [{"aud": "another"}, {"nonce": "another"}, {"exp": 1_600_000_000}, {"iss": "https://evil.example"}]
)
async def test_a_wrong_token_signs_nobody_in(team: Office, double: IssuerDouble, changed: dict[str, object]) -> None:
    double.changed = changed
    browser = Browser(team)
    with capture_logs() as lines:
        await is_refused(browser, await came_back(browser, double, await went_to_issuer(browser)), "issuer")
    assert "oidc_token_refused" in [line.get("code") for line in lines]


async def test_a_person_without_a_grant_is_told_so(team: Office, double: IssuerDouble) -> None:
    double.claims = {"groups": ["visitors"]}
    browser = Browser(team)
    await is_refused(browser, await came_back(browser, double, await went_to_issuer(browser)), "oidc")


async def test_a_person_who_did_not_agree_comes_back_to_the_form(team: Office, double: IssuerDouble) -> None:
    browser = Browser(team)
    address = await went_to_issuer(browser)
    await is_refused(browser, await came_back(browser, double, address, error="access_denied"), "issuer")


async def test_a_revoked_key_lets_none_of_its_people_in(team: Office, double: IssuerDouble) -> None:
    inside, outside = Browser(team), Browser(team)
    await came_back(inside, double, await went_to_issuer(inside))
    (key,) = await team.keyring.all(tenant="ops")
    await team.keyring.revoke(key.id, actor="test")
    team.clock.advance(1.0)
    assert (await inside.session()).status_code == 401
    await is_refused(outside, await came_back(outside, double, await went_to_issuer(outside)), "issuer")


async def test_without_an_issuer_the_routes_are_not_there(tmp_path: Path) -> None:
    async with opened_office(tmp_path) as office:
        for path in ("/ui/oidc/start", "/ui/oidc/callback?state=a&code=b"):
            assert code_of(await Browser(office).ask("GET", path)) == (404, "no_issuer")
        assert (await Browser(office).ask("GET", "/ui/sign-in")).json() == {"issuer": ""}


async def test_wrong_attempts_count_against_the_address(tmp_path: Path, config: GatewayConfig) -> None:
    async with opened_office(tmp_path, config=replace(config, failures_per_minute=3)) as office:
        browser = Browser(office)
        for _ in range(3):
            reply = await browser.ask("GET", "/ui/oidc/callback", params={"state": "x", "code": "y"})
            assert reply.status_code == 303
        assert code_of(await browser.ask("GET", "/ui/oidc/callback", params={"state": "x"})) == (
            429,
            "too_many_failures",
        )
        assert code_of(await browser.ask("GET", "/ui/oidc/start")) == (429, "too_many_failures")
