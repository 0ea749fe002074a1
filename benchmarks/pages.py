"""What the chat page adds to the time to the first token, by the browser's own trace.

python -m benchmarks.pages                 40 questions to the echo engine, typed in Chromium and asked over the API
python -m benchmarks.pages --save          also keeps the JSON in benchmarks/results/

The page's time is from the key that sends the question to the end of the paint that shows the answer's first text, as
Chromium's trace has both. The API's is from the request to the first delta of the same question over a kept connection.
Both are asked by turns on the same server, whose engine answers at once, so that what differs is the page's.
"""

import argparse
import json
import os
import shlex
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Browser, Page, expect, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.browser.serving import Served, serving  # noqa: E402
from tests.browser.visiting import enter  # noqa: E402
from tests.services.require import find  # noqa: E402

from benchmarks.measures.figures import Figures, rounded, table  # noqa: E402
from benchmarks.measures.machine import load_average, machine  # noqa: E402

NUM_QUESTIONS, WARM = 40, 5
CATEGORIES = ["devtools.timeline", "blink.user_timing"]
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=NUM_QUESTIONS)
    parser.add_argument("--smoke", action="store_true", help="a few questions, to see that it runs")
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    num = 3 if options.smoke else options.questions
    command = shlex.join(["python", "-m", "benchmarks.pages", *sys.argv[1:]])
    print(command)
    print(f"machine {machine()}, load average {load_average()}")
    with tempfile.TemporaryDirectory(prefix="axon-bench-pages-") as folder, serving(Path(folder) / "data") as served:
        found = measure(served, num)
    print(table(found))
    result = {
        "command": command,
        "machine": machine(),
        "load_average": load_average(),
        "questions": num,
        "first_token": rounded(found),
    }
    if options.save:
        path = ROOT / "benchmarks" / "results" / f"pages-{datetime.now(UTC):%Y-%m-%d}.json"
        path.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result))


def measure(served: Served, num: int) -> dict[str, Figures]:
    """Median and p90 of both, in milliseconds, and what the page adds."""
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    page_ms: list[float] = []
    api_ms: list[float] = []
    with sync_playwright() as playwright, _client(served) as client:
        browser = playwright.chromium.launch(executable_path=find("chromium"), args=arguments)
        page = browser.new_page()
        enter(page, served)
        for number in range(WARM + num):
            of_page, of_api = _typed(browser, page), _asked(client)
            if number >= WARM:
                page_ms.append(of_page)
                api_ms.append(of_api)
        browser.close()
    added = [of_page - of_api for of_page, of_api in zip(page_ms, api_ms, strict=True)]
    return {name: _figures(each) for name, each in (("API", api_ms), ("page", page_ms), ("page adds", added))}


def _figures(milliseconds: list[float]) -> Figures:
    tenths = statistics.quantiles(milliseconds, n=10)
    return {"median_ms": statistics.median(milliseconds), "p10_ms": tenths[0], "p90_ms": tenths[-1]}


def _typed(browser: Browser, page: Page) -> float:
    """Milliseconds from the key to the paint, in a new conversation."""
    page.keyboard.press("Control+Shift+o")
    page.get_by_label("Message", exact=True).fill(QUESTION)
    page.evaluate(_WATCH)
    browser.start_tracing(page=page, categories=CATEGORIES)
    page.keyboard.press("Enter")
    expect(page.locator(".answer .said")).to_contain_text("assistant:")
    expect(page.locator("#send")).to_be_visible()
    return first_paint_ms(json.loads(browser.stop_tracing())["traceEvents"])


def first_paint_ms(events: list[dict[str, Any]]) -> float:
    """From the last ``keydown`` before the mark to the end of the first paint after it."""
    mark = min(each["ts"] for each in events if each["name"] == "first-token")
    keys = [
        each["ts"]
        for each in events
        if each["name"] == "EventDispatch" and each.get("args", {}).get("data", {}).get("type") == "keydown"
    ]
    paints = [each["ts"] + each.get("dur", 0) for each in events if each["name"] == "Paint" and each["ts"] >= mark]
    return float(min(paints) - max(key for key in keys if key <= mark)) / 1000


def _client(served: Served) -> httpx.Client:
    headers = {"Authorization": f"Bearer {served.key}"}
    return httpx.Client(base_url=served.url, headers=headers, timeout=60)


def _asked(client: httpx.Client) -> float:
    """Milliseconds from the request to the first delta, with the same calls as the page makes."""
    title = {"metadata": {"title": QUESTION}}
    began = time.perf_counter()
    made = client.post("/v1/conversations", json=title).json()
    content = [{"type": "input_text", "text": QUESTION}]
    message = {"type": "message", "role": "user", "content": content}
    body = {"model": "echo", "conversation": made["id"], "input": [message], "stream": True, "background": True}
    first = 0.0
    with client.stream("POST", "/v1/responses", json={**body, "store": True}) as reply:
        for line in reply.iter_lines():  # to its end, so that the connection is kept
            if not first and line.startswith("event: response.output_text.delta"):
                first = time.perf_counter()
    return (first - began) * 1000


if __name__ == "__main__":
    main()
