"""The chat page, as people use it from their first minute on."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chatting import (
    answered,
    arrive,
    ask,
    asked_and_answered,
    conversation_of,
    ready,
    script_in,
    streamed,
)
from tests.browser.conftest import NewPage
from tests.browser.serving import Served, serving
from tests.browser.watch import Watch, wait_on

STEP_S = 0.005


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
    said = asked_and_answered(page, "Good morning")
    assert "Good morning" in said
    expect(page.locator("#title")).to_have_text("Good morning")
    expect(page.locator("#list a[aria-current]")).to_contain_text("Good morning")
    assert page.evaluate("JSON.stringify(localStorage) + document.cookie").find("axk_") < 0


def test_an_answer_is_shown_as_it_is_meant_and_nothing_in_it_runs(page: Page, served: Served) -> None:
    arrive(page, served)
    turn = ask(page, "Show me Markdown")
    answered(turn)
    expect(turn.locator(".markdown table td.right")).to_have_text("2")
    expect(turn.locator("pre.code .nb")).to_have_text("print")
    expect(turn.locator("math msup")).to_be_visible()
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
    counted = ask(page, "Count to many")
    wait_on(page, lambda: " 20 " in streamed(counted), "some numbers")
    page.keyboard.press("Escape")
    expect(counted).to_contain_text("Stopped. The model will not remember this question")
    assert "200" not in streamed(counted)

    third = ask(page, "Then this")
    assert "Count to many" not in answered(third)  # the prompt, which the echo repeats, is without it
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

    page.locator(".turn").first.get_by_role("button", name="Ask again").click()
    expect(page.locator(".turn")).to_have_count(1)
    answered(page.locator(".turn").first)
    assert "user: Hello there" in asked_and_answered(page, "A second start")
    page.get_by_role("button", name="Earlier version").click()
    expect(page.locator(".turn")).to_have_count(3)
    page.reload()  # the newest version is shown; all are there
    expect(page.locator(".turn").last.locator(".asked")).to_have_text("A second start")
    expect(page.get_by_label("Version 2 of 2")).to_be_visible()


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
    page.get_by_label("Title", exact=True).fill("<b>Quinces</b>")
    page.keyboard.press("Enter")
    expect(page.locator("#title")).to_have_text("<b>Quinces</b>")
    page.keyboard.press("Control+k")
    page.keyboard.type("quince")
    expect(page.locator("#list a")).to_have_count(1)
    page.fill("#search", "no such title")
    expect(page.locator("#list-note")).to_have_text("No title contains “no such title”.")
    page.fill("#search", "")

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


def test_a_model_that_is_cold_says_how_long_it_takes_and_models_can_be_switched(
    new_page: NewPage, watch: Watch, tmp_path: Path
) -> None:
    """The line of a fleet's cold model, put into the place of what this server says: none of its models is cold."""
    with serving(tmp_path / "data", models="one=echo;kind=echo,two=echo;kind=echo") as two:
        page = new_page()
        arrive(page, two)
        asked_and_answered(page, "First of one")
        page.route(
            "**/v1/models",
            lambda route: route.fulfill(
                json={"data": [{"id": "one", "state": "ready"}, {"id": "two", "state": "cold", "version": "1"}]}
            ),
        )
        page.select_option("#model", "two")
        expect(page.locator("#model-state")).to_have_text("cold: starts when asked")
        cold = {"state": "cold", "position": 1, "expected_wait_s": 12.0}
        page.route(
            "**/v1/responses",
            lambda route: route.fulfill(content_type="text/event-stream", body=_queued(cold)),
            times=1,
        )
        page.route("**/v1/responses/resp_cold?**", lambda route: route.abort())
        turn = ask(page, "First of two")
        expect(turn.locator(".turn-state")).to_have_text("The model is being started. It will take about 12 s.")
        page.unroute("**/v1/models")
        page.goto(f"{two.url}/")
        ready(page)
        page.select_option("#model", "two")
        turn = ask(page, "Now really")
        answered(turn)
        expect(turn.locator(".foot .hint").last).to_contain_text("two")
        page.select_option("#model", "one")
        turn = ask(page, "And by the other")
        answered(turn)
        expect(turn.locator(".foot .hint").last).to_contain_text("one")


def _queued(wait: dict[str, object]) -> str:
    """The first events of a response that waits for its model."""
    head = {"id": "resp_cold", "status": "queued", "model": "two", "output": [], "metadata": {}}
    events = [
        {"type": "response.created", "sequence_number": 0, "response": head},
        {"type": "response.queued", "sequence_number": 1, "response": head, "axon": {"queue": wait}},
    ]
    return "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events)
