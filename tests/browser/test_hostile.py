"""Text is text, whoever wrote it: a model, tool, tenant or client. No payload runs, asks a host, or finds a key."""

import json
from typing import Any

import httpx
from playwright.sync_api import Page, expect

from tests.browser.harm import harm, kept
from tests.browser.payloads import PAYLOADS
from tests.browser.serving import Served
from tests.browser.visiting import enter
from tests.browser.watch import Watch

ENOUGH = 100
TOGETHER = 15
TITLE = 150
SHOWN = [payload for payload in PAYLOADS if len(payload) <= 500]
"""What fits into a prompt with others; longer ones are tried alone."""
INSERT = """pieces => {
  for (const piece of pieces) {
    const place = document.createElement("div");
    place.innerHTML = piece;
    document.body.append(place);
  }
}"""


def test_the_corpus_is_large() -> None:
    assert len(set(PAYLOADS)) >= ENOUGH


def test_rendered_markdown_is_harmless_even_without_a_policy(page: Page, served: Served) -> None:
    """The first wall alone: the HTML is put into a page that would let anything run."""
    page.goto(f"{served.url}/livez")
    page.evaluate(INSERT, [_rendered(served, payload) for payload in PAYLOADS])
    page.wait_for_timeout(300)
    assert harm(page) == []


def test_the_policy_stops_what_gets_past_the_first_wall(page: Page, served: Served, watch: Watch) -> None:
    """The second wall alone: the payloads are put into a page of ours as they are, and the policy lets none run."""
    watch.allow("^console: ")  # the policy says what it has stopped
    page.goto(f"{served.url}/sign-in")
    page.evaluate(INSERT, [payload for payload in PAYLOADS if "http-equiv" not in payload])
    page.wait_for_timeout(300)
    assert page.evaluate("window.ran ?? null") is None
    assert harm(page) != []  # what came past the first wall would be noticed
    assert [seen for seen in watch.problems if "evil.test" in seen] == []


def test_the_chat_shows_hostile_text_as_text(page: Page, served: Served) -> None:
    """As question, answer, title, name and content of a file, call of a tool and its result."""
    ids = [_conversation(served, SHOWN[first : first + TOGETHER]) for first in range(0, len(SHOWN), TOGETHER)]
    enter(page, served)
    for number, conversation in enumerate(ids):
        page.locator(f"#list li[data-id='{conversation}'] a").click()
        expect(page.locator("#title")).to_have_text(" ".join(SHOWN[number * TOGETHER][:TITLE].split()))
        expect(page.locator(".answer .said")).to_contain_text("assistant:")
        assert harm(page) == []
    page.get_by_role("button", name="Export").click()
    assert harm(page) == []
    assert served.key not in kept(page)


def test_the_chat_shows_hostile_text_as_text_while_it_comes(page: Page, served: Served) -> None:
    enter(page, served)
    page.get_by_label("Message", exact=True).fill("\n\n".join(SHOWN[:20]))
    page.keyboard.press("Enter")
    expect(page.locator(".answer .said")).to_contain_text("assistant:")
    assert harm(page) == []
    page.get_by_role("button", name="Rename").click()
    page.get_by_label("Title", exact=True).fill(SHOWN[24])
    page.keyboard.press("Enter")
    expect(page.locator("#title")).to_have_text(SHOWN[24])
    assert page.title().startswith(SHOWN[24])
    assert harm(page) == []


def _conversation(served: Served, payloads: list[str]) -> str:
    """A conversation with one turn, in which each part that a client, model or tool writes is hostile."""
    text = "\n\n".join(payloads)
    call = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": json.dumps({"at": text})}
    result = {"type": "function_call_output", "call_id": "c1", "output": text}
    file = {"type": "input_text", "text": f"File: {payloads[0][:TITLE]}\n\n{payloads[0]}"}
    message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}, file]}
    made = _asked(served, "/v1/conversations", {"metadata": {"title": payloads[0][:TITLE]}})
    ask = {"model": "echo", "conversation": made["id"], "input": [call, result, message], "instructions": payloads[0]}
    assert _asked(served, "/v1/responses", ask)["status"] == "completed"
    return str(made["id"])


def _asked(served: Served, path: str, body: dict[str, Any]) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {served.key}"}
    reply = httpx.post(f"{served.url}{path}", json=body, headers=headers, timeout=60)
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


def _rendered(served: Served, text: str) -> str:
    return str(_asked(served, "/ui/render", {"text": text})["html"])
