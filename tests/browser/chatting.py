"""What somebody does on the chat page, in words that tests share. Knows no test."""

import json
import re
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from tests.browser.serving import Served

SCRIPT = [
    {"if": "sunny in Bern", "say": "It is *sunny* in Bern."},
    {
        "if": "the weather in Bern",
        "say": '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Bern"}}\n</tool_call>',
    },
    {
        "if": "Show me Markdown",
        "say": "## A title\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n```python\nprint('x < y')\n```\n\nSo $x^2$.\n\n"
        "<script>document.title = 'owned'</script> <img src=x onerror=alert(1)>",
    },
    {"if": "a person as JSON", "say": '{"name":"Ada","age":36}'},
    {"if": "Reason about it", "say": "<think>First this, then that.</think>It is so."},
    {"if": "Count to many\\s+assistant:$", "say": " ".join(str(number) for number in range(1, 201))},
    {"if": "Ten thousand lines", "say": "\n".join(f"line {number} of many" for number in range(10_000))},
]
"""Answers that are written down; any other question is answered by its own prompt."""
expect.set_options(timeout=30_000)  # the cores may be busy
LOST = "Connection lost. The answer goes on at the server; reconnecting…"


def script_in(folder: Path) -> Path:
    """Writes the script into the folder and returns its path."""
    path = folder / "script.json"
    path.write_text(json.dumps(SCRIPT))
    return path


def arrive(page: Page, served: Served, key: str = "") -> None:
    """Signs in with a key and waits for the chat."""
    page.goto(f"{served.url}/sign-in")
    page.fill("#key", key or served.key)
    page.click("#go")
    ready(page)


def ready(page: Page) -> None:
    """Waits until the page can be talked to."""
    expect(page.locator("#message")).to_be_visible()
    expect(page.locator("#model option").first).to_be_attached()


def ask(page: Page, text: str) -> Locator:
    """Sends a message; returns the turn that it begins."""
    num_turns = page.locator(".turn").count()
    page.fill("#message", text)
    page.keyboard.press("Enter")
    expect(page.locator(".turn")).to_have_count(num_turns + 1)
    return page.locator(".turn").last


def answered(turn: Locator) -> str:
    """Waits for the end of a turn's answer; returns its text, painted or not."""
    expect(turn.get_by_role("button", name="Why was this slow?")).to_be_attached(timeout=60_000)
    return streamed(turn)


def asked_and_answered(page: Page, text: str) -> str:
    """Sends a message and waits for its answer, whose text it returns."""
    return answered(ask(page, text))


def streamed(turn: Locator) -> str:
    """The text of an answer so far, every character of it."""
    return turn.locator(".said").text_content() or ""


def conversation_of(page: Page) -> str:
    """The id of the conversation that is shown."""
    found = re.search(r"c=(conv_\w+)", page.url)
    assert found, page.url
    return found[1]
