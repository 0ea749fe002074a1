"""The chat page, as people use it from their first minute on."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.chatting import (
    address_of,
    answered,
    arrive,
    ask,
    asked_and_answered,
    conversation_of,
    ready,
    script_in,
    streamed,
)
from tests.browser.serving import Served, serving
from tests.browser.watch import wait_on

STEP_S = 0.005
_LISTEN = """() => {
  window.announced = [];
  const place = document.getElementById("announce");
  new MutationObserver(() => window.announced.push(place.textContent)).observe(place, { childList: true });
}"""
"""As a screen reader does."""
_TYPE_ON = """() => {
  const field = document.getElementById("message");
  field.focus();
  field.form.requestSubmit();
  field.dispatchEvent(new KeyboardEvent("keydown", { key: "n", bubbles: true }));
  document.execCommand("insertText", false, "n");
}"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with written answers and time between its tokens."""
    folder = tmp_path_factory.mktemp("chat")
    with serving(folder / "data", engine_echo_script=script_in(folder), engine_echo_step_s=STEP_S) as server:
        yield server


def test_the_first_chat_begins_with_the_banners_link(page: Page, served: Served) -> None:
    served.kill()
    served.start_again()  # a code is good for 60 s alone
    link = next(word for word in served.server.screen.split() if "#code=" in word)
    page.goto(link)
    ready(page)
    assert "code=" not in page.url
    expect(page.get_by_role("heading", name="What would you like to know?")).to_be_visible()
    for suggestion in page.locator(".choices button").all():
        suggestion.click()
        expect(page.locator("#message")).to_have_value(suggestion.inner_text())  # and not the one before it
    said = asked_and_answered(page, "Good morning")
    assert "Good morning" in said
    expect(page.locator("#title")).to_have_text("Good morning")
    expect(page.locator("#list a[aria-current]")).to_contain_text("Good morning")
    assert page.evaluate("JSON.stringify(localStorage) + document.cookie").find("axk_") < 0


def test_the_first_question_is_one_request_and_begins_its_conversation(page: Page, served: Served) -> None:
    arrive(page, served)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(f"{request.method} {urlsplit(request.url).path}"))
    page.evaluate(_LISTEN)
    turn = ask(page, "Only one request")
    assert "Only one request" in answered(turn)
    asked = [each for each in asked if each != "GET /v1/models"]  # their state may be asked for at any time
    assert asked[0] == "POST /v1/responses"
    assert not [each for each in asked if each.startswith(("POST /v1/conversations", "GET /v1/conversations"))]
    expect(page.locator("#list a[aria-current]")).to_contain_text("Only one request")
    expect(page.locator("#message")).to_have_value("")
    expect(page.locator("#announce")).to_have_attribute("aria-live", "polite")
    assert page.evaluate("window.announced")[-1:] == ["The answer is complete."]
    conversation = conversation_of(page)
    assert "user: Only one request" in asked_and_answered(page, "And one more")
    assert conversation_of(page) == conversation


def test_a_question_is_shown_before_its_answer_and_what_is_typed_meanwhile_stays(page: Page, served: Served) -> None:
    arrive(page, served)
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/v1/responses", hold)
    page.fill("#message", "Is anybody there?")
    page.evaluate(_TYPE_ON)  # in the same task: the question is not shown yet
    expect(page.locator(".turn .asked")).to_have_text("Is anybody there?")
    expect(page.locator(".turn-state")).to_have_text("Waiting for the first word…")
    expect(page.locator("#message")).to_have_value("n")
    expect(page.locator("#stop")).to_be_visible()
    wait_on(page, lambda: bool(held), "the request")
    held[0].fulfill(status=400, json={"error": {"message": "Not this one.", "code": "no"}})
    expect(page.locator(".turn-state")).to_have_text("Not this one. Your question is in the field below again.")
    expect(page.locator("#message")).to_have_value("Is anybody there?\n\nn")  # before what was typed meanwhile
    assert "c=" not in page.url  # nothing was begun
    page.unroute("**/v1/responses")
    page.fill("#message", "")
    page.get_by_role("button", name="Take back").click()
    expect(page.locator("#message")).to_have_value("Is anybody there?")
    page.keyboard.press("Enter")
    assert "Is anybody there?" in answered(page.locator(".turn"))
    conversation_of(page)


def test_an_answer_is_shown_as_it_is_meant_and_nothing_in_it_runs(page: Page, served: Served) -> None:
    arrive(page, served)
    turn = ask(page, "Show me Markdown")
    answered(turn)
    expect(turn.locator(".markdown table td.right")).to_have_text("2")
    expect(turn.locator("pre.code .nb")).to_have_text("print")
    expect(turn.locator("math msup")).to_be_visible()
    letter, index = (turn.locator(f"math msub > :nth-child({number})").bounding_box() for number in (1, 2))
    assert letter is not None
    assert index is not None
    assert index["y"] + index["height"] >= letter["y"] + letter["height"] + 2, "below the line"
    expect(turn).to_contain_text("<img src=x onerror=alert(1)>")
    assert page.title() == "Show me Markdown · Axon"
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    turn.get_by_role("button", name="Copy the python code").click()
    assert page.evaluate("navigator.clipboard.readText()") == "print('x < y')\n"
    turn.get_by_role("button", name="Why was this slow?").click()
    dialog = page.get_by_role("dialog")
    for word in ("Queue", "Prefill", "Decode", "Failover", "found in the cache", "Billed"):
        expect(dialog).to_contain_text(word)
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def test_stop_edit_and_branches(page: Page, served: Served) -> None:
    arrive(page, served)
    first = ask(page, "Hello there")
    answered(first)
    counted = ask(page, "Count on and on")
    expect(page.locator("#announce")).to_have_text("The answer begins.")
    wait_on(page, lambda: " 20 " in streamed(counted), "some numbers")
    page.keyboard.press("Escape")
    expect(counted).to_contain_text("Stopped. The model will not remember this question")
    assert "1500" not in streamed(counted)

    third = ask(page, "Then this")
    assert "Count on" not in answered(third)  # the prompt, which the echo repeats, is without it
    third.get_by_role("button", name="Edit").click()
    area = third.get_by_role("textbox", name="Edit the question")
    area.fill("Then that")
    area.press("Enter")
    expect(page.locator(".turn").last.locator(".asked")).to_have_text("Then that")
    assert "user: Then that" in answered(page.locator(".turn").last)
    expect(page.get_by_label("Version 2 of 2")).to_be_visible()

    onward = ask(page, "And on")
    assert "user: Then that" in answered(onward)
    page.get_by_role("button", name="Earlier version").click()
    expect(page.locator(".turn").last.locator(".asked")).to_have_text("Then this")
    expect(page.get_by_role("button", name="Later version")).to_be_focused()
    page.locator(".turn").last.get_by_role("button", name="Edit").click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".turn").last.get_by_role("button", name="Edit")).to_be_focused()

    page.locator(".turn").first.get_by_role("button", name="Ask again").click()
    expect(page.locator(".turn")).to_have_count(1)
    answered(page.locator(".turn").first)
    assert "user: Hello there" in asked_and_answered(page, "A second start")
    page.get_by_role("button", name="Earlier version").click()
    expect(page.locator(".turn")).to_have_count(3)
    page.reload()  # the newest version is shown; all are there
    expect(page.locator(".turn").last.locator(".asked")).to_have_text("A second start")
    expect(page.get_by_label("Version 2 of 2")).to_be_visible()


def test_the_last_click_wins_and_a_double_click_is_one(page: Page, served: Served) -> None:
    arrive(page, served)
    with served.server.client() as api:
        slow, other = (
            str(api.post("/v1/conversations", json={"metadata": {"title": title}}).json()["id"])
            for title in ("Slow one", "Other one")
        )
    page.reload()
    ready(page)
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    def let_go() -> None:
        with page.expect_response(f"**/v1/conversations/{slow}"):
            held.pop().continue_()
        page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")

    page.route(f"**/v1/conversations/{slow}", hold)
    links = [page.locator(f"#list li[data-id='{each}'] a") for each in (slow, other)]
    links[0].click()
    wait_on(page, lambda: bool(held), "the slow one is asked for")
    links[1].click()
    expect(page.locator("#title")).to_have_text("Other one")
    let_go()
    expect(page.locator("#title")).to_have_text("Other one")
    links[0].click()
    wait_on(page, lambda: bool(held), "the slow one is asked for again")
    page.get_by_role("button", name="New chat").click()
    turn = ask(page, "Here and nowhere else")
    let_go()
    answered(turn)
    expect(page.locator("#title")).to_have_text("Here and nowhere else")

    num_entries = page.evaluate("history.length")
    links[1].dblclick()
    expect(page.locator("#title")).to_have_text("Other one")
    assert page.evaluate("history.length") == num_entries + 1
    page.go_back()
    expect(page.locator("#title")).to_have_text("Here and nowhere else")
    answered(page.locator(".turn"))
    page.get_by_role("button", name="Ask again").dblclick()
    expect(page.get_by_label("Version 2 of 2")).to_be_visible()
    answered(page.locator(".turn"))
    page.reload()
    expect(page.get_by_label("Version 2 of 2")).to_be_visible()  # and no third one

    page.context.set_offline(True)
    page.go_back()
    page.go_back()
    expect(page.get_by_role("heading", name="This conversation could not be read")).to_be_visible()
    page.context.set_offline(False)
    expect(page.locator("#title")).to_have_text("Other one")  # it is tried again by itself


def test_rename_search_export_and_erase(page: Page, served: Served) -> None:
    arrive(page, served)
    asked_and_answered(page, "Something to be erased")
    conversation = conversation_of(page)
    page.get_by_role("button", name="Edit").click()
    page.get_by_role("textbox", name="Edit the question").fill("Something else")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Version 2 of 2")).to_be_visible()
    answered(page.locator(".turn").last)
    page.get_by_role("button", name="Rename").click()
    page.get_by_label("Title", exact=True).fill("x" * 199 + "😀")
    page.keyboard.press("Enter")
    expect(page.locator("#title")).to_have_text("x" * 199)  # not half of a character behind it
    page.get_by_role("button", name="Rename").click()
    page.get_by_label("Title", exact=True).fill("<b>Quinces</b>")
    page.keyboard.press("Enter")
    expect(page.locator("#title")).to_have_text("<b>Quinces</b>")
    page.keyboard.press("Control+k")
    page.keyboard.type("quince")
    expect(page.locator("#list a")).to_have_count(1)
    page.fill("#search", "no such title")
    expect(page.locator("#list-note")).to_have_text("No title contains “no such title”.")
    page.locator("#search").press("Escape")
    expect(page.locator("#search")).to_have_value("")
    expect(page.locator("#list a").first).to_be_visible()

    exported = {}
    for form in ("Markdown", "JSON"):
        page.get_by_role("button", name="Export").click()
        with page.expect_download() as download:
            page.get_by_role("button", name=form).click()
        exported[form] = Path(download.value.path()).read_text()
        page.keyboard.press("Escape")
    assert "# <b>Quinces</b>\n\n## You\n\nSomething else\n\n## echo\n" in exported["Markdown"]
    assert [len(each["output"]) for each in json.loads(exported["JSON"])["responses"]] == [1, 1]

    ids = [each["id"] for each in json.loads(exported["JSON"])["responses"]]
    page.get_by_role("button", name="Erase").click()
    page.get_by_role("dialog").get_by_role("button", name="Erase").click()
    expect(page.locator("#title")).to_have_text("New chat")
    with served.server.client() as api:
        assert api.get(f"/v1/conversations/{conversation}").status_code == 404
        assert [api.get(f"/v1/responses/{each}").status_code for each in ids] == [404, 404]
    page.goto(f"{served.url}/?c={conversation}")
    expect(page.get_by_text("That conversation is not there any more.")).to_be_visible()


def test_a_schema_a_tool_reasoning_and_a_file(page: Page, served: Served, tmp_path: Path) -> None:
    arrive(page, served)
    page.get_by_role("button", name="Settings").click()
    schema = page.get_by_label("JSON schema")
    schema.fill("{oops")
    expect(page.locator("#setting-schema-hint")).to_contain_text("This is not JSON")
    schema.fill(
        '{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name","age"],'
        '"additionalProperties":false}'
    )
    shown = asked_and_answered(page, "Give me a person as JSON")
    assert '{\n  "name": "Ada",\n  "age": 36\n}' in shown

    page.get_by_role("button", name="Clear all").click()
    page.get_by_label("Tools").fill(
        '{"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {}}}}'
    )
    page.get_by_label("System text").fill("You know the sky.")
    page.get_by_role("button", name="Close the settings").click()
    called = ask(page, "How is the weather in Bern?")
    answered(called)
    expect(called.locator(".call")).to_contain_text("The model calls get_weather")
    expect(called.locator(".call pre")).to_contain_text('"city": "Bern"')
    called.get_by_label("Result of get_weather").fill("sunny in Bern")
    called.get_by_role("button", name="Send result").click()
    expect(page.locator(".turn").last.locator("em")).to_have_text("sunny")
    expect(page.locator(".turn").last.locator(".asked")).to_contain_text("Result of get_weather")

    page.reload()
    expect(page.locator(".call")).to_contain_text("get_weather")
    expect(page.locator("#setting-instructions")).to_have_value("You know the sky.")

    page.get_by_role("button", name="New chat").click()
    note = tmp_path / "note.txt"
    note.write_text("a note of two lines\nthe second")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\x00")
    page.set_input_files("#file", [note, tmp_path / "picture.png"])
    expect(page.get_by_text("picture.png is not text, so it cannot be attached.")).to_be_visible()
    turn = ask(page, "What does it say?")
    assert "a note of two lines" in answered(turn)
    expect(turn.locator("details.file summary")).to_have_text("📄 note.txt")
    page.reload()
    expect(page.locator(".turn").last.locator("details.file summary")).to_have_text("📄 note.txt")


TOOL = '{"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {}}}}'


def test_a_call_can_be_answered_until_the_server_has_its_result(page: Page, served: Served) -> None:
    arrive(page, served)
    page.get_by_role("button", name="Settings").click()
    page.get_by_label("Tools").fill(TOOL)
    page.get_by_role("button", name="Close the settings").click()
    called = ask(page, "How is the weather in Bern?")
    answered(called)
    other = page.context.new_page()
    other.goto(address_of(page))
    ready(other)
    result, theirs = page.get_by_label("Result of get_weather"), other.get_by_label("Result of get_weather")
    theirs.fill("rainy in Bern")
    error = {"error": {"message": "Not now.", "code": "no"}}
    page.route("**/v1/responses", lambda route: route.fulfill(status=400, json=error), times=1)
    result.fill("sunny in Bern")
    called.get_by_role("button", name="Send result").click()
    expect(page.locator(".turn-state.bad")).to_have_text("Not now.")
    expect(result).to_have_value("sunny in Bern")  # it is not lost, and can be sent again
    called.get_by_role("button", name="Send result").click()
    expect(page.locator(".turn").last.locator("em")).to_have_text("sunny")
    expect(result).to_have_count(0)
    expect(theirs).to_have_count(0)  # it has its result: another one would begin a branch
    expect(other.locator("#message")).to_be_focused()
    expect(page.locator(".turn")).to_have_count(2)


def test_a_key_that_may_not_ask_is_told_so_and_led_on(page: Page, served: Served) -> None:
    made = served.server.axon("keys", "create", "--name", "only-admin", "--scope", "admin", "--json")
    page.goto(f"{served.url}/sign-in")
    page.fill("#key", json.loads(made.stdout)["key"])
    page.click("#go")
    expect(page.get_by_role("heading", name="This key may not ask")).to_be_visible()
    expect(page.locator("#thread")).to_contain_text("needs the scope inference")
    expect(page.locator("#message")).to_be_disabled()
    expect(page.get_by_role("link", name="Make a key with them in the console")).to_be_visible()


def test_wrong_settings_are_marked_where_they_are_and_no_notice_covers_the_button(page: Page, served: Served) -> None:
    arrive(page, served)
    page.set_viewport_size({"width": 1280, "height": 800})
    page.get_by_role("button", name="Settings").click()
    page.get_by_label("Temperature").fill("7")
    page.get_by_label("Top p").fill("2")
    page.get_by_role("button", name="Close the settings").click()
    page.fill("#message", "Hello")
    page.click("#send")
    for name in ("temperature", "top_p"):
        expect(page.locator(f"#setting-{name}")).to_have_attribute("aria-invalid", "true")
        expect(page.locator(f"#setting-{name}-hint")).to_have_class("hint bad")
    expect(page.locator("#setting-temperature")).to_be_focused()
    notice = page.locator(".toasts .notice")
    expect(notice).to_contain_text("Temperature and Top p")
    below, form = notice.bounding_box(), page.locator("#composer").bounding_box()
    assert below is not None
    assert form is not None
    assert below["y"] + below["height"] <= form["y"], "above the composer"
    page.get_by_role("button", name="Clear all").click()
    expect(page.locator("#setting-temperature")).to_have_attribute("aria-invalid", "false")


def test_a_refused_question_stays_in_the_field_through_a_reload(page: Page, served: Served) -> None:
    arrive(page, served)
    error = {"message": "The prompt has 900 tokens or more.", "code": "context_length_exceeded"}
    page.route("**/v1/responses", lambda route: route.fulfill(status=400, json={"error": error}))
    turn = ask(page, "Far too long")
    expect(turn.locator(".turn-state")).to_have_text(f"{error['message']} Your question is in the field below again.")
    expect(page.locator("#message")).to_have_value("Far too long")
    page.reload()
    expect(page.locator("#message")).to_have_value("Far too long")
    ready(page)
    page.unroute("**/v1/responses")
    page.keyboard.press("Enter")
    answered(page.locator(".turn").last)
    page.reload()
    ready(page)
    expect(page.locator("#message")).to_have_value("")
