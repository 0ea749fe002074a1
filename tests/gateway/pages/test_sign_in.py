"""Signing in: with a key or a one-time code, by nobody who guesses, and with nothing taken over from before."""

import pytest
from structlog.testing import capture_logs

from axon.domain.tenants.key import Scope, new_key_text
from axon.tenants.one_time_codes import LIFETIME_S
from tests.gateway.admin.office import Office
from tests.gateway.pages.browser import Browser, code_of


async def test_a_key_is_exchanged_for_a_cookie(office: Office) -> None:
    key, browser = await office.key("ops", Scope.READ, Scope.ADMIN), Browser(office)
    assert code_of(await browser.session()) == (401, "invalid_api_key")
    reply = await browser.sign_in(key=f"  {key}\n")
    assert reply.json() | {"csrf": "?"} == {
        "tenant": "ops",
        "key": key[4:12],
        "scopes": ["admin", "read"],
        "csrf": "?",
        "version": "0",
        "prefix": "",
        "cli": {"server": [], "store": [], "variables": [], "by_address": False},
    }
    assert (await browser.session()).json() == reply.json()
    assert (await browser.ask("GET", "/v1/admin/tenants")).status_code == 200


async def test_a_code_is_exchanged_once(office: Office) -> None:
    key = await office.key("ops")
    code = await office.codes.issue(key[4:12])
    first, second = Browser(office), Browser(office, url="http://localhost:8000")
    assert (await first.sign_in(code=code)).json()["key"] == key[4:12]
    assert code_of(await second.sign_in(code=code)) == (401, "invalid_code")
    assert (await first.session()).status_code == 200
    assert second.cookie == ""


async def test_a_code_is_over_after_a_minute(office: Office) -> None:
    code = await office.codes.issue((await office.key("ops"))[4:12])
    office.clock.advance(LIFETIME_S)
    assert code_of(await Browser(office).sign_in(code=code)) == (401, "invalid_code")


@pytest.mark.parametrize(
    ("client", "url"), [("192.0.2.1", "http://127.0.0.1:8000"), ("127.0.0.1", "http://rebound.example:8000")]
)
async def test_a_code_from_elsewhere_is_refused_and_still_good_here(office: Office, client: str, url: str) -> None:
    code = await office.codes.issue((await office.key("ops"))[4:12])
    assert code_of(await Browser(office, client=client, url=url).sign_in(code=code)) == (401, "invalid_code")
    proxied = await Browser(office).ask(
        "POST", "/ui/sign-in", json={"code": code}, headers={"x-forwarded-for": "192.0.2.1"}
    )
    assert code_of(proxied) == (401, "invalid_code")
    assert (await Browser(office).sign_in(code=code)).status_code == 200


async def test_a_code_of_a_revoked_key_opens_nothing(office: Office) -> None:
    key = await office.key("ops")
    code = await office.codes.issue(key[4:12])
    await office.keyring.revoke(key[4:12], actor="test")
    assert code_of(await Browser(office).sign_in(code=code)) == (401, "invalid_api_key")


async def test_guesses_are_limited_and_whoever_has_a_key_elsewhere_is_not(office: Office) -> None:
    key, guesser = await office.key("ops"), Browser(office, client="192.0.2.1")
    refusals = [code_of(await guesser.sign_in(key=new_key_text()[1])) for _ in range(3)]
    refusals += [code_of(await guesser.sign_in(code="x" * 32)) for _ in range(2)]
    assert [status for status, _ in refusals] == [401] * 5
    late = await guesser.sign_in(code=await office.codes.issue(key[4:12]))
    assert code_of(late) == (429, "too_many_failures")
    assert code_of(await guesser.sign_in(key=new_key_text()[1])) == (429, "too_many_failures")
    assert int(late.headers["retry-after"]) > 0
    assert (await Browser(office).sign_in(key=key)).status_code == 200


@pytest.mark.parametrize("planted", ["a" * 43, "x", ""])
async def test_a_cookie_from_before_is_never_taken_over(office: Office, planted: str) -> None:
    key, browser = await office.key("ops"), Browser(office)
    browser.http.cookies.set("axon_session", planted, domain="127.0.0.1", path="/")
    await browser.sign_in(key=key)
    assert browser.cookie not in (planted, "")
    stranger = Browser(office)
    stranger.http.cookies.set("axon_session", planted or "b" * 43)
    assert code_of(await stranger.session()) == (401, "session_ended")


async def test_signing_in_again_ends_the_session_from_before(office: Office) -> None:
    key, browser, thief = await office.key("ops"), Browser(office), Browser(office)
    await browser.sign_in(key=key)
    thief.http.cookies.set("axon_session", browser.cookie)
    assert (await thief.session()).status_code == 200
    await browser.sign_in(key=key)
    assert code_of(await thief.session()) == (401, "session_ended")
    assert (await browser.session()).status_code == 200


async def test_signing_out_ends_the_session_and_deletes_the_cookie(office: Office) -> None:
    browser, thief = Browser(office), Browser(office)
    await browser.sign_in(key=await office.key("ops"))
    thief.http.cookies.set("axon_session", browser.cookie)
    reply = await browser.ask("POST", "/ui/sign-out")
    assert "Max-Age=0" in reply.headers["set-cookie"]
    assert browser.cookie == ""
    assert code_of(await thief.session()) == (401, "session_ended")


async def test_whoever_is_suspended_can_still_sign_out(office: Office) -> None:
    browser = Browser(office)
    await office.tenancy.create("acme", actor="test")
    await browser.sign_in(key=await office.key("acme"))
    async with office.client(await office.key("ops", Scope.ADMIN)) as admin:
        assert (await admin.post("/v1/admin/tenants/acme/suspend")).status_code == 200
    office.clock.advance(2.0)  # longer than answers about tenants are kept
    assert code_of(await browser.session())[0] == 403
    assert (await browser.ask("POST", "/ui/sign-out")).status_code == 200
    assert browser.cookie == ""


async def test_neither_key_code_nor_cookie_is_logged(office: Office) -> None:
    key, wrong = await office.key("ops"), new_key_text()[1]
    code, browser = await office.codes.issue(key[4:12]), Browser(office)
    with capture_logs() as lines:
        await browser.sign_in(key=wrong)
        await browser.sign_in(code="y" * 32)
        await browser.sign_in(code=code)
        await browser.sign_in(key=key)
        await browser.session()
    said = str(lines)
    assert not [
        secret for secret in (key[13:], wrong[13:], code, "y" * 32, browser.cookie, browser.csrf) if secret in said
    ]
    events = [(line["event"], line["way"]) for line in lines if line["event"].startswith("sign_in.")]
    assert events == [
        ("sign_in.refused", "key"),
        ("sign_in.refused", "code"),
        ("sign_in.accepted", "code"),
        ("sign_in.accepted", "key"),
    ]
