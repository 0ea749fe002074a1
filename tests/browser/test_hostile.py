"""Text is text, whoever wrote it: a model, a tool, a tenant or a client. No payload runs, asks a host, or finds a key."""

import httpx
from playwright.sync_api import Page

from tests.browser.harm import harm
from tests.browser.payloads import PAYLOADS
from tests.browser.serving import Served
from tests.browser.watch import Watch

ENOUGH = 100
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
    assert [seen for seen in watch.problems if "evil.test" in seen] == []


def _rendered(served: Served, text: str) -> str:
    headers = {"Authorization": f"Bearer {served.key}"}
    reply = httpx.post(f"{served.url}/ui/render", json={"text": text}, headers=headers, timeout=60)
    assert reply.status_code == 200, f"{text[:100]!r}: {reply.text}"
    return str(reply.json()["html"])
