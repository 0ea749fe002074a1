"""Everybody can use the pages: axe finds no violation in light or dark, and the keyboard does what the mouse does.
The console's views are in test_console_forms.py, where there is something in every table."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser import axe
from tests.browser.conftest import NewPage
from tests.browser.serving import Served
from tests.browser.visiting import enter

TEXT = "# A heading\n\nSome `code`, **bold** and a [link](https://example.com).\n\n| a | b |\n|---|---|\n| 1 | $x^2$ |\n\n```python\nprint('hello')  # a comment\n```"  # noqa: E501
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
WIDE = {"viewport": {"width": 1280, "height": 800}}
LOOKS = pytest.mark.parametrize(
    ("colours", "size"), [("light", WIDE), ("dark", PHONE)], ids=["light-wide", "dark-phone"]
)


@LOOKS
def test_axe_finds_nothing_in_the_chat(
    new_page: NewPage, served: Served, colours: str, size: dict[str, object]
) -> None:
    page = new_page(color_scheme=colours, reduced_motion="reduce", **size)
    page.goto(f"{served.url}/sign-in?why=ended")
    assert axe.violations(page) == []
    enter(page, served)
    assert axe.violations(page) == []
    page.get_by_label("Message", exact=True).fill(TEXT)
    page.keyboard.press("Enter")
    expect(page.locator(".answer table")).to_be_visible()
    assert axe.violations(page) == []
    page.get_by_role("button", name="Why was this slow?").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert axe.violations(page) == []
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Settings", exact=True).click()
    assert axe.violations(page) == []


@LOOKS
def test_axe_finds_nothing_in_the_reference_of_the_api(
    new_page: NewPage, served: Served, colours: str, size: dict[str, object]
) -> None:
    page = new_page(color_scheme=colours, reduced_motion="reduce", **size)
    enter(page, served)
    page.goto(f"{served.url}/docs")
    with served.server.client() as api:
        paths = api.get("/openapi.json").json()["paths"]
    expect(page.locator("details")).to_have_count(sum(len(methods) for methods in paths.values()))
    assert axe.violations(page) == []
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    upload = page.locator("details", has=page.locator("summary", has_text="Upload a file"))
    expect(upload.locator("pre")).to_contain_text("-F file=@FILE")
    expect(upload.locator("table")).to_contain_text("expires_after[seconds]")
    assert axe.violations(page) == []


def test_a_tenant_is_made_by_the_keyboard_alone(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/sign-in?to=console")
    page.keyboard.type(served.admin_key)
    page.keyboard.press("Enter")
    expect(page.locator("#view")).not_to_have_attribute("aria-busy", "true")
    _press(page, "Tenants", within="#rooms")
    expect(page.get_by_role("heading", level=1)).to_have_text("Tenants")
    _press(page, "Make a tenant", within="#view")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.type("acme")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="acme", exact=True)).to_be_visible()


def test_a_conversation_is_led_by_the_keyboard_alone(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/sign-in")
    page.keyboard.type(served.key)  # the field has the focus
    page.keyboard.press("Enter")
    expect(page.locator("#model option")).not_to_have_count(0)
    page.keyboard.type("first question")
    page.keyboard.press("Enter")
    expect(page.locator(".answer .said")).to_contain_text("user: first question")
    expect(page.locator("#send")).to_be_visible()
    page.keyboard.press("ArrowUp")  # in the empty field: edits the last question
    page.keyboard.press("Control+a")
    page.keyboard.type("second question")
    page.keyboard.press("Enter")
    expect(page.locator(".answer .said")).to_contain_text("user: second question")
    expect(page.locator(".versions")).to_contain_text("2/2")
    page.keyboard.press("Control+Shift+o")
    expect(page.locator("#title")).to_have_text("New chat")
    page.keyboard.press("Control+k")
    page.keyboard.type("first")
    expect(page.locator("#list li")).to_have_count(1)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#title")).to_have_text("first question")
    page.keyboard.press("Control+Shift+s")
    expect(page.locator("#settings")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#settings")).to_be_hidden()
    _press(page, "Erase")
    expect(page.get_by_role("dialog")).to_be_visible()
    _press(page, "Erase", within="dialog")
    expect(page.locator("#title")).to_have_text("New chat")
    expect(page.locator("#list li")).to_have_count(0)


def _press(page: Page, name: str, within: str = "body") -> None:
    """Goes on with Tab until the button has the focus, and presses it."""
    for _ in range(60):
        focused = page.evaluate(f"document.activeElement.closest('{within}') && document.activeElement.textContent")
        if focused == name:
            assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
            page.keyboard.press("Enter")
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not come to {name}")
