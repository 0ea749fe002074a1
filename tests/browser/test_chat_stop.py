"""Stop before the first event of an answer: the page stops at once, and the server computes nothing more of it."""

from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.chatting import answered, arrive, ask, asked_and_answered, conversation_of, script_in, streamed
from tests.browser.conftest import NewPage
from tests.browser.serving import Served, serving
from tests.browser.watch import wait_on

STEP_S = 0.05
"""Ten seconds for the long answer, so that it runs when it is stopped."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that takes its time."""
    folder = tmp_path_factory.mktemp("stop")
    with serving(folder / "data", engine_echo_script=script_in(folder), engine_echo_step_s=STEP_S) as server:
        yield server


def statuses(page: Page, served: Served) -> list[str]:
    """How the server has the responses of the conversation that is shown."""
    with served.server.client() as api:
        found = api.get(f"/v1/conversations/{conversation_of(page)}/responses").json()["data"]
    return [each["status"] for each in found]


def lost_on_the_way_back(route: Route) -> None:
    """The server gets the question and begins; not a byte of its answer comes through."""
    asked = route.request
    with httpx.stream("POST", asked.url, headers=asked.all_headers(), content=asked.post_data_buffer) as answer:
        assert answer.status_code == 200


def lost_on_the_way_there(_: Route) -> None:
    """The question waits in the network."""


@pytest.mark.parametrize("lost", [lost_on_the_way_back, lost_on_the_way_there])
def test_an_answer_that_is_stopped_before_it_begins(page: Page, served: Served, lost: object) -> None:
    arrive(page, served)
    asked_and_answered(page, "Hello")
    page.route("**/v1/responses", lost, times=1)  # type: ignore[arg-type]
    turn = ask(page, "Count to many")
    if lost is lost_on_the_way_back:
        wait_on(page, lambda: statuses(page, served)[1:] == ["in_progress"], "the server computes it")
    page.get_by_role("button", name="Stop").click()
    expect(turn).to_contain_text("Stopped.")
    expect(page.locator("#send")).to_be_visible()
    wait_on(page, lambda: statuses(page, served) == ["completed", "cancelled"], "the server has stopped")
    expect(turn.get_by_role("button", name="Ask again")).to_be_visible()  # it has its real name
    assert "Count to many" not in answered(ask(page, "And now"))
    page.reload()
    expect(page.locator(".turn")).to_have_count(3)
    assert statuses(page, served) == ["completed", "cancelled", "completed"]


def test_an_answer_whose_question_is_edited_meanwhile_is_stopped(page: Page, served: Served) -> None:
    arrive(page, served)
    turn = ask(page, "Count to many")
    wait_on(page, lambda: " 3 " in streamed(turn), "it has begun")
    turn.get_by_role("button", name="Edit").click()
    page.get_by_role("textbox", name="Edit the question").fill("Only this")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Version 2 of 2")).to_be_visible()
    assert "Only this" in answered(page.locator(".turn"))
    wait_on(page, lambda: statuses(page, served) == ["cancelled", "completed"], "nothing runs unseen")
    expect(page.locator("#message")).to_be_focused()


def test_a_question_that_is_stopped_while_the_server_is_away_comes_back_into_its_field(
    page: Page, served: Served
) -> None:
    arrive(page, served)
    asked_and_answered(page, "Hello")
    page.context.set_offline(True)
    ask(page, "Said without a network")
    expect(page.locator("#connection")).to_contain_text("Your message is kept here")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#message")).to_have_value("Said without a network")
    expect(page.locator(".turn")).to_have_count(1)
    page.context.set_offline(False)
    assert statuses(page, served) == ["completed"]


def test_a_stopped_version_that_the_server_refuses_comes_back_though_another_one_is_shown(
    page: Page, served: Served
) -> None:
    arrive(page, served)
    turn = ask(page, "Hello")
    answered(turn)
    held: list[Route] = []
    page.route("**/v1/responses", lambda route: held.append(route))
    turn.get_by_role("button", name="Edit").click()
    page.get_by_role("textbox", name="Edit the question").fill("Hello again")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Stop").click()
    wait_on(page, lambda: len(held) == 2, "the page asks for the id of what it stops")
    page.get_by_role("button", name="Earlier version").click()
    held[1].fulfill(status=400, json={"error": {"message": "It was refused.", "code": "refused"}})
    expect(page.get_by_text("The answer could not be stopped: It was refused.")).to_be_visible()
    expect(page.locator("#message")).to_have_value("Hello again")


def test_nothing_moves_for_whoever_wants_no_motion(new_page: NewPage, served: Served) -> None:
    """An endless animation of next to no time would flicker in every frame."""
    page = new_page(reduced_motion="reduce")
    arrive(page, served)
    turn = ask(page, "Count to many")
    wait_on(page, lambda: " 3 " in streamed(turn), "the caret is behind the text")
    lasting = page.evaluate(
        "document.getAnimations().filter(each => each.effect.getComputedTiming().iterations > 1).length"
    )
    assert lasting == 0
    page.keyboard.press("Escape")
    expect(turn).to_contain_text("Stopped.")
