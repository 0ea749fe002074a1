"""The operator's journeys in the console, each on one embedded server: tenants, keys, usage, streams, slow requests."""

import csv
import io
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import httpx
import msgspec
import pytest
from playwright.sync_api import Page, expect

from axon.domain.tracing.drawn import drawn
from axon.domain.turn import Turn
from tests.browser.conftest import NewPage
from tests.browser.console import command_of, confirm, dialog, enter, parsed, row
from tests.browser.serving import Served, serving
from tests.browser.visiting import hide, visit
from tests.domain.tracing.turns import restarted, turn_of

STEP_S = 0.02


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server whose tokens take their time, so that a stream can be seen."""
    with serving(tmp_path_factory.mktemp("console") / "data", engine_echo_step_s=STEP_S) as server:
        yield server


def asked(served: Served, key: str, tokens: int) -> str:
    """Asks for a chat of so many tokens; returns the answer's id."""
    body = {"model": "echo", "messages": [{"role": "user", "content": "word " * tokens}], "max_tokens": tokens}
    headers = {"Authorization": f"Bearer {key}"}
    reply = httpx.post(f"{served.url}/v1/chat/completions", json=body, headers=headers, timeout=60)
    assert reply.status_code == 200, reply.text
    return str(reply.json()["id"])


class Streamed:
    """A stream that is read by a thread; ``error`` is the code of the error that it ended with."""

    def __init__(self) -> None:
        self.error = ""
        self.ended = threading.Event()


@contextmanager
def streaming(served: Served, key: str) -> Iterator[Streamed]:
    """Reads a long stream beside the test."""
    seen = Streamed()
    message = {"role": "user", "content": "and so on " * 300}
    body = {"model": "echo", "messages": [message], "max_tokens": 3000, "ignore_eos": True, "stream": True}

    def read() -> None:
        headers = {"Authorization": f"Bearer {key}"}
        try:
            with httpx.stream(
                "POST", f"{served.url}/v1/chat/completions", json=body, headers=headers, timeout=120
            ) as reply:
                for line in reply.iter_lines():
                    if found := re.search(r'"code":\s*"(\w+)"', line):
                        seen.error = found.group(1)
        except httpx.HTTPError as error:
            seen.error = seen.error or type(error).__name__
        seen.ended.set()

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        thread.join(120)


def test_a_tenant_and_its_key_are_made_used_seen_and_revoked(page: Page, served: Served) -> None:
    enter(page, served, "tenants")
    page.get_by_role("button", name="Make a tenant").click()
    made = dialog(page)
    made.get_by_label("Id", exact=True).fill("acme")
    made.get_by_label("Name", exact=True).fill("Acme's <b>own</b>")
    made.get_by_label("Limits of its own").fill("requests_per_minute=600 weight=2")
    read = parsed(command_of(made))
    assert (read["name"], read["limit"]) == ("Acme's <b>own</b>", ["requests_per_minute=600", "weight=2"])
    confirm(made, "Make it")
    expect(row(page, "acme")).to_contain_text("Acme's <b>own</b>")

    visit(page, "keys?tenant=acme")
    page.get_by_role("button", name="Make a key").click()
    made = dialog(page)
    made.get_by_label("Name", exact=True).fill("laptop")
    confirm(made, "Make it")
    shown = page.get_by_role("dialog")
    key = shown.get_by_label("The new key").input_value()
    assert key.startswith("axk_"), "the key is shown, this once"
    shown.get_by_role("button", name="I have kept it").click()
    key_id = key[4:12]
    expect(row(page, key_id)).to_contain_text("laptop")
    assert key not in page.content()

    asked(served, key, 5)
    visit(page, "usage?tenant=acme")
    expect(row(page, "acme").get_by_role("cell").nth(2)).to_have_text("1")
    expect(page.get_by_role("img", name=re.compile(r"Tokens by day: \d+ tokens"))).to_be_visible()
    with page.expect_download() as downloaded:
        page.get_by_role("button", name="Save as CSV").click()
    hostile = ["=1", "+1", "-1", "@a", "\t=1", "\n=1", " =1", "\uff1d1"]  # a table program would compute them
    saved = page.evaluate(
        "async (names) => (await import('./ui/console/usage.js')).csv(names.map((tenant) => ({ tenant })))", hostile
    )
    assert [row[0] for row in csv.reader(io.StringIO(saved, newline=""))][1:] == [f"'{name}" for name in hostile]
    lines = downloaded.value.path().read_text().splitlines()
    assert lines[0].startswith("tenant,day,model,turns,")
    assert lines[1].startswith("acme,20")

    with streaming(served, key) as stream:
        visit(page, f"streams?key={key_id}")
        expect(page.get_by_role("rowheader", name=re.compile("chatcmpl-"))).to_have_count(1)
        visit(page, "keys?tenant=acme")
        page.get_by_role("button", name=f"Revoke {key_id}").click()
        confirm(dialog(page), "Revoke it")
        assert stream.ended.wait(60), "the stream ends with its key"
    assert stream.error == "key_revoked"
    expect(row(page, key_id)).to_have_count(0)
    visit(page, f"streams?key={key_id}")
    expect(page.get_by_text("Nothing is streamed by this gateway now")).to_be_visible()

    visit(page, "tenants/acme")
    page.get_by_role("button", name="Suspend").click()
    confirm(dialog(page), "Suspend it")
    expect(page.get_by_text("suspended", exact=True)).to_be_visible()
    visit(page, "audit?text=acme")
    for done in ("suspend tenant", "revoke key", "add key", "add tenant"):
        expect(page.get_by_role("cell", name=done, exact=True)).to_be_visible()
    expect(page.get_by_text("status: active → suspended")).to_be_visible()
    page.get_by_label("Of").select_option("keys")
    expect(page.get_by_role("cell", name="add tenant")).to_have_count(0)
    expect(page.get_by_role("cell", name="revoke key")).to_be_visible()
    command = parsed(page.get_by_text(re.compile("^axon audit")).inner_text())
    assert (command["kind"], command["text"]) == ("key", "acme")


def test_a_slow_request_is_found_and_says_why(page: Page, served: Served) -> None:
    quick, slow = asked(served, served.key, 2), asked(served, served.key, 100)
    enter(page, served, "requests")
    expect(row(page, slow)).to_contain_text("engine.decode")
    order = page.get_by_role("rowheader", name=re.compile("chatcmpl-")).all_inner_texts()
    assert order.index(slow) < order.index(quick), "the slowest comes first"
    row(page, slow).get_by_role("link", name=slow).click()
    expect(page.get_by_text(re.compile("It took .* its answer was written, token by token"))).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("Where its seconds went: .*engine.decode"))).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("Tokens: .*answer 100"))).to_be_visible()
    assert parsed(page.get_by_text(re.compile("^axon trace")).inner_text())["name"] == slow

    visit(page, "requests")
    page.get_by_label("Find by id").fill(quick)
    page.get_by_role("button", name="Find").click()
    expect(page.get_by_role("heading", name=f"Request {quick}")).to_be_visible()
    visit(page, "requests/chatcmpl-nobody")
    expect(page.get_by_text("No turn or request chatcmpl-nobody is known")).to_be_visible()


def tell(page: Page, name: str, turn: Turn) -> None:
    """Lets the server say that this turn has the name."""
    body = msgspec.json.encode(drawn(turn))
    page.route(f"**/v1/admin/traces/{name}", lambda route: route.fulfill(body=body, content_type="application/json"))


def test_a_request_says_that_the_server_was_restarted_or_its_model_started(page: Page, served: Served) -> None:
    cold = turn_of([(30.0, 0.1, 1.0, 2.0)])
    assert cold.ledger is not None
    cold = replace(cold, ledger=replace(cold.ledger, start_s=29.0))
    found = {"chatcmpl-back": restarted(turn_of([(45.0, 0.1, 1.0, 2.0)]), 45.0), "chatcmpl-cold": cold}
    for name, turn in found.items():
        tell(page, name, turn)
    enter(page, served, "requests/chatcmpl-back")
    view = page.locator("#view")
    expect(view.locator(".why")).to_contain_text("it was without a server, which was restarted")
    expect(view.locator(".why")).to_contain_text("The server was restarted once while it had this.")
    expect(page.get_by_role("img", name=re.compile("Where its seconds went: .*server.restart"))).to_be_visible()
    expect(view).to_contain_text(re.compile("Failover45\\.. s, the server was restarted once"))
    expect(view).not_to_contain_text("More workers")
    visit(page, "requests/chatcmpl-cold")
    expect(view.locator(".why")).to_contain_text("its model was started: nobody had used it")
    expect(view).to_contain_text(re.compile("Model start29.0 sQueue1"))
    expect(view).not_to_contain_text("More workers")


def test_every_view_is_drawn_and_its_numbers_lead_on(page: Page, served: Served) -> None:
    asked(served, served.key, 2)
    enter(page, served)
    expect(row(page, "echo")).to_contain_text("ready")
    page.get_by_role("link", name=re.compile("^Workers")).click()
    expect(page.get_by_role("heading", name="Fleet")).to_be_visible()
    expect(page.get_by_text("No control with a launcher leads")).to_be_visible()
    expect(page.get_by_text("a part of axon serve cannot be drained one by one")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^Drain "))).to_have_count(0)

    for view, words in {
        "models": "The registry is empty",
        "plans": "Limits that hold for all tenants on the plan",
        "alerts": "No Alertmanager is configured",
        "logs": "process.ready",
        "settings?text=echo_step_s": "AXON_ENGINE_ECHO_STEP_S",
        "audit": "add key",
        "audit?text=nowhere-to-be-found": "Show all changes",
        "logs?level=error": "Show all lines",
    }.items():
        visit(page, view)
        expect(page.get_by_text(words).first).to_be_visible()
    settings = page.request.get(f"{served.url}/v1/admin/settings").text()
    assert served.admin_key not in settings
    assert (served.server.data_dir / "pepper").read_text().strip() not in settings


def test_a_key_without_the_scope_admin_is_told_what_to_do(new_page: NewPage, served: Served) -> None:
    page = new_page()
    page.goto(f"{served.url}/sign-in?to=console")
    page.get_by_label("API key").fill(served.key)
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("heading", name="This key may not administer")).to_be_visible()
    assert parsed(page.locator("main pre").inner_text())["scope"] == ["admin"]
    page.route("**/ui/sign-out", lambda route: route.abort())
    page.get_by_role("button", name="Sign in with another key").click()
    expect(page.get_by_text("The server cannot be reached.")).to_be_visible()


def test_the_console_is_used_with_the_keyboard_alone(page: Page, served: Served) -> None:
    enter(page, served, "plans")
    page.reload()
    expect(page.get_by_role("heading", name="Plans")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    expect(page).to_have_url(re.compile("#/plans$"))  # a reload shows the same view
    add = page.get_by_role("button", name="Make a plan")
    for _ in range(10):
        page.keyboard.press("Tab")
        if add.evaluate("each => each === document.activeElement"):
            break
    page.keyboard.press("Enter")
    made = dialog(page)
    expect(made.get_by_label("Name", exact=True)).to_be_focused()
    page.keyboard.type("pro")
    page.keyboard.press("Tab")
    page.keyboard.type("tokens_per_day=1000")
    page.keyboard.press("Enter")
    expect(made).to_have_count(0)
    expect(row(page, "pro")).to_contain_text("tokens_per_day=1000")


def test_a_server_that_is_away_is_asked_again_and_a_hidden_page_asks_nothing(page: Page, served: Served) -> None:
    enter(page, served, "fleet")
    pulse = page.locator("#pulse")
    expect(pulse).to_have_text("Live")
    served.kill()
    expect(pulse).to_contain_text("Trying again in")
    served.start_again()
    expect(pulse).to_have_text("Live")
    hide(page, hidden=True)
    expect(pulse).to_have_text("Paused")
    asked_for: list[str] = []
    page.on("request", lambda request: asked_for.append(request.url))
    page.wait_for_timeout(2500)
    assert asked_for == [], "twice as long as the pause between two looks, and nothing"
    hide(page, hidden=False)
    expect(pulse).to_have_text("Live")
    assert any("/v1/admin/overview" in url for url in asked_for)


def test_a_change_of_a_record_is_shown_leaf_by_leaf(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/sign-in")
    found = page.evaluate(
        """async () => {
          const { differences } = await import(`${location.origin}/ui/console/audit.js`);
          return differences(
            { a: 1, rollout: { state: "waiting", steps: [1, 2] }, gone: true },
            { a: 1, rollout: { state: "running", steps: [1, 3] }, came: null },
          ).map(each => each.path);
        }"""
    )
    assert found == ["rollout.state", "rollout.steps.1", "gone", "came"]
