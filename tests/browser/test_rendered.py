"""An answer that costs too much to format is shown as it is, and says so; one that must wait is asked again."""

import json
import re
from typing import Any

from playwright.sync_api import Page, Route, expect

from tests.browser.serving import Served
from tests.browser.visiting import enter
from tests.browser.watch import Watch, wait_on

RENDER = re.compile("/ui/render$")


def ask(page: Page, text: str) -> None:
    page.get_by_label("Message", exact=True).fill(text)
    page.keyboard.press("Enter")


def test_an_answer_that_costs_too_much_to_format_is_shown_as_plain_text(page: Page, served: Served) -> None:
    plain = json.dumps({"html": '<p class="piece">all of it</p>', "plain": True})
    page.route(RENDER, lambda route: route.fulfill(body=plain, content_type="application/json"))
    enter(page, served)
    ask(page, "hello")
    expect(page.locator(".answer .markdown")).to_have_text(
        re.compile("Shown as plain text: too costly to format.*all of it")
    )


def test_reasoning_is_folded_away_while_it_comes_and_when_it_is_there(page: Page, served: Served) -> None:
    thought: dict[str, Any] = {
        "id": "rs_1",
        "type": "reasoning",
        "content": [{"type": "reasoning_text", "text": "First this."}],
    }
    text = {"id": "msg_1", "type": "message", "content": [{"type": "output_text", "text": "It is so."}]}
    response: dict[str, Any] = {
        "id": "resp_1",
        "conversation": {"id": "conv_1"},
        "created_at": 1,
        "model": "echo",
        "metadata": {},
    }
    coming: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**response, "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**thought, "content": []}},
        {"type": "response.reasoning_text.delta", "output_index": 0, "delta": "First this."},
    ]
    coming += [{"type": "response.output_item.done", "output_index": 0, "item": thought}]
    whole = {"type": "response.completed", "response": {**response, "status": "completed", "output": [thought, text]}}
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/v1/responses", lambda route: route.fulfill(body=_events(coming), content_type="text/event-stream"))
    page.route("**/v1/responses/resp_1?*", hold)  # the rest of the stream
    enter(page, served)
    ask(page, "Reason about it")
    thinking = page.locator("details.thinking")
    expect(thinking.locator("summary")).to_have_text("Reasoning")
    expect(thinking).to_contain_text("First this.")
    expect(thinking.locator(".flow")).to_be_hidden()
    wait_on(page, lambda: bool(held), "the rest is asked for")
    held[0].fulfill(body=_events([*coming, whole]), content_type="text/event-stream")
    expect(page.locator(".answer .markdown")).to_have_text("It is so.")
    expect(thinking.locator("pre")).to_be_hidden()
    thinking.locator("summary").click()
    expect(thinking.locator("pre")).to_be_visible()
    expect(thinking.locator("pre")).to_have_text("First this.")


def _events(found: list[dict[str, Any]]) -> str:
    """A stream of numbered events."""
    return "".join(f"data: {json.dumps({**each, 'sequence_number': index})}\n\n" for index, each in enumerate(found))


def test_a_text_that_finds_too_many_others_is_asked_again(page: Page, served: Served, watch: Watch) -> None:
    watch.allow("429")
    refused: list[str] = []

    def refuse_once(route: Route) -> None:
        if refused:
            route.continue_()
            return
        refused.append(route.request.url)
        error = json.dumps({"error": {"code": "rate_limit_exceeded", "message": "Too many."}})
        route.fulfill(status=429, body=error, content_type="application/json", headers={"retry-after-ms": "10"})

    page.route(RENDER, refuse_once)
    enter(page, served)
    ask(page, "**loud**")
    expect(page.locator(".answer .markdown strong")).to_have_text("loud")
    assert len(refused) == 1
