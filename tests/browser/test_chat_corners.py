"""The chat where few people go: many tabs, the way back from a dialogue, long numbers, other scripts than Latin."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import FilePayload, Page, Route, expect

from tests.browser.chatting import (
    address_of,
    answered,
    arrive,
    ask,
    asked_and_answered,
    conversation_of,
    streamed,
)
from tests.browser.serving import Served, serving
from tests.browser.visiting import hide
from tests.browser.watch import page_of, wait_on

STEP_S = 0.02
CONNECTIONS = 6
"""So many to one server does a browser have, for all tabs together."""
COUNTED, ENDLESS = (" ".join(str(number) for number in range(1, last)) for last in (201, 2_001))
PRECISE = '{"b": [], "1": 12345678901234567890, "price": 1.10, "of": {"big": 1e400, "text": "a \\" {[,:"}}'
LAID_OUT = (
    '{\n  "b": [],\n  "1": 12345678901234567890,\n  "price": 1.10,\n'
    '  "of": {\n    "big": 1e400,\n    "text": "a \\" {[,:"\n  }\n}'
)
ARABIC = "مرحبا بالعالم و English words 123."
CALL = '<tool_call>\n{"name": "look", "arguments": {"id": %s}}\n</tool_call>'
SCRIPT = [
    {"if": "Count\\s+assistant:$", "say": COUNTED},
    {"if": "Count on\\s+assistant:$", "say": ENDLESS},
    {"if": "Look twice\\s+assistant:$", "say": f"{CALL % '12345678901234567890'}\n{CALL % '2'}"},
    {"if": "In Arabic\\s+assistant:$", "say": f"{ARABIC}\n\nAnd in English."},
]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with written answers, which take their time."""
    folder = tmp_path_factory.mktemp("corners")
    script = folder / "script.json"
    Path(script).write_text(json.dumps(SCRIPT))
    with serving(folder / "data", engine_echo_script=script, engine_echo_step_s=STEP_S) as server:
        yield server


def test_tabs_that_nobody_sees_leave_connections_to_the_others(page: Page, served: Served) -> None:
    arrive(page, served)
    turn = ask(page, "Count on")
    wait_on(page, lambda: " 3 " in streamed(turn), "it has begun")
    address = address_of(page)
    unseen = [page]
    while len(unseen) < CONNECTIONS:
        hide(unseen[-1], hidden=True)
        other = page_of(page.context)
        other.goto(address)
        expect(other.locator("#stop")).to_be_visible()
        unseen.append(other)
    hide(unseen[-1], hidden=True)
    last = page_of(page.context)
    last.goto(address)
    last.get_by_role("button", name="Stop").click()
    expect(last.locator(".turn")).to_contain_text("Stopped.")
    assert len(streamed(last.locator(".turn"))) < len(ENDLESS)
    expect(page.locator("#stop")).to_be_visible()  # it does not know yet
    hide(page, hidden=False)
    expect(page.locator(".turn")).to_contain_text("Stopped.")
    expect(page.locator("#connection")).to_be_hidden()


def test_an_answer_goes_on_when_its_tab_is_seen_again(page: Page, served: Served) -> None:
    arrive(page, served)
    turn = ask(page, "Count")
    wait_on(page, lambda: " 3 " in streamed(turn), "it has begun")
    with page.expect_event("requestfailed", lambda request: "/v1/responses" in request.url):
        hide(page, hidden=True)
    before = streamed(turn)
    hide(page, hidden=False)
    expect(page.locator("#stop")).to_be_visible()
    assert answered(turn).strip() == COUNTED
    assert COUNTED.startswith(before.strip())
    expect(page.locator("#connection")).to_be_hidden()


def test_the_way_back_leaves_a_dialogue(page: Page, served: Served) -> None:
    arrive(page, served)
    asked_and_answered(page, "The one")
    one = conversation_of(page)
    page.get_by_role("button", name="New chat").click()
    asked_and_answered(page, "The other")
    page.locator(f"#list li[data-id='{one}'] a").click()
    for button in ("Rename", "Erase", "Export"):
        expect(page.locator("#title")).to_have_text("The one")
        page.get_by_role("button", name=button).click()
        expect(page.get_by_role("dialog")).to_be_visible()
        page.go_back()
        expect(page.locator("#title")).to_have_text("The other")
        expect(page.get_by_role("dialog")).to_have_count(0)
        page.go_forward()


def test_files_stay_with_the_chat_that_they_were_attached_in(page: Page, served: Served, tmp_path: Path) -> None:
    arrive(page, served)
    asked_and_answered(page, "The one")
    one, files = conversation_of(page), page.locator("#files li")

    def attach(name: str) -> None:
        (tmp_path / name).write_text(name)
        page.set_input_files("#file", tmp_path / name)
        expect(files).to_have_text([f"{name} (1 kB)×"])

    def open_one() -> None:
        page.locator(f"#list li[data-id='{one}'] a").click()
        expect(page.locator("#title")).to_have_text("The one")

    attach("one.txt")
    page.get_by_role("button", name="New chat").click()
    expect(files).to_have_count(0)
    attach("new.txt")
    open_one()
    expect(files).to_have_text(["one.txt (1 kB)×"])
    page.go_back()
    expect(files).to_have_text(["new.txt (1 kB)×"])
    turn = ask(page, "With a file")
    answered(turn)
    expect(turn.locator("details.file summary")).to_have_text("📄 new.txt")
    page.get_by_role("button", name="New chat").click()
    expect(files).to_have_count(0)

    other = page.context.new_page()
    arrive(other, served)
    other.get_by_role("button", name="Sign out").click()
    other.wait_for_url("**/sign-in")
    arrive(other, served)
    open_one()
    expect(files).to_have_count(0)

    attach("again.txt")
    page.get_by_role("button", name="Erase").click()
    page.get_by_role("dialog").get_by_role("button", name="Erase").click()
    expect(page.locator("#title")).to_have_text("New chat")
    expect(files).to_have_count(0)


def test_numbers_of_calls_and_results_are_shown_to_the_last_digit(page: Page, served: Served) -> None:
    arrive(page, served)
    page.get_by_role("button", name="Settings").click()
    page.get_by_label("Tools").fill('{"name": "look", "parameters": {"type": "object"}}')
    page.get_by_role("button", name="Close the settings").click()
    called = ask(page, "Look twice")
    answered(called)
    expect(called.locator(".call pre").first).to_have_text('{\n  "id": 12345678901234567890\n}')
    results = called.get_by_label("Result of look")
    results.first.fill(PRECISE)
    called.get_by_role("button", name="Send result").first.click()
    expect(called.locator(".call").first.get_by_role("status")).to_contain_text("once each call has its result")
    deep = "[" * 5_000 + "]" * 5_000
    results.last.fill(deep)
    called.get_by_role("button", name="Send result").last.click()
    expect(page.locator(".turn")).to_have_count(2)
    assert page.locator(".asked pre").all_text_contents() == [LAID_OUT, deep]


def test_numbers_of_schemas_and_tools_are_sent_and_shown_again_to_the_last_digit(page: Page, served: Served) -> None:
    schema = '{\n  "type": "integer",\n  "minimum": 123456789012345678\n}'
    tool = '{"name": "look", "parameters": {"type": "object", "maxProperties": 9007199254740993}}'
    arrive(page, served)
    page.get_by_role("button", name="Settings").click()
    page.get_by_label("JSON schema").fill(json.dumps(json.loads(schema)))
    page.get_by_label("Tools").fill(tool)
    page.get_by_label("Seed").click()
    expect(page.get_by_label("JSON schema")).to_have_value(schema)
    page.get_by_role("button", name="Close the settings").click()
    with page.expect_request("**/v1/responses") as found:
        turn = ask(page, "How many?")
    asked = json.loads(found.value.post_data or "")
    assert asked["text"]["format"]["schema"] == json.loads(schema)
    assert asked["tools"] == [{"type": "function", **json.loads(tool)}]
    answered(turn)
    page.reload()
    expect(page.get_by_label("JSON schema")).to_have_value(schema)
    expect(page.get_by_label("Tools")).to_have_value(re.compile('"maxProperties": 9007199254740993'))


def test_a_refused_question_comes_back_though_what_was_typed_meanwhile_has_its_words(
    page: Page, served: Served
) -> None:
    arrive(page, served)
    held: list[Route] = []
    page.route("**/v1/responses", lambda route: held.append(route), times=1)
    turn = ask(page, "no")
    page.locator("#message").fill("What do you know?")
    held.pop().fulfill(status=400, json={"error": {"message": "Not now.", "code": "no"}})
    expect(turn.locator(".turn-state")).to_contain_text("in the field below again")
    expect(page.locator("#message")).to_have_value("no\n\nWhat do you know?")


def test_each_paragraph_runs_in_the_direction_of_its_own_letters(page: Page, served: Served) -> None:
    arrive(page, served)
    turn = ask(page, "In Arabic")
    answered(turn)
    paragraphs = turn.locator(".markdown p")
    expect(paragraphs).to_have_count(2)
    middle = page.locator("#thread").evaluate("each => each.getBoundingClientRect().x + each.clientWidth / 2")
    starts = [paragraph.evaluate(_LEFT) for paragraph in paragraphs.all()]
    assert starts[0] > middle > starts[1], "Arabic begins at the right, so that a short line has nothing at the left"
    page.locator("#message").fill(ARABIC)
    assert page.locator("#message").evaluate("field => field.matches(':dir(rtl)')")


_LEFT = """each => {
  const range = document.createRange();
  range.selectNodeContents(each);
  return range.getBoundingClientRect().x;
}"""


def test_a_conversation_that_is_renamed_or_erased_late_leaves_alone_the_one_that_is_shown(
    page: Page, served: Served
) -> None:
    arrive(page, served)
    asked_and_answered(page, "Apples")
    page.get_by_role("button", name="New chat").click()
    asked_and_answered(page, "Pears")
    late: list[Route] = []
    page.route(f"**/v1/conversations/{conversation_of(page)}*", lambda route: hold(route, late))
    page.get_by_role("button", name="Rename").click()
    page.get_by_label("Title", exact=True).fill("Quinces")
    page.keyboard.press("Enter")
    wait_on(page, lambda: bool(late), "the new title is on its way")
    page.locator("#list a", has_text="Apples").click()
    expect(page.locator("#title")).to_have_text("Apples")
    late.pop().continue_()
    page.locator("#list a", has_text="Quinces").wait_for()
    expect(page.locator("#title")).to_have_text("Apples")

    page.locator("#list a", has_text="Quinces").click()
    expect(page.locator("#title")).to_have_text("Quinces")
    page.get_by_role("button", name="Erase").click()
    page.get_by_role("dialog").get_by_role("button", name="Erase").click()
    wait_on(page, lambda: bool(late), "the erasure is on its way")
    page.locator("#list a", has_text="Apples").click()
    expect(page.locator("#title")).to_have_text("Apples")
    late.pop().continue_()
    expect(page.locator("#list a", has_text="Quinces")).to_have_count(0)
    expect(page.locator("#title")).to_have_text("Apples")


def hold(route: Route, late: list[Route]) -> None:
    """Keeps a change back, and lets a look pass."""
    if route.request.method == "GET":
        route.continue_()
    else:
        late.append(route)


def test_files_that_go_with_a_message_are_shown_though_one_is_too_many(page: Page, served: Served) -> None:
    arrive(page, served)
    files: list[FilePayload] = [
        {"name": f"{number}.txt", "mimeType": "text/plain", "buffer": b"text"} for number in range(9)
    ]
    page.locator("#file").set_input_files(files)
    expect(page.get_by_text("At most 8 files go with a message.")).to_be_visible()
    expect(page.locator("#files li")).to_have_count(8)
