"""The console's dialogues say what is wrong at the field itself and lose nothing; its numbers lead to their parts.

axe finds nothing in any room, detail view or dialogue.
"""

import json
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import httpx
import pytest
from playwright.sync_api import Locator, Page, Route, ViewportSize, expect

from tests import long
from tests.browser import axe
from tests.browser.conftest import NewPage
from tests.browser.console import command_of, confirm, dialog, enter, parsed, row
from tests.browser.serving import Served, serving
from tests.browser.visiting import ROOMS, visit
from tests.browser.watch import wait_on
from tests.fleet.versions import MODEL, sent, version_body


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with something in every table."""
    with (
        serving(tmp_path_factory.mktemp("forms") / "data") as server,
        httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {server.admin_key}"}, timeout=60) as http,
    ):
        sent(http.post("/v1/admin/models", json={"id": MODEL}))
        for label in ("v1", "v2"):
            sent(http.post(f"/v1/admin/models/{MODEL}/versions", json=version_body(label, echo_step_s="0.002")))
        sent(http.post("/v1/admin/deployments", json={"id": MODEL, "model": MODEL, "version": "v1", "min_replicas": 1}))
        sent(http.post("/v1/admin/prices", json={"model": MODEL, "prompt": 0.5, "output": 1}))
        sent(http.post("/v1/admin/plans", json={"id": "pro", "limits": {"weight": 2}}))
        sent(http.post("/v1/admin/tenants", json={"id": "acme", "plan": "pro", "limits": {"concurrent": 3}}))
        body = {"model": "echo", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 4}
        sent(http.post("/v1/chat/completions", json=body))
        yield server


def turn_of(served: Served) -> str:
    """The id of the turn that the server has seen."""
    headers = {"Authorization": f"Bearer {served.admin_key}"}
    found = httpx.get(f"{served.url}/v1/admin/traces", headers=headers, timeout=60).json()
    return str(found["turns"][0]["id"])


def wrong(told: Locator, label: str) -> Locator:
    """What is said at a field; the field is marked as wrong and has the focus."""
    field = told.get_by_label(label, exact=True)
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_be_focused()
    said = field.get_attribute("aria-describedby") or ""
    return told.locator(f"#{said.split()[-1]}")


def test_what_is_wrong_is_said_at_its_field_with_what_to_do(page: Page, served: Served) -> None:
    enter(page, served, "tenants")
    page.get_by_role("button", name="Make a tenant").click()
    told = dialog(page)
    told.get_by_role("button", name="Make it").click()
    expect(wrong(told, "Id")).to_have_text("Fill this in.")
    told.get_by_label("Id", exact=True).fill("no spaces, please")
    expect(told.get_by_label("Id", exact=True)).not_to_have_attribute("aria-invalid", "true")
    told.get_by_role("button", name="Make it").click()
    expect(wrong(told, "Id")).to_contain_text("1 to 64 letters")
    told.get_by_label("Id", exact=True).fill("acme")
    told.get_by_role("button", name="Make it").click()
    expect(wrong(told, "Id")).to_contain_text("There is a tenant acme already")
    told.get_by_label("Id", exact=True).fill("beta")
    told.get_by_label("Limits of its own").fill("wieght=2")
    told.get_by_role("button", name="Make it").click()
    expect(wrong(told, "Limits of its own")).to_contain_text("'wieght' is no limit. There are:")
    told.get_by_label("Limits of its own").fill("weight=2")
    confirm(told, "Make it")
    expect(row(page, "beta")).to_be_visible()


def test_a_key_needs_a_scope_and_a_number_its_bounds(page: Page, served: Served) -> None:
    enter(page, served, "keys")
    page.get_by_role("button", name="Make a key").click()
    told = dialog(page)
    for scope in ("inference", "read"):
        told.get_by_role("checkbox", name=re.compile(f"^{scope}")).uncheck()
    told.get_by_role("button", name="Make it").click()
    expect(told.get_by_text("Choose at least one.")).to_be_visible()
    told.get_by_role("button", name="Cancel").click()
    visit(page, f"models/{MODEL}")
    page.get_by_role("button", name="Change replicas").click()
    told = dialog(page)
    told.get_by_label("Workers at most").fill("0")
    told.get_by_role("button", name="Change it").click()
    expect(wrong(told, "Workers at most")).to_have_text("Write 1 or more.")


def test_versions_and_tenants_are_chosen_and_a_model_is_registered_by_the_command_shown(
    page: Page, served: Served
) -> None:
    enter(page, served, "models")
    page.get_by_role("button", name="Add a price").click()
    told = dialog(page)
    told.get_by_label("Version").select_option("small@v2")
    assert parsed(command_of(told))["version"] == "v2"
    confirm(told, "Add it")
    expect(page.get_by_role("region", name="Prices").get_by_role("rowheader", name="small@v2")).to_be_visible()
    page.get_by_role("button", name="Add an adapter").click()
    told = dialog(page)
    told.get_by_label("Only for the tenant").select_option("acme")
    told.get_by_role("button", name="Cancel").click()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Register a model").click()
    told = dialog(page)
    told.get_by_label("Name").fill("qwen3")
    told.get_by_label("Source").fill("hf://Qwen/Qwen3-0.6B@main")
    command = command_of(told)
    read = parsed(command)
    assert (read["name"], read["source"], read["deploy"]) == ("qwen3", "hf://Qwen/Qwen3-0.6B@main", True)
    confirm(told, "Copy the command")
    assert page.evaluate("navigator.clipboard.readText()") == command


def test_every_number_leads_to_what_it_is_made_of(page: Page, served: Served) -> None:
    enter(page, served)
    found = []
    for view in (*ROOMS, "tenants/acme", f"models/{MODEL}", f"requests/{turn_of(served)}"):
        visit(page, view)
        found += [f"{view}: {each}" for each in page.evaluate(_LONELY)]
    assert found == []
    visit(page, f"requests/{turn_of(served)}")
    for name in ("Took", "Queue"):
        number = page.locator("dt", has_text=re.compile(f"^{name}$")).locator("+ dd").get_by_role("button")
        number.press("Enter")
        assert page.evaluate("document.activeElement.querySelector('caption').textContent") == "Steps"
    page.get_by_role("link", name=re.compile("tokens$")).click()
    expect(page.get_by_role("heading", name="Usage")).to_be_visible()
    visit(page, "usage")
    row(page, "default").get_by_role("link", name="1", exact=True).first.click()
    expect(page.get_by_role("link", name="echo", exact=True)).to_be_visible()
    visit(page, "tenants/acme")
    for limit, origin in (("weight", "its plan pro"), ("concurrent", "its own"), ("queued", "the server")):
        expect(row(page, limit)).to_contain_text(origin)
    visit(page, "tenants")
    row(page, "default").get_by_role("cell").get_by_role("link", name="default").click()
    expect(row(page, "default")).to_contain_text("the server's settings hold")
    visit(page, "requests")
    page.get_by_role("button", name=re.compile("^Turns looked at")).click()
    assert page.evaluate("document.activeElement.className") == "table"


_LONELY = """() => [
  ...[...document.querySelectorAll(".tile")].filter(each => !["A", "BUTTON"].includes(each.tagName)),
  ...[...document.querySelectorAll("td.number")].filter(each => /[0-9]/.test(each.textContent))
    .filter(each => !each.querySelector("a")),
  ...[...document.querySelectorAll(".facts dd")].filter(each => [...each.childNodes].some(
    node => !["A", "BUTTON", "TIME"].includes(node.nodeName)
      && /(^|\\s)[0-9][0-9.,]*(\\s|%|$)/.test(node.textContent))),
].map(each => `${each.dataset.head || ""} ${each.textContent}`)"""


def test_two_workers_of_one_name_are_two_rows_with_their_own_figures(page: Page, served: Served) -> None:
    looks, models = 0, ["echo", "echo"]

    def twice(route: Route) -> None:
        nonlocal looks
        looks += 1
        look: dict[str, Any] = route.fetch().json()
        worker = look["workers"][0]
        runs = [("run-one-aaaaaa", 100, True), ("run-two-bbbbbb", 7, True)]
        look["workers"] = [
            {**worker, "name": "twin", "incarnation": run, "at": 1000.0 + looks, "answer_tokens": rate * looks}
            | {"can_drain": can, "model": models[number]}
            for number, (run, rate, can) in enumerate(runs)
        ]
        route.fulfill(body=json.dumps(look), content_type="application/json")

    def alike(route: Route) -> None:
        listed = route.fetch().json()
        (first, *_) = listed["data"]
        listed["data"] = [first, first]
        route.fulfill(body=json.dumps(listed), content_type="application/json")

    enter(page, served)
    page.route("**/v1/admin/overview", twice)
    page.route("**/v1/admin/processes", alike)
    visit(page, "fleet")
    workers = page.get_by_role("region", name="Workers").get_by_role("row").filter(has_text="twin")
    expect(workers).to_have_count(2)
    expect(workers.filter(has_text="run aaaaaa")).to_contain_text("100")
    expect(workers.filter(has_text="run bbbbbb")).to_contain_text("7.0")
    notice = page.get_by_text("More than one worker of a model is called twin")
    expect(notice).to_be_visible()
    expect(page.get_by_role("region", name="Processes").get_by_role("rowheader")).to_have_count(2)
    models[1] = "other"  # a process has a worker for each of its models, and jobs of another one never reach it
    expect(page.get_by_text("Workers of more than one model are called twin")).to_be_visible()
    expect(notice).to_have_count(0)
    page.unroute_all()


def test_escape_does_not_lose_a_key_that_is_being_rotated(page: Page, served: Served) -> None:
    headers = {"Authorization": f"Bearer {served.admin_key}"}
    made = httpx.post(f"{served.url}/v1/admin/keys", json={"tenant": "acme"}, headers=headers, timeout=60).json()
    held: list[Route] = []
    enter(page, served, "keys")
    page.route("**/rotate", lambda route: held.append(route))
    page.get_by_role("button", name=f"Rotate {made['id']}").click()
    told = dialog(page)
    told.get_by_label("The old one stays good for").select_option("no time")
    told.get_by_role("button", name="Rotate it").click()
    wait_on(page, lambda: held, "the server is asked")
    for _ in range(3):
        page.keyboard.press("Escape")
    expect(told.get_by_role("button", name="Cancel")).to_be_disabled()
    held[0].continue_()
    shown = page.get_by_label("The new key")
    expect(shown).to_be_visible()
    for _ in range(3):
        page.keyboard.press("Escape")
    assert shown.input_value().startswith("axk_")
    page.get_by_role("button", name="I have kept it").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    listed = httpx.get(f"{served.url}/v1/models", headers={"Authorization": f"Bearer {made['key']}"}, timeout=60)
    assert listed.status_code == 401, "the old one has ended"


def test_a_dialogue_has_the_values_of_now_and_a_double_click_opens_one(page: Page, served: Served) -> None:
    enter(page, served, "plans")
    headers = {"Authorization": f"Bearer {served.admin_key}"}
    sent(httpx.patch(f"{served.url}/v1/admin/plans/pro", json={"limits": {"weight": 5}}, headers=headers, timeout=60))
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # looks at once
    expect(row(page, "pro")).to_contain_text("weight=5")
    page.get_by_role("button", name="Change pro").click()
    told = dialog(page)
    expect(told.get_by_label("Limits")).to_have_value("weight=5")
    told.get_by_role("button", name="Cancel").click()
    visit(page, "tenants")
    read: list[str] = []
    page.on("requestfinished", lambda request: read.append(request.url))
    page.get_by_role("button", name="Make a tenant").dblclick()
    wait_on(page, lambda: sum("admin/plans" in url for url in read) >= 2, "both clicks have read the plans")
    dialog(page).get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_link_to_a_tenants_keys_and_a_plans_tenants_leads_to_those_alone(page: Page, served: Served) -> None:
    headers = {"Authorization": f"Bearer {served.admin_key}"}
    with httpx.Client(base_url=served.url, headers=headers, timeout=60) as http:
        sent(http.post("/v1/admin/tenants", json={"id": "acme-test", "name": "on pro, once"}))
        ids = [sent(http.post("/v1/admin/keys", json={"tenant": each}))["id"] for each in ("acme", "acme-test")]
    enter(page, served, "keys?tenant=acme")
    expect(row(page, ids[0])).to_be_visible()
    expect(row(page, ids[1])).to_have_count(0)
    page.get_by_label("Tenant", exact=True).fill("acme-")
    expect(row(page, ids[1])).to_be_visible()
    visit(page, "plans")
    row(page, "pro").get_by_role("link", name="1", exact=True).click()
    expect(row(page, "acme")).to_be_visible()
    expect(row(page, "acme-test")).to_have_count(0)


@pytest.mark.parametrize(("view", "read"), [("fleet", "fleet"), ("fleet", "overview"), ("alerts", "alerts")])
def test_the_focus_stays_while_a_view_is_drawn_anew(page: Page, served: Served, view: str, read: str) -> None:
    enter(page, served, view)
    links = page.locator("#view :is(a, .leads)")
    for number in (0, links.count() - 1):
        links.nth(number).focus()
        said = links.nth(number).inner_text()
        for _ in range(2):
            with page.expect_response(f"**/v1/admin/{read}"):
                page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # looks at once
            page.evaluate("new Promise(done => setTimeout(done, 50))")
        assert page.evaluate("document.activeElement.matches('#view a, #view .leads')"), said


def test_the_view_is_kept_through_sign_in_and_days_are_those_of_the_server(page: Page, served: Served) -> None:
    enter(page, served, "tenants/acme")
    page.goto(f"{served.url}/livez")  # a view that is shown would notice by itself, and lead on too
    page.context.clear_cookies()
    page.goto(f"{served.url}/console#/tenants/acme", wait_until="commit")  # it leads to the form before it is loaded
    page.get_by_label("API key").fill(served.admin_key)
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("heading", name="Tenant acme")).to_be_visible()
    page.clock.set_fixed_time(datetime.now(UTC) + timedelta(days=3))
    visit(page, "usage?days=1")
    expect(row(page, "default")).to_be_visible()


SIZES: tuple[ViewportSize, ...] = ({"width": 1280, "height": 800}, {"width": 390, "height": 844})
LOOKS = [(colours, size) for colours in ("light", "dark") for size in SIZES]
DIALOGUES = (
    *[("tenants", "Make a tenant"), ("plans", "Make a plan"), ("plans", "Change pro"), ("plans", "Remove pro")],
    *[("tenants/acme", name) for name in ("Change", "Suspend", "Remove")],
    *[("keys", name) for name in ("Make a key", "Rotate", "Revoke")],
    *[("models", name) for name in ("Make a deployment", "Register a model", "Set an alias", "Add an adapter")],
    *[("models", "Add a price"), ("models", f"Remove {MODEL}")],
    *[(f"models/{MODEL}", "Change replicas"), (f"models/{MODEL}", "Start a rollout")],
)
"""A view and the button that opens a dialogue there."""


Look = tuple[str, ViewportSize]
Place = TypeVar("Place")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("look", LOOKS, ids=[f"{colours}-{size['width']}" for colours, size in LOOKS])
def test_axe_finds_nothing_in_any_room_detail_view_or_dialogue(new_page: NewPage, served: Served, look: Look) -> None:
    """In a short run each of them has one of the four looks; the seed decides which."""
    colours, size = look
    page = new_page(reduced_motion="reduce", color_scheme=colours)
    enter(page, served)
    details = ("tenants/acme", f"models/{MODEL}", "models/echo", f"requests/{turn_of(served)}", "requests/nobody")
    page.set_viewport_size(size)
    found = []
    for view in seen_in(look, (*ROOMS, *details)):
        visit(page, FEWER.get(view, view))
        found += [f"{view}: {each}" for each in axe.violations(page)]
    for view, button in seen_in(look, DIALOGUES):
        page.set_viewport_size(SIZES[0])
        visit(page, view)
        opener = page.get_by_role("button", name=re.compile(f"^{button}( \\w+)?$"))
        opener.first.click()
        expect(page.get_by_role("dialog")).to_be_visible()
        page.set_viewport_size(size)
        found += [f"{view}, {button}: {each}" for each in axe.violations(page, "dialog")]
        page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    page.route("**/v1/admin/settings", lambda route: route.abort())
    page.set_viewport_size(size)
    visit(page, "settings")
    expect(page.get_by_role("heading", name="This could not be read")).to_be_visible()
    assert found + axe.violations(page) == []


FEWER = {"settings": "settings?which=set", "logs": "logs?text=process.ready"}
"""Of five hundred settings and a thousand log lines, a few: axe looks at each of their elements."""


def seen_in(look: Look, places: Sequence[Place]) -> list[Place]:
    """The places that a look shows: all of them, or in a short run those that are its turn."""
    return [each for number, each in enumerate(places) if look in long.in_turn(LOOKS, number, len(LOOKS))]


def test_a_page_without_motion_changes_its_colours_at_once(new_page: NewPage, served: Served) -> None:
    """A transition of a moment is one all the same: of every element, one after the other down the page."""
    page = new_page(reduced_motion="reduce", color_scheme="dark")
    enter(page, served, "settings")
    page.emulate_media(color_scheme="light")
    assert page.evaluate("document.getAnimations().length") == 0
