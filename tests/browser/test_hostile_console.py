"""The console shows names and log lines of others as text: none of the corpus runs in the operator's browser."""

import itertools
import json
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.harm import harm, kept
from tests.browser.payloads import PAYLOADS, SHORT
from tests.browser.serving import Served
from tests.browser.visiting import ROOMS, enter, visit

NAMED = SHORT[::3]
DIALOGUES = (
    *[("tenants", "Make a tenant"), ("tenants/t0", "Change"), ("tenants/t0", "Suspend"), ("keys", "Make a key")],
    *[("models", "Add an adapter"), ("plans", "Make a plan")],
)
"""A view and the button of a dialogue that shows what the server tells."""
_KEPT = frozenset({"object", "id", "last_id", "first_id", "process"})
"""Fields that a page needs as they are, to know what it got and to ask for more."""


@pytest.fixture(scope="module", autouse=True)
def seeded(served: Served) -> None:
    """Tenants and keys with hostile names, a turn of such a tenant, and requests that write hostile log lines."""
    headers = {"Authorization": f"Bearer {served.admin_key}"}
    with httpx.Client(base_url=served.url, headers=headers, timeout=60) as client:
        for number, payload in enumerate(NAMED):
            tenant = {"id": f"t{number}", "name": payload[:100]}
            assert client.post("/v1/admin/tenants", json=tenant).status_code == 200
            made = client.post("/v1/admin/keys", json={"tenant": f"t{number}", "name": payload[:100]})
            assert made.status_code == 200
            client.get(f"/v1/{payload[:60]}", headers={"user-agent": payload[:60].encode("ascii", "replace").decode()})
        ask = {"model": "echo", "messages": [{"role": "user", "content": NAMED[0]}], "user": NAMED[0]}
        asked = {"Authorization": f"Bearer {made.json()['key']}"}
        assert client.post("/v1/chat/completions", json=ask, headers=asked).status_code == 200


def test_names_that_a_server_takes_are_text(page: Page, served: Served) -> None:
    enter(page, served, "console")
    for room in ROOMS:
        visit(page, room)
        assert harm(page) == [], room
    visit(page, "tenants")
    expect(page.get_by_text(NAMED[0]).first).to_be_visible()
    visit(page, "tenants/t0")
    assert harm(page) == []
    assert served.admin_key not in kept(page)


def test_any_text_of_the_admin_api_is_text(page: Page, served: Served) -> None:
    """As if every name, reason and log line that the server tells were hostile, whoever let it in."""
    enter(page, served, "console")
    endless = itertools.cycle(payload for payload in PAYLOADS if len(payload) <= 500)

    def poison(route: Route) -> None:
        reply = route.fetch()
        route.fulfill(response=reply, body=json.dumps(_poisoned(reply.json(), endless)))

    headers = {"Authorization": f"Bearer {served.admin_key}"}
    turns = httpx.get(f"{served.url}/v1/admin/traces", headers=headers, timeout=60).json()["turns"]
    page.route("**/v1/admin/**", poison)
    poisoned = 0
    views = (*ROOMS, "tenants/t0", "models/echo", f"requests/{turns[0]['id']}")
    for view in views:
        visit(page, view)
        assert harm(page) == [], view
        poisoned += "window.ran" in page.locator("#view").inner_text()
    assert poisoned > len(views) // 2
    for view, button in DIALOGUES:
        visit(page, view)
        page.get_by_role("button", name=button, exact=True).click()
        expect(page.get_by_role("dialog")).to_be_visible()
        assert harm(page) == [], button
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)


def _poisoned(value: Any, endless: "itertools.cycle[str]") -> Any:
    """The same shape, with hostile texts for all texts but those that the page must understand."""
    match value:
        case dict():
            return {name: each if name in _KEPT else _poisoned(each, endless) for name, each in value.items()}
        case list():
            return [_poisoned(each, endless) for each in value]
        case str():
            return next(endless)
    return value
