"""The console at every width: nothing that can be done is out of sight, and no page is wider than its screen."""

from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser import visiting
from tests.browser.conftest import NewPage
from tests.browser.console import enter, row
from tests.browser.serving import Served, serving
from tests.browser.visiting import ROOMS, visit
from tests.fleet.versions import MODEL, sent, version_body

LONG = "acme-research-and-development"
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True}
WIDE = {"viewport": {"width": 1280, "height": 800}}
ZOOMED = {"viewport": {"width": 320, "height": 256}}
"""A window of 1,280 pixels at 400 %."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with long names in every table."""
    with (
        serving(tmp_path_factory.mktemp("layout") / "data") as server,
        httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {server.admin_key}"}, timeout=60) as http,
    ):
        sent(http.post("/v1/admin/models", json={"id": MODEL}))
        for label in ("v1", "v2"):
            sent(http.post(f"/v1/admin/models/{MODEL}/versions", json=version_body(label, echo_step_s="0.002")))
        sent(http.post("/v1/admin/deployments", json={"id": MODEL, "model": MODEL, "version": "v1", "min_replicas": 1}))
        sent(http.post("/v1/admin/aliases", json={"id": f"{LONG}-best", "deployment": MODEL}))
        sent(http.post("/v1/admin/prices", json={"model": MODEL, "prompt": 0.5, "output": 1}))
        limits = {"requests_per_minute": 60, "tokens_per_day": 100000, "weight": 2}
        sent(http.post("/v1/admin/plans", json={"id": f"{LONG}-plan", "limits": limits}))
        tenant = {"id": LONG, "name": "Acme Research & Development (Europe)", "plan": f"{LONG}-plan", "limits": limits}
        sent(http.post("/v1/admin/tenants", json=tenant))
        scopes = ["inference", "read", "versions", "admin"]
        sent(http.post("/v1/admin/keys", json={"tenant": LONG, "name": "laptop " * 8, "scopes": scopes}))
        yield server


def _turn(served: Served) -> str:
    body = {"model": "echo", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 8}
    headers = {"Authorization": f"Bearer {served.admin_key}"}
    return str(httpx.post(f"{served.url}/v1/chat/completions", json=body, headers=headers, timeout=60).json()["id"])


@pytest.mark.parametrize("size", [WIDE, PHONE, ZOOMED], ids=["1280", "360", "320"])
def test_no_view_is_wider_than_its_screen(new_page: NewPage, served: Served, size: dict[str, object]) -> None:
    page = new_page(**size)
    enter(page, served)
    found = []
    for view in (*ROOMS, f"tenants/{LONG}", f"models/{MODEL}", f"requests/{_turn(served)}"):
        visit(page, view)
        width, screen = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        found += [f"{view}: {width} on {screen}"] if width > screen else []
        found += [f"{view}: {each} is out of sight" for each in _out_of_sight(page)]
    assert found == []


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["1280", "360"])
def test_a_key_can_be_revoked_where_it_is_seen(new_page: NewPage, served: Served, size: dict[str, object]) -> None:
    page = new_page(**size)
    enter(page, served, "keys")
    for action in ("Rotate", "Revoke"):
        expect(row(page, served.admin_key.split("_")[1][:8]).get_by_role("button", name=action)).to_be_visible()
    assert _out_of_sight(page) == []


def test_a_row_is_a_card_on_a_phone_that_names_its_values_and_is_sorted(new_page: NewPage, served: Served) -> None:
    page = new_page(**PHONE)
    enter(page, served, "tenants")
    first = row(page, LONG)
    assert first.evaluate("each => getComputedStyle(each).display") == "grid"
    plan = first.get_by_role("cell").filter(has_text=f"{LONG}-plan").first
    assert plan.evaluate("each => getComputedStyle(each, '::before').content") == '"Plan"'
    sorter = page.get_by_label("Sorted by")
    for chosen, expected in (("Tenant ↓", "default"), ("Tenant ↑", LONG)):
        sorter.select_option(chosen)
        expect(page.get_by_role("rowheader").first).to_have_text(expected)


def _out_of_sight(page: Page) -> list[str]:
    """What can be pressed in the tables and is not within the width of the screen or of its table."""
    found: list[str] = page.evaluate(
        """() => [...document.querySelectorAll("td.actions :is(button, a)")].filter(each => {
          const box = each.getBoundingClientRect(), place = each.closest(".scroll").getBoundingClientRect();
          return box.left < Math.max(0, place.left) || box.right > Math.min(innerWidth, place.right) + 1;
        }).map(each => each.getAttribute("aria-label"))"""
    )
    return found


def test_the_chat_leads_to_the_console_whoever_may_administer(new_page: NewPage, served: Served) -> None:
    page = new_page(**WIDE)
    visiting.enter(page, served, key=served.key)
    expect(page.locator("#who")).to_contain_text("default")
    expect(page.get_by_role("link", name="Console")).to_have_count(0)
    other = new_page(**WIDE)
    visiting.enter(other, served, key=served.admin_key)
    other.get_by_role("link", name="Console").click()
    expect(other.get_by_role("heading", name="Overview")).to_be_visible()
