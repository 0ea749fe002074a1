"""Pages whose scripts are not there yet or never come: what is typed stays in its field, no key is in an address."""

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.chatting import address_of, arrive, asked_and_answered, ready
from tests.browser.conftest import NewPage
from tests.browser.serving import Served
from tests.browser.watch import wait_on


def held_back(page: Page, address: str, path: str) -> list[Route]:
    """Opens a page whose script is on its way, and returns the request for it."""
    held: list[Route] = []
    page.route(path, lambda route: held.append(route))
    page.goto(address, wait_until="commit")
    wait_on(page, lambda: bool(held), f"{path} is asked for")
    return held


def test_a_key_that_is_typed_before_the_script_is_there_goes_nowhere(page: Page, served: Served) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    held = held_back(page, f"{served.url}/sign-in", "**/ui/common/sign-in.js")
    field, button = page.get_by_label("API key"), page.get_by_role("button", name="Sign in", exact=True)
    field.fill(served.key)
    field.press("Enter")
    expect(button).to_be_disabled()
    expect(field).to_have_value(served.key)
    held.pop().continue_()
    button.click()
    page.wait_for_url(f"{served.url}/")
    assert [url for url in asked if "?" in url and "/v1/" not in url] == []


def test_a_key_that_is_typed_where_no_script_runs_goes_nowhere(new_page: NewPage, served: Served) -> None:
    page = new_page(java_script_enabled=False)
    page.goto(f"{served.url}/sign-in")
    page.get_by_label("API key").fill(served.key)
    page.get_by_label("API key").press("Enter")
    expect(page.get_by_label("API key")).to_have_value(served.key)  # the page was not left
    assert page.url == f"{served.url}/sign-in"


@pytest.mark.parametrize("how", ["Enter", "Send"])
def test_a_question_that_is_typed_before_the_script_is_there_stays(page: Page, served: Served, how: str) -> None:
    arrive(page, served)
    asked_and_answered(page, "Of before")
    address = address_of(page)
    held = held_back(page, address, "**/ui/chat/chat.js")
    field = page.get_by_label("Message", exact=True)
    field.fill("As early as can be")
    if how == "Enter":
        field.press("End")
        field.press("Enter")
    else:
        page.locator("#send").dispatch_event("click")
    held.pop().continue_()
    ready(page)
    assert page.url == address
    assert field.input_value().strip() == "As early as can be"
    page.locator("#send").click()
    expect(page.locator(".asked")).to_have_text(["Of before", "As early as can be"])
