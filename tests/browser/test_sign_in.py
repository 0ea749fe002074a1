"""Signing in as a person does: by the link on the screen, by the form, under a path, and by an issuer."""

import re
import time
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.chatting import address_of, asked_and_answered, ready
from tests.browser.conftest import NewPage, Serve
from tests.browser.serving import Served
from tests.oidc.issuer_double import CLIENT_ID, IssuerDouble, running_issuer
from tests.services.process import free_port

_KEPT = """() => JSON.stringify(
  [document.cookie, {...localStorage}, {...sessionStorage}, location.href, document.body.outerHTML])"""
"""All that a script of the page can find."""
_MANY_DRAFTS = """async () => {
  const { keepDraft } = await import("./ui/chat/drafts.js");
  for (let number = 0; number < 30; number += 1) keepDraft(`conv_${number}`, "x".repeat(number < 29 ? 100_000 : 10));
  for (let number = 0; number < 30; number += 1) keepDraft(`conv_${number}`, "short");
  const kept = Object.entries(sessionStorage).filter(([name]) => name.startsWith("axon.chat.draft."));
  return { drafts: kept.length, characters: kept.reduce((sum, [, text]) => sum + text.length, 0) };
}"""


def link_of(served: Served) -> str:
    """The link on the start screen."""
    found = re.search(r"http://\S+#code=\S+", served.server.screen)
    assert found is not None, served.server.screen
    return found[0]


def cookie_of(page: Page) -> Any:
    (cookie,) = [each for each in page.context.cookies() if each["name"] == "axon_session"]
    return cookie


def test_the_link_signs_in_once_and_leaves_nothing_in_the_browser(served: Served, new_page: NewPage) -> None:
    page, link = new_page(), link_of(served)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(link)
    ready(page)
    code = link.partition("#code=")[2]
    assert page.url == f"{served.url}/"
    assert not [url for url in asked if code in url]
    cookie = cookie_of(page)
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/")
    kept = page.evaluate(_KEPT)
    assert not [secret for secret in (cookie["value"], code, served.key[13:]) if secret in kept]

    late = new_page()
    late.goto(link, wait_until="commit")
    late.wait_for_url("**/sign-in?why=code")
    expect(late.get_by_role("status")).to_contain_text("older than a minute")
    page.goto(link)  # whoever is signed in goes on, whatever the link is worth
    page.wait_for_url(f"{served.url}/")
    ready(page)


def test_the_form_says_what_is_wrong_and_lets_in_whoever_has_a_key(served: Served, new_page: NewPage) -> None:
    page = new_page()
    page.goto(f"{served.url}/console", wait_until="commit")
    page.wait_for_url("**/sign-in?to=console")
    field = page.get_by_label("API key")
    expect(field).to_be_focused()
    page.keyboard.type("axk_nothing")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("Incorrect API key")
    expect(field).to_have_value("")
    expect(field).to_be_focused()
    page.keyboard.type(served.admin_key)
    page.keyboard.press("Enter")
    page.wait_for_url(f"{served.url}/console")
    assert served.admin_key[13:] not in page.evaluate(_KEPT)
    page.goto(f"{served.url}/docs")
    expect(page.get_by_text("/v1/chat/completions", exact=True).first).to_be_visible()


def test_somebody_who_is_signed_out_elsewhere_comes_to_the_form(served: Served, new_page: NewPage) -> None:
    page = new_page()
    page.goto(f"{served.url}/sign-in")
    page.get_by_label("API key").fill(served.key)
    page.get_by_role("button", name="Sign in", exact=True).click()
    ready(page)
    page.goto(f"{served.url}/livez")
    page.context.clear_cookies()
    page.goto(f"{served.url}/", wait_until="commit")
    page.wait_for_url("**/sign-in")


def test_a_session_that_ends_loses_neither_the_place_nor_what_was_typed(served: Served, new_page: NewPage) -> None:
    page = new_page()
    page.goto(f"{served.url}/sign-in")
    enter_key(page, served.key)
    ready(page)
    asked_and_answered(page, "Kept in its place")
    place, message = address_of(page), page.locator("#message")
    message.fill("Typed and not sent")
    page.reload()
    expect(message).to_have_value("Typed and not sent")
    page.keyboard.press("Control+Shift+o")
    expect(message).to_have_value("")  # it belongs to the other conversation
    message.fill(f"My key is {served.key}")
    page.go_back()
    expect(message).to_have_value("Typed and not sent")
    assert served.key[4:] not in page.evaluate(_KEPT)
    page.context.clear_cookies()
    page.keyboard.press("Enter")
    page.wait_for_url("**/sign-in?why=ended")
    enter_key(page, served.key)
    page.wait_for_url(place)
    expect(page.locator(".turn .asked")).to_have_text("Kept in its place")
    expect(message).to_have_value("Typed and not sent")

    num_kept = page.evaluate(_MANY_DRAFTS)
    assert num_kept["drafts"] == 20
    assert num_kept["characters"] <= 1_100_000
    message.fill("To be forgotten")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/sign-in")
    assert page.evaluate("sessionStorage.length") == 0
    enter_key(page, served.key)
    ready(page)
    page.goto(place)
    expect(page.locator(".turn")).to_have_count(1)
    expect(message).to_have_value("")
    message.fill("Gone with its conversation")
    page.get_by_role("button", name="Erase").click()
    page.get_by_role("dialog").get_by_role("button", name="Erase").click()
    expect(page.locator("#title")).to_have_text("New chat")
    expect(message).to_have_value("")
    assert "Gone with" not in page.evaluate(_KEPT)


def test_whoever_signs_out_of_the_console_comes_back_to_it(served: Served, new_page: NewPage) -> None:
    page = new_page()
    page.goto(f"{served.url}/sign-in?to=console")
    enter_key(page, served.key)
    page.get_by_role("button", name="Sign in with another key").click()
    page.wait_for_url("**/sign-in?to=console")
    enter_key(page, served.admin_key)
    page.wait_for_url(f"{served.url}/console")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/sign-in?to=console")
    page.goto(f"{served.url}/sign-in?to=//example.com/console")  # the form leads to our own pages alone
    enter_key(page, served.key)
    page.wait_for_url(f"{served.url}/")


def enter_key(page: Page, key: str) -> None:
    """Signs in by the form."""
    page.get_by_label("API key").fill(key)
    page.get_by_role("button", name="Sign in", exact=True).click()


def test_the_pages_work_under_a_path(serve: Serve, new_page: NewPage) -> None:
    served, page = serve(gateway_path_prefix="/tools/axon"), new_page()
    outside: list[str] = []
    page.on("request", lambda request: outside.append(request.url) if "/tools/axon" not in request.url else None)
    page.goto(f"{served.url}/tools/axon", wait_until="commit")
    page.wait_for_url("**/tools/axon/sign-in")
    page.get_by_label("API key").fill(served.key)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url(f"{served.url}/tools/axon/")
    ready(page)
    assert cookie_of(page)["path"] == "/tools/axon"
    assert outside == []


def test_a_person_signs_in_by_an_issuer_of_another_site(serve: Serve, new_page: NewPage) -> None:
    with running_issuer(time.time(), host="localhost") as issuer:
        port = free_port()
        key_id = "k0000000"
        settings = {
            "gateway_port": port,
            "gateway_oidc_issuer": issuer.url,
            "gateway_oidc_client_id": CLIENT_ID,
            "gateway_oidc_redirect_url": f"http://127.0.0.1:{port}/ui/oidc/callback",
        }
        served = serve(gateway_oidc_keys=f"ada@example.com={key_id}", **settings)
        page = new_page()
        page.goto(f"{served.url}/sign-in")
        page.get_by_role("link", name="Sign in with localhost").click()
        page.wait_for_url("**/sign-in?why=issuer")  # the key is not there yet
        served.server.stop()
        again = serve(gateway_oidc_keys=f"ada@example.com={served.key[4:12]}", **settings)
        page.goto(f"{again.url}/sign-in")
        page.get_by_role("link", name="Sign in with localhost").click()
        page.wait_for_url(f"{again.url}/")
        ready(page)
        assert cookie_of(page)["sameSite"] == "Strict"
        assert (
            page.evaluate("() => fetch('ui/session').then(reply => reply.json()).then(found => found.key)")
            == again.key[4:12]
        )


def test_a_session_that_ends_loses_no_place_when_an_issuer_signs_in(serve: Serve, new_page: NewPage) -> None:
    """The tab keeps it, and the issuer's site sees nothing of it."""
    with running_issuer(time.time(), host="localhost") as issuer:
        served, page = signs_in_with(serve, issuer), new_page()
        page.goto(f"{served.url}/sign-in")
        by_issuer(page)
        ready(page)
        asked_and_answered(page, "Kept through the issuer")
        place = address_of(page)
        page.locator("#message").fill("Typed and not sent")
        page.context.clear_cookies()
        page.locator("#message").press("Enter")
        page.wait_for_url("**/sign-in?why=ended")
        by_issuer(page)
        page.wait_for_url(place)
        expect(page.locator(".turn .asked")).to_have_text("Kept through the issuer")
        expect(page.locator("#message")).to_have_value("Typed and not sent")

        page.goto(f"{served.url}/console#/usage?days=7")
        expect(page.get_by_role("heading", name="Usage")).to_be_visible()
        page.goto(f"{served.url}/livez")  # a page that is shown would notice by itself, and lead on too
        page.context.clear_cookies()
        page.goto(f"{served.url}/console#/usage?days=7", wait_until="commit")  # it leads on before it is loaded
        page.wait_for_url("**/sign-in?to=console#/usage?days=7")
        by_issuer(page)
        page.wait_for_url(f"{served.url}/console#/usage?days=7")
        expect(page.get_by_role("heading", name="Usage")).to_be_visible()
        assert not [path for path in issuer.paths if "usage" in path or "conv_" in path]
        page.goto(f"{served.url}/livez")
        page.goto(f"{served.url}/console")
        expect(page.get_by_role("heading", name="Overview")).to_be_visible()  # a place holds once

        for elsewhere in ("//example.com/#/usage", "https://example.com/", "?c=conv_x//#/usage", "javascript:1"):
            page.goto(f"{served.url}/livez")
            page.context.clear_cookies()
            page.goto(f"{served.url}/sign-in?to=console")
            page.evaluate("place => sessionStorage.setItem('axon.place', `console ${place}`)", elsewhere)
            by_issuer(page)
            page.wait_for_url(f"{served.url}/console")
            expect(page.get_by_role("heading", name="Overview")).to_be_visible()
            assert page.url == f"{served.url}/console"


def by_issuer(page: Page) -> None:
    """Signs in by the form's other button."""
    page.get_by_role("link", name="Sign in with localhost").click()


def signs_in_with(serve: Serve, issuer: IssuerDouble) -> Served:
    """A server whose operator signs in with the issuer."""
    port = free_port()
    settings = {
        "gateway_port": port,
        "gateway_oidc_issuer": issuer.url,
        "gateway_oidc_client_id": CLIENT_ID,
        "gateway_oidc_redirect_url": f"http://127.0.0.1:{port}/ui/oidc/callback",
    }
    served = serve(gateway_oidc_keys="ada@example.com=k0000000", **settings)
    served.server.stop()
    return serve(gateway_oidc_keys=f"ada@example.com={served.admin_key[4:12]}", **settings)
