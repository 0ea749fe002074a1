"""An answer goes on after a reload, a lost network and a killed server, without a gap or a repetition."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chatting import LOST, answered, arrive, ask, ready, script_in, streamed
from tests.browser.serving import Served, serving
from tests.browser.watch import wait_on

STEP_S = 0.01
WHOLE = " ".join(str(number) for number in range(1, 201))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that takes its time."""
    folder = tmp_path_factory.mktemp("resume")
    with serving(folder / "data", engine_echo_script=script_in(folder), engine_echo_step_s=STEP_S) as server:
        yield server


def begun(page: Page, until: str = " 30 ") -> None:
    """Asks for the long answer, and waits until a part of it is there."""
    turn = ask(page, "Count to many")
    wait_on(page, lambda: until in streamed(turn), "a part of the answer")


def whole(page: Page) -> None:
    """Waits for the end, and checks every character of the answer."""
    turn = page.locator(".turn").last
    answered(turn)
    assert streamed(turn).strip() == WHOLE  # the text of a tab in the background is there and not painted


def test_a_reload_in_the_middle(page: Page, served: Served) -> None:
    arrive(page, served)
    begun(page)
    page.reload()
    ready(page)
    wait_on(page, lambda: " 40 " in streamed(page.locator(".turn").last), "the answer goes on")
    expect(page.locator("#stop")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".turn").last).to_contain_text("Stopped.")


def test_a_server_that_is_killed_and_started_again(page: Page, served: Served) -> None:
    arrive(page, served)
    begun(page)
    served.kill()
    expect(page.locator("#connection")).to_have_text(LOST)
    before = streamed(page.locator(".turn").last)
    served.start_again()
    expect(page.locator("#connection")).to_have_text("Connected again. Nothing was lost.")
    assert streamed(page.locator(".turn").last).startswith(before)
    whole(page)
    expect(page.locator("#connection")).to_be_hidden()


def test_offline_and_back_and_a_second_tab(page: Page, served: Served) -> None:
    arrive(page, served)
    begun(page)
    other = page.context.new_page()
    other.goto(page.url)
    ready(other)
    page.context.set_offline(True)
    expect(page.locator("#connection")).to_have_text(LOST)
    page.context.set_offline(False)
    expect(page.locator("#connection")).to_have_text("Connected again. Nothing was lost.")
    whole(page)
    whole(other)
    page.context.set_offline(True)
    unsent = ask(page, "Said without a network")
    expect(page.locator("#connection")).to_contain_text("Your message is kept here and sent as soon as it can be")
    page.context.set_offline(False)
    assert "Said without a network" in answered(unsent)
    expect(other.locator(".turn")).to_have_count(2)
    ask(other, "Said in the other tab")
    expect(page.locator(".turn")).to_have_count(3)
    answered(other.locator(".turn").last)
    answered(page.locator(".turn").last)
    assert streamed(page.locator(".turn").last).split() == streamed(other.locator(".turn").last).split()
    other.get_by_role("button", name="Erase").click()
    other.get_by_role("dialog").get_by_role("button", name="Erase").click()
    expect(page.locator("#title")).to_have_text("New chat")
