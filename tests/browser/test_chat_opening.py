"""A conversation that takes its time to come: what is asked meanwhile goes out by itself, once, and is never lost."""

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.chatting import answered, arrive, ask, asked_and_answered, conversation_of, ready, script_in
from tests.browser.conftest import NewPage
from tests.browser.serving import Served, serving
from tests.browser.watch import wait_on

RESPONSES = "**/v1/conversations/*/responses?*"
WAITS = "The conversation is being opened. Your question goes out as soon as it is."


class Held:
    """Requests to one address that go on when they are told to."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.address = address
        self.routes: list[Route] = []
        self.holds = True
        page.route(address, self._hold)

    def _hold(self, route: Route) -> None:
        if self.holds:
            self.routes.append(route)
        else:
            route.continue_()

    def wait(self) -> None:
        """Until one is held."""
        wait_on(self.page, lambda: bool(self.routes), f"{self.address} is asked for")

    def go_on(self) -> None:
        """Lets the one that is held and those to come through."""
        self.wait()
        self.holds = False
        for route in self.routes:
            route.continue_()
        self.routes.clear()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with written answers."""
    folder = tmp_path_factory.mktemp("opening")
    with serving(folder / "data", engine_echo_script=script_in(folder)) as server:
        yield server


def asked(served: Served, conversation: str) -> list[str]:
    """The questions of a conversation, as the server has them."""
    with served.server.client() as api:
        found = api.get(f"/v1/conversations/{conversation}/responses").json()["data"]
    return [each["input"][0]["content"][0]["text"] for each in found]


def titles(served: Served) -> list[str]:
    """The titles of all conversations, as the server has them."""
    with served.server.client() as api:
        return [each["metadata"]["title"] for each in api.get("/v1/conversations?limit=100").json()["data"]]


def sent_early(page: Page, text: str) -> None:
    """Types a question and presses Enter, whatever the page is doing."""
    page.locator("#message").fill(text)
    page.locator("#message").press("Enter")


def test_a_question_goes_out_as_soon_as_its_conversation_is_open(page: Page, served: Served) -> None:
    arrive(page, served)
    answered(ask(page, "The first one"))
    conversation = conversation_of(page)
    held = Held(page, RESPONSES)
    page.reload()
    held.wait()
    sent_early(page, "The second one")
    expect(page.locator("#message")).to_have_value("")
    expect(page.locator("#thread .turn")).to_have_count(1)
    expect(page.locator(".asked")).to_have_text("The second one")
    expect(page.locator(".turn-state")).to_have_text(WAITS)
    expect(page.locator("#stop")).to_be_visible()
    expect(page.locator(".toasts .notice")).to_have_count(0)
    sent_early(page, "What is typed meanwhile")  # stays in the field, as while an answer comes
    held.go_on()
    expect(page.locator(".asked")).to_have_text(["The first one", "The second one"])
    assert "The second one" in answered(page.locator(".turn").last)
    expect(page.locator("#message")).to_have_value("What is typed meanwhile")
    assert asked(served, conversation) == ["The first one", "The second one"]
    page.locator("#message").press("Enter")
    expect(page.locator(".asked")).to_have_text(["The first one", "The second one", "What is typed meanwhile"])
    answered(page.locator(".turn").last)
    assert asked(served, conversation) == ["The first one", "The second one", "What is typed meanwhile"]
    page.reload()
    ready(page)
    expect(page.locator("#message")).to_have_value("")


def test_a_question_that_waits_is_taken_back_by_escape_and_kept_through_a_reload(page: Page, served: Served) -> None:
    arrive(page, served)
    answered(ask(page, "Before"))
    conversation = conversation_of(page)
    held = Held(page, RESPONSES)
    page.reload()
    held.wait()
    sent_early(page, "Not yet")
    page.locator("#message").fill("And more")
    page.keyboard.press("Escape")
    expect(page.locator("#message")).to_have_value("Not yet\n\nAnd more")
    expect(page.locator("#send")).to_be_visible()
    page.locator("#message").press("Enter")
    expect(page.locator(".turn-state")).to_have_text(WAITS)
    held.routes.clear()
    page.reload()
    expect(page.locator("#message")).to_have_value("Not yet\n\nAnd more")
    held.go_on()
    ready(page)
    assert asked(served, conversation) == ["Before"]


def test_a_question_that_waits_stays_with_its_conversation_when_somebody_goes_elsewhere(
    page: Page, served: Served
) -> None:
    arrive(page, served)
    answered(ask(page, "Here it began"))
    conversation = conversation_of(page)
    held = Held(page, RESPONSES)
    page.reload()
    held.wait()
    sent_early(page, "For later")
    page.get_by_role("button", name="New chat").click()
    expect(page.locator("#message")).to_have_value("")
    assert "Elsewhere" in asked_and_answered(page, "Elsewhere")
    held.go_on()
    page.locator(f"#list li[data-id='{conversation}'] a").click()
    expect(page.locator("#message")).to_have_value("For later")
    ready(page)
    assert asked(served, conversation) == ["Here it began"]


@pytest.mark.parametrize("status", [400, 500])
def test_a_question_whose_conversation_cannot_be_opened_is_in_the_field_again(
    page: Page, served: Served, status: int
) -> None:
    arrive(page, served)
    answered(ask(page, "Readable"))
    conversation = conversation_of(page)
    held = Held(page, RESPONSES)
    page.reload()
    held.wait()
    sent_early(page, "Kept")
    expect(page.locator(".turn-state")).to_have_text(WAITS)
    held.routes.pop().fulfill(status=status, json={"error": {"message": "Not now.", "code": "no"}})
    expect(page.get_by_role("alert")).to_have_text("Not now.")
    expect(page.locator("#message")).to_have_value("Kept")
    expect(page.locator(".turn")).to_have_count(0)
    assert conversation in page.url
    if status == 400:
        page.locator("#message").press("Enter")  # opens it once more, and then goes there
    held.go_on()
    if status == 500:  # it is tried again by itself, and nothing is sent that was taken back
        ready(page)
        expect(page.locator(".asked")).to_have_text("Readable")
        expect(page.locator("#message")).to_have_value("Kept")
        page.locator("#message").press("Enter")
    expect(page.locator(".asked")).to_have_text(["Readable", "Kept"])
    answered(page.locator(".turn").last)
    assert asked(served, conversation) == ["Readable", "Kept"]


def test_a_question_for_a_conversation_that_was_erased_is_in_the_field_of_a_new_chat(
    page: Page, served: Served
) -> None:
    arrive(page, served)
    answered(ask(page, "Soon gone"))
    conversation = conversation_of(page)
    held = Held(page, RESPONSES)
    page.reload()
    held.wait()
    sent_early(page, "Where to?")
    with served.server.client() as api:
        api.delete(f"/v1/conversations/{conversation}?branches=true").raise_for_status()
    held.go_on()
    expect(page.get_by_text("That conversation is not there any more.")).to_be_visible()
    expect(page.locator("#message")).to_have_value("Where to?")
    expect(page.locator("#title")).to_have_text("New chat")
    page.locator("#message").press("Enter")
    assert "Where to?" in answered(page.locator(".turn"))


def test_a_question_in_a_new_chat_waits_until_the_models_are_listed(page: Page, served: Served) -> None:
    arrive(page, served)
    held = Held(page, "**/v1/models")
    page.reload()
    held.wait()
    sent_early(page, "Is anybody there?")
    expect(page.locator(".turn-state")).to_have_text(
        "Your question goes out as soon as the server has listed its models."
    )
    held.go_on()
    assert "Is anybody there?" in answered(page.locator(".turn"))
    assert asked(served, conversation_of(page)) == ["Is anybody there?"]


def test_a_question_before_anybody_knows_who_is_signed_in_goes_where_the_address_leads(
    page: Page, served: Served
) -> None:
    arrive(page, served)
    answered(ask(page, "Of old"))
    conversation = conversation_of(page)
    page.locator("#message").fill("Typed before")
    held = Held(page, "**/ui/session")
    page.reload()
    held.wait()
    sent_early(page, "As early as can be")
    held.go_on()
    expect(page.locator(".asked")).to_have_text(["Of old", "As early as can be"])
    answered(page.locator(".turn").last)
    expect(page.locator("#message")).to_have_value("Typed before")  # what was kept is there too
    assert asked(served, conversation) == ["Of old", "As early as can be"]


def test_a_question_waits_for_the_conversation_that_the_back_button_opens(page: Page, served: Served) -> None:
    arrive(page, served)
    answered(ask(page, "One"))
    one = conversation_of(page)
    page.get_by_role("button", name="New chat").click()
    answered(ask(page, "Two"))
    two = conversation_of(page)
    page.locator("#message").fill("For two")
    held = Held(page, f"**/v1/conversations/{one}")
    page.go_back()  # to the new chat
    page.go_back()
    held.wait()
    sent_early(page, "For one")
    held.go_on()
    expect(page.locator(".asked")).to_have_text(["One", "For one"])
    answered(page.locator(".turn").last)
    page.locator(f"#list li[data-id='{two}'] a").click()
    expect(page.locator("#message")).to_have_value("For two")
    assert (asked(served, one), asked(served, two)) == (["One", "For one"], ["Two"])


def test_an_answer_stays_that_is_younger_than_what_the_server_was_asked(new_page: NewPage, served: Served) -> None:
    """A reading of the conversation that comes late shows nothing that is older than what is shown."""
    page = new_page()
    arrive(page, served)
    answered(ask(page, "Known"))
    stale: list[Route] = []
    page.route(RESPONSES, lambda route: stale.append(route))
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # as somebody who looks at the page again
    wait_on(page, lambda: bool(stale), "the page looks")
    [route] = stale
    before = route.fetch()
    answered(ask(page, "New"))
    route.fulfill(response=before)
    page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))")
    expect(page.locator(".asked")).to_have_text(["Known", "New"])


@pytest.mark.parametrize("after_ms", [0, 40, 80, 120, 160])
def test_a_reload_right_after_the_first_question_leads_to_its_answer(page: Page, served: Served, after_ms: int) -> None:
    arrive(page, served)
    question = f"Asked {after_ms} ms before a reload"
    sent_early(page, question)
    page.wait_for_timeout(after_ms)
    page.reload()
    expect(page.locator(".asked")).to_have_text(question)
    assert question in answered(page.locator(".turn"))
    expect(page.locator("#message")).to_have_value("")
    assert asked(served, conversation_of(page)) == [question]
    assert titles(served).count(question) == 1


def lost_on_the_way_there(_: Route) -> None:
    """The question waits in the network."""


def lost_on_the_way_back(route: Route) -> None:
    """The server has the question; not a byte of its answer comes through."""
    sent = route.request
    with httpx.stream("POST", sent.url, headers=sent.all_headers(), content=sent.post_data_buffer) as answer:
        assert answer.status_code == 200


@pytest.mark.parametrize("lost", [lost_on_the_way_there, lost_on_the_way_back])
def test_a_question_without_an_answer_is_asked_once_though_the_page_is_loaded_again(
    page: Page, served: Served, lost: Callable[[Route], None]
) -> None:
    question = f"Was {lost.__name__}"
    arrive(page, served)
    page.get_by_role("button", name="Settings", exact=True).click()
    page.get_by_label("System text").fill("Be brief.")
    page.get_by_role("button", name="Close the settings").click()
    page.route("**/v1/responses", lost, times=1)
    ask(page, question)
    page.locator("#message").fill("For later")
    page.reload()
    expect(page.locator(".asked")).to_have_text(question)
    assert question in answered(page.locator(".turn"))
    expect(page.locator("#message")).to_have_value("For later")
    expect(page.get_by_label("System text")).to_have_value("Be brief.")
    assert asked(served, conversation_of(page)) == [question]
    assert titles(served).count(question) == 1
    page.get_by_role("button", name="New chat").click()
    page.reload()
    ready(page)
    expect(page.locator(".turn")).to_have_count(0)  # it has its own address now


def test_a_question_that_is_refused_after_a_reload_is_in_the_field_again(page: Page, served: Served) -> None:
    arrive(page, served)
    held = Held(page, "**/v1/responses")
    ask(page, "Not as it is")
    held.wait()
    held.routes.clear()
    page.reload()
    held.wait()
    expect(page.locator("#message")).to_have_value("")
    held.routes.pop().fulfill(status=400, json={"error": {"message": "Not now.", "code": "no"}})
    expect(page.locator(".turn-state")).to_have_text("Not now. Your question is in the field below again.")
    expect(page.locator("#message")).to_have_value("Not as it is")
    page.reload()
    ready(page)
    expect(page.locator(".turn")).to_have_count(0)
    expect(page.locator("#message")).to_have_value("Not as it is")
    assert not held.routes


_AGED = """() => {
  const kept = JSON.parse(sessionStorage.getItem("axon.chat.asked"));
  sessionStorage.setItem("axon.chat.asked", JSON.stringify({ ...kept, asked_ms: kept.asked_ms - 3_600_000 }));
}"""


def test_a_question_of_long_ago_is_in_the_field_and_not_asked_again(page: Page, served: Served, tmp_path: Path) -> None:
    arrive(page, served)
    held = Held(page, "**/v1/responses")
    note = tmp_path / "note.txt"
    note.write_text("as it was then")
    page.set_input_files("#file", note)
    expect(page.locator("#files li")).to_have_count(1)
    ask(page, "An hour ago")
    held.wait()
    held.routes.clear()
    page.evaluate(_AGED)
    page.reload()
    ready(page)
    expect(page.locator("#message")).to_have_value("An hour ago")
    expect(page.locator("#files li")).to_contain_text("note.txt")
    expect(page.locator(".turn")).to_have_count(0)
    assert not held.routes


def test_a_question_on_its_way_is_forgotten_with_who_signs_out(page: Page, served: Served) -> None:
    arrive(page, served)
    held = Held(page, "**/v1/responses")
    ask(page, "Nobody else's")
    held.wait()
    kept = "JSON.stringify({ ...sessionStorage }).includes('axon.chat.asked')"
    assert page.evaluate(kept)
    other = page.context.new_page()
    arrive(other, served)
    other.get_by_role("button", name="Sign out").click()
    other.wait_for_url("**/sign-in")
    wait_on(page, lambda: not page.evaluate(kept), "it is forgotten")


def test_a_question_goes_out_though_the_browser_can_keep_nothing_more(page: Page, served: Served) -> None:
    arrive(page, served)
    page.evaluate("""() => {
      for (let size = 5_000_000; size; size = Math.floor(size / 2)) {
        try { sessionStorage.setItem(`full ${size}`, "x".repeat(size)); } catch { /* no room for so much */ }
      }
    }""")
    assert "Nevertheless" in asked_and_answered(page, "Nevertheless")
