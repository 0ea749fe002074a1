"""Text is text, whoever wrote it: a model, tool, tenant or client. No payload runs, asks a host, or finds a key."""

import json
from functools import partial
from typing import Any

import httpx
from playwright.sync_api import Page, Route, expect

from tests import long
from tests.browser.harm import harm, kept
from tests.browser.payloads import PAYLOADS, SHORT
from tests.browser.serving import Served
from tests.browser.visiting import enter
from tests.browser.watch import Watch, wait_on

ENOUGH = 100
STREAMED = 6
"""One in so many payloads is streamed together with others, from every part of the corpus."""
TOGETHER = 15
TITLE = 150
SHOWN = [payload for payload in PAYLOADS if len(payload) <= 500]
"""What fits into a prompt with others; longer ones are tried alone."""
NAMED = {payload for payload in SHORT[::5] if payload == " ".join(payload.split())}
"""Names of models, as a server that takes any might tell them."""
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
    """Text of every kind in the corpus, and names of models that are hostile themselves."""
    page.route("**/v1/models*", _with_hostile_models)
    enter(page, served)
    options = page.locator("#model option")
    assert set(options.evaluate_all("all => all.map(each => each.value)")) >= NAMED
    page.locator("#model").select_option(min(NAMED))
    assert harm(page) == []
    page.locator("#model").select_option("echo")
    page.get_by_label("Message", exact=True).fill("\n\n".join(SHOWN[long.seed() % STREAMED :: STREAMED]))
    page.keyboard.press("Enter")
    expect(page.locator(".answer .said")).to_contain_text("assistant:")
    assert harm(page) == []
    page.get_by_role("button", name="Rename").click()
    page.get_by_label("Title", exact=True).fill(SHOWN[24])
    page.keyboard.press("Enter")
    expect(page.locator("#title")).to_have_text(SHOWN[24])
    assert page.title().startswith(SHOWN[24])
    assert harm(page) == []


def test_no_page_can_be_framed_for_clickjacking(page: Page, served: Served, watch: Watch) -> None:
    watch.allow("^console: ")  # the browser says that it has refused
    enter(page, served, key=served.admin_key)
    page.goto(f"{served.url}/livez")  # even a page of the same origin
    for number, path in enumerate(("/", "/console", "/sign-in", "/docs"), start=1):
        page.evaluate(_FRAME, f"{served.url}{path}")
        wait_on(page, partial(_is_refused, page, number), f"{path} is refused")


def _is_refused(page: Page, number: int) -> bool:
    """Whether the frame of this number shows the browser's own page of an error."""
    return len(page.frames) > number and page.frames[number].url.startswith("chrome-error:")


_FRAME = """url => {
  const frame = document.createElement("iframe");
  frame.src = url;
  document.body.append(frame);
}"""


def _with_hostile_models(route: Route) -> None:
    reply = route.fetch()
    listed = reply.json()
    listed["data"] += [{**listed["data"][0], "id": name} for name in sorted(NAMED)]
    route.fulfill(response=reply, body=json.dumps(listed))


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
