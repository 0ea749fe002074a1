"""Signing in as a person does: by the link on the screen, by the form, under a path, and by an issuer."""

import re
import time
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.chatting import ready
from tests.browser.conftest import NewPage, Serve
from tests.browser.serving import Served
from tests.oidc.issuer_double import CLIENT_ID, running_issuer
from tests.services.process import free_port

_KEPT = """() => JSON.stringify(
  [document.cookie, {...localStorage}, {...sessionStorage}, location.href, document.body.outerHTML])"""
"""All that a script of the page can find."""


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
    late.goto(link)
    late.wait_for_url("**/sign-in?why=code")
    expect(late.get_by_role("status")).to_contain_text("older than a minute")
    page.goto(link)  # whoever is signed in goes on, whatever the link is worth
    page.wait_for_url(f"{served.url}/")
    ready(page)


def test_the_form_says_what_is_wrong_and_lets_in_whoever_has_a_key(served: Served, new_page: NewPage) -> None:
    page = new_page()
    page.goto(f"{served.url}/console")
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
    page.context.clear_cookies()
    page.goto(f"{served.url}/")
    page.wait_for_url("**/sign-in")


def test_the_pages_work_under_a_path(serve: Serve, new_page: NewPage) -> None:
    served, page = serve(gateway_path_prefix="/tools/axon"), new_page()
    outside: list[str] = []
    page.on("request", lambda request: outside.append(request.url) if "/tools/axon" not in request.url else None)
    page.goto(f"{served.url}/tools/axon")
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
