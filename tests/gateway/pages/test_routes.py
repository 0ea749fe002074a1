"""Pages over HTTP: what a browser gets, what other sites cannot do with it, and where a proxy shows it."""

import json
from pathlib import Path
from typing import Any

import pytest

from axon.domain.tenants.key import Scope
from axon.gateway.config import GatewayConfig
from axon.gateway.pages.policy import page_headers
from tests.gateway.admin.office import Office, opened_office
from tests.gateway.pages.browser import Browser, code_of

HTML = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.mark.parametrize("path", ["/", "/console", "/sign-in"])
async def test_a_page_needs_no_key_and_has_the_policy(office: Office, path: str) -> None:
    for method in ("GET", "HEAD"):
        reply = await Browser(office).ask(method, path, headers=HTML)
        assert (reply.status_code, reply.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert page_headers().items() <= dict(reply.headers).items()
        assert "set-cookie" not in reply.headers
        again = await Browser(office).ask(method, path, headers={**HTML, "if-none-match": reply.headers["etag"]})
        assert again.status_code == 304
        assert "frame-ancestors 'none'" in again.headers["content-security-policy"]


async def test_programs_still_get_the_pointer_as_json(office: Office) -> None:
    for accept in ("*/*", "application/json", ""):
        reply = await Browser(office).ask("GET", "/", headers={"accept": accept})
        assert reply.json()["api"] == "/v1"
        assert "accept" in reply.headers["vary"]


async def test_files_need_no_key_and_nothing_else_below_them_is_open(office: Office) -> None:
    reply = await Browser(office).ask("GET", "/ui/common/api.js")
    assert (reply.status_code, reply.headers["content-type"]) == (200, "text/javascript; charset=utf-8")
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert code_of(await Browser(office).ask("GET", "/ui/common/nothing.js")) == (404, "unknown_url")
    for method, path in (
        *(
            ("GET", "/ui"),
            ("GET", "/ui/"),
            ("GET", "/ui/common"),
            ("GET", "/ui/secret/api.js"),
            ("POST", "/ui/nothing"),
        ),
        *(("POST", "/ui/common/api.js"), ("PUT", "/ui/sign-in"), ("DELETE", "/ui/session"), ("GET", "/ui/sign-out")),
    ):
        assert (await Browser(office).ask(method, path)).status_code == 401, (method, path)


async def test_the_cookie_has_its_flags_and_its_path(tmp_path: Path) -> None:
    cases: list[tuple[GatewayConfig, dict[str, str], str]] = [
        (GatewayConfig(), {}, "Path=/; Max-Age=604800; HttpOnly; SameSite=Strict"),
        (GatewayConfig(), {"x-forwarded-prefix": "/forged", "x-forwarded-proto": "https"}, "Path=/; "),
        (GatewayConfig(proxies=1), {"x-forwarded-prefix": "/axon", "x-forwarded-proto": "https"}, "Path=/axon; "),
        (GatewayConfig(path_prefix="/set"), {"origin": "https://127.0.0.1:8000"}, "Path=/set; "),
    ]
    for number, (config, headers, expected) in enumerate(cases):
        (tmp_path / str(number)).mkdir()
        async with opened_office(tmp_path / str(number), config=config) as office:
            proof = {"key": await office.key("ops")}
            reply = await Browser(office).ask("POST", "/ui/sign-in", json=proof, headers=headers)
            cookie = reply.headers["set-cookie"]
            assert expected in cookie
            assert "HttpOnly; SameSite=Strict" in cookie
            assert cookie.endswith("; Secure") == (number in (2, 3)), cookie
            assert "Domain" not in cookie
            assert reply.headers["cache-control"] == "no-store"
            assert reply.json()["prefix"] == ("/axon", "/set")[number - 2] if number >= 2 else True


async def test_a_server_under_a_path_answers_with_and_without_it(tmp_path: Path) -> None:
    async with opened_office(tmp_path, config=GatewayConfig(path_prefix="/a/axon")) as office:
        browser = Browser(office)
        for path in ("/a/axon/", "/"):
            assert (await browser.ask("GET", path, headers=HTML)).headers["content-type"] == "text/html; charset=utf-8"
        moved = await browser.ask("GET", "/a/axon")
        assert (moved.status_code, moved.headers["location"]) == (308, "/a/axon/")
        assert (await browser.ask("GET", "/a/axon/ui/common/api.js")).status_code == 200
        assert (await browser.ask("GET", "/a/axon/v1/models")).status_code == 401


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_another_sites_page_cannot_use_the_cookie(office: Office, site: str) -> None:
    browser = Browser(office)
    await browser.sign_in(key=await office.key("ops"))
    for method, path in (("GET", "/v1/usage"), ("GET", "/ui/session"), ("POST", "/ui/sign-out"), ("GET", "/docs")):
        assert code_of(await browser.ask(method, path, site=site)) == (403, "cross_site"), path
    assert (await browser.session()).status_code == 200


@pytest.mark.parametrize("origin", ["http://[", "http://a]b", "null", ""])
async def test_an_origin_that_makes_no_sense_is_another_sites(office: Office, origin: str) -> None:
    reply = await Browser(office).ask("POST", "/ui/sign-in", site=None, json={}, headers={"origin": origin})
    assert code_of(reply) == (403, "cross_site")


async def test_no_answer_is_guessed_to_be_a_script(office: Office) -> None:
    browser = Browser(office)
    await browser.sign_in(key=await office.key("ops"))
    for path in ("/v1/models", "/v1/nothing", "/ui/session", "/livez"):
        reply = await browser.ask("GET", path)
        assert reply.headers.get_list("x-content-type-options") == ["nosniff"], path
    assert (await browser.ask("GET", "/v1/models")).headers.get_list("cache-control") == ["no-store"]


async def test_another_sites_page_cannot_sign_somebody_in(office: Office) -> None:
    key, browser = await office.key("ops"), Browser(office)
    body: dict[str, Any] = {"json": {"key": key}}
    assert code_of(await browser.ask("POST", "/ui/sign-in", site="cross-site", **body)) == (403, "cross_site")
    as_form: dict[str, Any] = {"content": json.dumps({"key": key}), "headers": {"content-type": "text/plain"}}
    assert code_of(await browser.ask("POST", "/ui/sign-in", **as_form)) == (400, "invalid_json")
    assert browser.cookie == ""


@pytest.mark.parametrize("token", [None, "", "0" * 64])
async def test_every_change_with_the_cookie_needs_the_token(office: Office, token: str | None) -> None:
    browser, other = Browser(office), Browser(office)
    key = await office.key("ops", *Scope)
    await browser.sign_in(key=key)
    await other.sign_in(key=key)
    for wrong in (token, other.csrf):
        headers = {} if wrong is None else {"x-axon-csrf": wrong}
        browser_without = Browser(office)
        browser_without.http.cookies.set("axon_session", browser.cookie)
        for method, path in (
            *(("POST", "/v1/responses"), ("DELETE", "/v1/conversations/conv_1"), ("POST", "/v1/admin/tenants")),
            *(("PATCH", "/v1/admin/tenants/ops"), ("POST", "/ui/sign-out"), ("POST", "/api/chat")),
        ):
            reply = await browser_without.ask(method, path, headers=headers, json={})
            assert reply.status_code == 403, (method, path)
            assert path.startswith("/api/") or reply.json()["error"]["code"] == "csrf"
    made = await browser.ask("POST", "/v1/admin/tenants", json={"id": "acme"})
    assert made.status_code == 200


async def test_a_key_in_the_header_goes_before_the_cookie_and_needs_no_token(office: Office) -> None:
    mine, other = await office.key("ops"), await office.key("acme")
    browser = Browser(office)
    await browser.sign_in(key=mine)
    headers = {"authorization": f"Bearer {other}"}
    assert (await browser.ask("GET", "/ui/session", headers=headers)).json()["tenant"] == "acme"
    wrong = await browser.ask("GET", "/ui/session", headers={"authorization": "Bearer nothing"})
    assert code_of(wrong) == (401, "invalid_api_key")
    browser.csrf = ""
    assert (await browser.ask("POST", "/v1/auth", headers=headers)).status_code == 200


async def test_two_cookies_are_nobody(office: Office) -> None:
    browser = Browser(office)
    await browser.sign_in(key=await office.key("ops"))
    both = {"cookie": f"axon_session={'a' * 43}; axon_session={browser.cookie}"}
    assert code_of(await Browser(office).ask("GET", "/ui/session", headers=both)) == (401, "session_ended")


@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        (b"", 400, "invalid_json"),
        (b"{}", 400, "invalid_value"),
        (b"[]", 400, "invalid_json"),
        (b'{"key": 1}', 400, "invalid_json"),
        (b'{"key": "a", "code": "b"}', 400, "invalid_value"),
        (b'{"key": "a", "next": "//evil.example"}', 400, "invalid_json"),
        (b'{"key": "\xff"}', 400, "invalid_json"),
        (b'{"key": "axk_\\u0000\\ud83e\\udd80"}', 401, "invalid_api_key"),
        (b'{"key": "' + b"a" * 5000 + b'"}', 413, "request_too_large"),
        (b"[" * 4000, 400, "invalid_json"),
    ],
)
async def test_a_body_that_makes_no_sense_is_told_so(office: Office, content: bytes, status: int, code: str) -> None:
    headers = {"content-type": "application/json"}
    reply = await Browser(office).ask("POST", "/ui/sign-in", content=content, headers=headers)
    assert code_of(reply) == (status, code)
    assert "set-cookie" not in reply.headers


async def test_what_a_browser_gets_with_the_cookie_is_not_kept_in_its_cache(office: Office) -> None:
    browser = Browser(office)
    await browser.sign_in(key=await office.key("ops"))
    reply = await browser.ask("GET", "/v1/usage")
    assert (reply.status_code, reply.headers["cache-control"]) == (200, "no-store")


async def test_the_documentation_takes_the_cookie_and_has_the_policy(office: Office) -> None:
    browser = Browser(office)
    await browser.sign_in(key=await office.key("ops"))
    reply = await browser.ask("GET", "/docs")
    assert page_headers().items() <= dict(reply.headers).items()
    assert "ui/common/docs.js" in reply.text
    assert (await browser.ask("GET", "/openapi.json")).json()["info"]["title"] == "Axon"


async def test_only_administrators_are_told_how_commands_find_the_server(office: Office) -> None:
    for scopes, is_told in (((Scope.READ, Scope.INFERENCE), False), ((Scope.ADMIN,), True)):
        browser = Browser(office)
        reply = await browser.sign_in(key=await office.key("ops", *scopes))
        assert ("cli" in reply.json()) == is_told
        assert ("cli" in (await browser.session()).json()) == is_told
