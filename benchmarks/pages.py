"""What the chat page adds to the time to the first token, by the browser's own trace.

python -m benchmarks.pages                 40 questions to the echo engine, typed in Chromium and asked over the API
python -m benchmarks.pages --save          also keeps the JSON in benchmarks/results/

The page's time is from the key that sends the question to the end of the paint that shows the answer's first text, as
Chromium's trace has both. The API's is that of the page's own request, byte for byte, sent by ``fetch`` in the same
browser, up to the first delta: what differs is the page's own work. A plain client sends it too. All are asked by turns
on the same server, whose engine answers at once.
"""

import argparse
import json
import os
import secrets
import statistics
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Browser, Page, Request, expect, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.browser.serving import Served, serving  # noqa: E402
from tests.browser.visiting import enter  # noqa: E402
from tests.services.require import find  # noqa: E402

from benchmarks.measures.figures import Figures, rounded, table  # noqa: E402
from benchmarks.measures.report import Report, add_report_options  # noqa: E402

NUM_QUESTIONS, WARM = 40, 5
CATEGORIES = ["devtools.timeline", "blink.user_timing"]
REST_MS = 200
"""Pause between two questions, so that what the page does after an answer is no part of the next one's time."""
HELD_MS, ANSWER_MS = 100, 500
"""How long the key is held, as a finger would, and how long the answer is then left alone. Nothing is asked of the page
meanwhile: each look of the driver (``expect``) is a task of 14 ms on the page's own thread, in front of the answer's
bytes."""
STEPS = (
    *("key to request", "request to wire", "wire to headers", "headers to page"),
    *("headers to first text's bytes", "bytes to text", "text to end of paint"),
)
"""From the key to the paint. The wire's times are those of Chromium's network service, a process of its own: so what
the server takes ("wire to headers") is told apart from what the page's thread makes the answer wait."""
Event = dict[str, Any]
QUESTION = "How many roads must a man walk down?"
_WATCH = """() => {
  window.stop_watching?.disconnect();
  const seen = new MutationObserver(() => {
    const said = [...document.querySelectorAll(".answer .said")].at(-1);
    if (!said?.textContent) return;
    performance.mark("first-token");
    seen.disconnect();
  });
  seen.observe(document.getElementById("thread"), { childList: true, characterData: true, subtree: true });
  window.stop_watching = seen;
}"""

_FETCH = """async body => {
  const { csrf } = await (await fetch("ui/session")).json();
  const headers = { "content-type": "application/json", accept: "text/event-stream", "x-axon-csrf": csrf };
  Object.assign(headers, { "idempotency-key": `${performance.now()}-${Math.random()}`, "x-axon-ledger": "true" });
  performance.mark("asked");
  const reply = await fetch("v1/responses", { method: "POST", body, headers, cache: "no-store" });
  const decoder = new TextDecoder();
  let seen = "";
  for (const reader = reply.body.getReader(); ;) {
    const { done, value } = await reader.read();
    if (done) return;
    if (seen === null) continue;
    seen += decoder.decode(value, { stream: true });
    if (!seen.includes("event: response.output_text.delta")) continue;
    performance.mark("first-delta");
    seen = null;
  }
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=NUM_QUESTIONS)
    parser.add_argument("--smoke", action="store_true", help="a few questions, to see that it runs")
    add_report_options(parser)
    options = parser.parse_args()
    num = 3 if options.smoke else options.questions
    report = Report("pages", options)
    with tempfile.TemporaryDirectory(prefix="axon-bench-pages-") as folder, serving(Path(folder) / "data") as served:
        found, steps = measure(served, num)
    print(table(found | steps))
    report.end(
        {
            "questions": num,
            "first_token": rounded(found),
            "page_steps": rounded(steps),
        }
    )


def measure(served: Served, num: int) -> tuple[dict[str, Figures], dict[str, Figures]]:
    """Median, p10 and p90 of each way to ask, and of the page's way step by step, in milliseconds."""
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    ways: dict[str, list[float]] = {name: [] for name in ("API, plain client", "API", "page", "page adds")}
    steps: dict[str, list[float]] = {}
    with sync_playwright() as playwright, _client(served) as client:
        browser = playwright.chromium.launch(executable_path=find("chromium"), args=arguments)
        page = browser.new_page()
        enter(page, served)
        bodies = _bodies_of(page)
        for number in range(WARM + num):
            typed = _typed(browser, page)
            fetched, asked = _fetched(browser, page, bodies[-1]), _asked(client, bodies[-1])
            if number < WARM:
                continue
            of_page = sum(typed.values())
            for name, each in zip(ways, (asked, fetched, of_page, of_page - fetched), strict=True):
                ways[name].append(each)
            for name, each in typed.items():
                steps.setdefault(name, []).append(each)
        browser.close()
    return {name: _figures(each) for name, each in ways.items()}, {name: _figures(each) for name, each in steps.items()}


def _figures(milliseconds: list[float]) -> Figures:
    tenths = statistics.quantiles(milliseconds, n=10, method="inclusive")  # of few, too, none is outside them
    return {"median_ms": statistics.median(milliseconds), "p10_ms": tenths[0], "p90_ms": tenths[-1]}


def _bodies_of(page: Page) -> list[str]:
    """A list to which the body of every question is added that the page asks from now on."""
    bodies: list[str] = []

    def note(request: Request) -> None:
        if request.method == "POST" and request.url.endswith("/v1/responses"):
            bodies.append(request.post_data or "")

    page.on("request", note)
    return bodies


def _typed(browser: Browser, page: Page) -> dict[str, float]:
    """Milliseconds of each step from the key to the paint, in a new conversation."""
    page.keyboard.press("Control+Shift+o")
    page.get_by_label("Message", exact=True).fill(QUESTION)
    page.evaluate(_WATCH)
    page.wait_for_timeout(REST_MS)
    browser.start_tracing(page=page, categories=CATEGORIES)
    page.keyboard.press("Enter", delay=HELD_MS)
    page.wait_for_timeout(ANSWER_MS)
    events = json.loads(browser.stop_tracing())["traceEvents"]
    expect(page.locator(".answer .said")).to_contain_text("assistant:")
    expect(page.locator("#send")).to_be_visible()
    return steps_ms(events)


def _fetched(browser: Browser, page: Page, body: str) -> float:
    """Milliseconds from ``fetch`` to the first delta, for the page's own request in the page's own browser."""
    page.wait_for_timeout(REST_MS)
    browser.start_tracing(page=page, categories=CATEGORIES)
    page.evaluate(_FETCH, body)
    events = json.loads(browser.stop_tracing())["traceEvents"]
    return (_marked(events, "first-delta") - _marked(events, "asked")) / 1000


def _marked(events: list[Event], name: str) -> float:
    return float(min(each["ts"] for each in events if each["name"] == name))


def steps_ms(events: list[Event]) -> dict[str, float]:
    """The steps from the last ``keydown`` before the first token to the end of the first paint after it."""
    text = _marked(events, "first-token")
    keys = [each["ts"] for each in events if each["name"] == "EventDispatch" and _about(each).get("type") == "keydown"]
    key = max(each for each in keys if each <= text)
    sent = next(
        each
        for each in sorted(events, key=lambda each: each["ts"])
        if each["name"] == "ResourceSendRequest" and each["ts"] >= key and _about(each)["url"].endswith("/v1/responses")
    )
    name = _about(sent)["requestId"]
    of_answer = [each for each in events if _about(each).get("requestId") == name and each["ts"] <= text]
    answered = next(each for each in of_answer if each["name"] == "ResourceReceiveResponse")
    data = max(each["ts"] for each in of_answer if each["name"] in ("ResourceReceiveResponse", "ResourceReceivedData"))
    wire = _about(answered)["timing"]
    began = wire["requestTime"] * 1e6
    on_wire, headers = began + wire["sendEnd"] * 1000, began + wire["receiveHeadersEnd"] * 1000
    paint = min(each["ts"] + each.get("dur", 0) for each in events if each["name"] == "Paint" and each["ts"] >= text)
    times = [key, sent["ts"], on_wire, headers, answered["ts"], data, text, paint]
    return dict(zip(STEPS, ((after - before) / 1000 for before, after in pairwise(times)), strict=True))


def _about(event: Event) -> dict[str, Any]:
    return dict(event.get("args", {}).get("data", {}))


def _client(served: Served) -> httpx.Client:
    headers = {"Authorization": f"Bearer {served.key}", "content-type": "application/json", "x-axon-ledger": "true"}
    return httpx.Client(base_url=served.url, headers=headers, timeout=60)


def _asked(client: httpx.Client, body: str) -> float:
    """Milliseconds from the request to the first delta, for the page's own request in a program over a kept
    connection."""
    first, name = 0.0, {"idempotency-key": secrets.token_hex(16)}
    began = time.perf_counter()
    with client.stream("POST", "/v1/responses", content=body, headers=name) as reply:
        for line in reply.iter_lines():  # to its end, so that the connection is kept
            if not first and line.startswith("event: response.output_text.delta"):
                first = time.perf_counter()
    return (first - began) * 1000


if __name__ == "__main__":
    main()
