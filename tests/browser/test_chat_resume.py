"""An answer goes on after a reload, a lost network and a killed server, without a gap or a repetition."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chatting import (
    BACK,
    LOST,
    address_of,
    answered,
    arrive,
    ask,
    conversation_of,
    heard,
    listen,
    ready,
    script_in,
    streamed,
)
from tests.browser.serving import Served, serving
from tests.browser.watch import wait_on
from tests.journeys.server import standing_still

STEP_S = 0.01
PAUSED = {"worker_step_timeout_s": 120.0, "sessions_reader_grace_s": 300.0}
"""The engine stands still while a test does what takes its time, so that the answer is not complete by then."""
WHOLE = " ".join(str(number) for number in range(1, 201))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that takes its time."""
    folder = tmp_path_factory.mktemp("resume")
    with serving(folder / "data", engine_echo_script=script_in(folder), engine_echo_step_s=STEP_S, **PAUSED) as server:
        yield server


def begun(page: Page, question: str = "Count to many", until: str = " 30 ") -> None:
    """Asks for a long answer, and waits until a part of it is there."""
    turn = ask(page, question)
    wait_on(page, lambda: until in streamed(turn), "a part of the answer")


def whole(page: Page) -> None:
    """Waits for the end, and checks every character of the answer."""
    turn = page.locator(".turn").last
    answered(turn)
    assert streamed(turn).strip() == WHOLE  # the text of a tab in the background is there and not painted


def test_a_reload_in_the_middle(page: Page, served: Served) -> None:
    arrive(page, served)
    begun(page, "Count on and on")
    with standing_still(served.server):
        page.reload()
        ready(page)
        before = streamed(page.locator(".turn").last)
        expect(page.locator("#stop")).to_be_visible()
    wait_on(page, lambda: len(streamed(page.locator(".turn").last)) > len(before) + 20, "the answer goes on")
    page.keyboard.press("Escape")
    expect(page.locator(".turn").last).to_contain_text("Stopped.")


def test_a_server_that_is_killed_and_started_again(page: Page, served: Served) -> None:
    arrive(page, served)
    listen(page)
    begun(page)
    served.kill()
    expect(page.locator("#connection")).to_have_text(LOST)
    before = streamed(page.locator(".turn").last)
    served.start_again()
    heard(page, BACK)
    assert streamed(page.locator(".turn").last).startswith(before)
    whole(page)
    expect(page.locator("#connection")).to_be_hidden()
    page.locator(".turn").last.get_by_role("button", name="Why was this slow?").click()
    expect(page.get_by_role("dialog")).to_contain_text("Failover: the server was restarted once while it had this")


def test_what_is_edited_stays_whatever_another_tab_asks(page: Page, served: Served) -> None:
    arrive(page, served)
    answered(ask(page, "Of both"))
    other = page.context.new_page()
    other.goto(address_of(page))
    ready(other)
    page.bring_to_front()
    page.get_by_role("button", name="Edit").click()
    page.keyboard.press("Control+a")
    page.keyboard.type("Mine")
    answered(ask(other, "Of the other tab"))
    expect(page.locator(".turn")).to_have_count(2)
    page.keyboard.type(" and more")  # the field has the focus still
    mine = page.get_by_role("textbox", name="Edit the question")
    expect(mine).to_have_value("Mine and more")
    other.get_by_role("button", name="Edit").first.click()
    other.get_by_role("textbox", name="Edit the question").fill("Theirs")
    other.keyboard.press("Enter")
    expect(page.get_by_label("Version 1 of 2")).to_be_visible()
    expect(mine).to_have_value("Mine and more")
    expect(mine).to_be_focused()
    answered(other.locator(".turn").last)
    mine.press("Enter")
    expect(page.get_by_label("Version 3 of 3")).to_be_visible()
    assert "user: Mine and more" in answered(page.locator(".turn").last)


def test_a_conversation_that_another_browser_erases(page: Page, served: Served) -> None:
    arrive(page, served)
    for is_running in (True, False):
        begun(page)
        conversation = conversation_of(page)
        if not is_running:
            whole(page)
        with served.server.client() as api:
            api.delete(f"/v1/conversations/{conversation}?branches=true").raise_for_status()
        page.fill("#message", "What now?")
        if not is_running:
            page.keyboard.press("Enter")
        expect(page.get_by_text("That conversation was erased elsewhere.").first).to_be_visible()
        expect(page.locator("#title")).to_have_text("New chat")
        expect(page.locator(".turn")).to_have_count(0)
        expect(page.locator(f"#list li[data-id='{conversation}']")).to_have_count(0)
        expect(page.locator("#message")).to_have_value("What now?")  # nothing typed is lost


def test_offline_and_back_and_a_second_tab(page: Page, served: Served) -> None:
    arrive(page, served)
    listen(page)
    begun(page)
    with standing_still(served.server):
        other = page.context.new_page()
        other.goto(address_of(page))
        ready(other)
        page.context.set_offline(True)
        expect(page.locator("#connection")).to_have_text(LOST)
    page.context.set_offline(False)
    heard(page, BACK)
    whole(page)
    whole(other)
    page.context.set_offline(True)
    unsent = ask(page, "Said without a network")
    expect(page.locator("#connection")).to_contain_text("Your message is kept here and sent as soon as it can be")
    page.context.set_offline(False)
    assert "Said without a network" in answered(unsent)
    expect(other.locator(".turn")).to_have_count(2)
    said = ask(other, "Said in the other tab")
    expect(page.locator(".turn")).to_have_count(3)
    answered(said)
    answered(page.locator(".turn").last)
    assert streamed(page.locator(".turn").last).split() == streamed(other.locator(".turn").last).split()
    other.get_by_role("button", name="Erase").click()
    other.get_by_role("dialog").get_by_role("button", name="Erase").click()
    expect(page.locator("#title")).to_have_text("New chat")
