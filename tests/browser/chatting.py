"""What somebody does on the chat page, in words that tests share. Knows no test."""

import json
import re
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from tests.browser.serving import Served
from tests.browser.watch import wait_on

SCRIPT = [
    {"if": "sunny in Bern", "say": "It is *sunny* in Bern."},
    {
        "if": "the weather in Bern",
        "say": '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Bern"}}\n</tool_call>',
    },
    {
        "if": "Show me Markdown",
        "say": "## A title\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n```python\nprint('x < y')\n```\n\nSo $x^2$, $t_1$.\n\n"
        "<script>document.title = 'owned'</script> <img src=x onerror=alert(1)>",
    },
    {"if": "a person as JSON", "say": '{"name":"Ada","age":36}'},
    {"if": "Count to many\\s+assistant:$", "say": " ".join(str(number) for number in range(1, 201))},
    {"if": "Count on and on\\s+assistant:$", "say": " ".join(str(number) for number in range(1, 1_501))},
    {"if": "Say it in short", "say": "This is **flat**, `code` and $x^2$.\n\n- one\n- two\n"},
    {"if": "Ten thousand lines", "say": "\n\n".join(f"l{number}" for number in range(10_000))},
]
"""Answers that are written down; any other question is answered by its own prompt. A byte of them is a token."""
_PLACE = "asked => [...document.querySelectorAll('.turn')].indexOf(asked.closest('.turn'))"
_LISTEN = """() => {
  const line = document.getElementById("connection");
  window.lines = [];
  new MutationObserver(() => window.lines.push(line.textContent)).observe(line, { childList: true });
}"""
expect.set_options(timeout=30_000)  # the cores may be busy
BACK = "Connected again. Nothing was lost."
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
    """Waits until the page can be talked to: the models are listed, and it shows what its address names."""
    expect(page.locator("#message")).to_be_visible()
    expect(page.locator("#model option").first).to_be_attached()
    expect(page.locator("#thread")).to_have_attribute("aria-busy", "false")


def ask(page: Page, text: str) -> Locator:
    """Sends a message of one line; returns the turn that it begins, by its place in the thread.

    It is no other one with the same text, and stays the same one while its question is edited.
    """
    ready(page)
    expect(page.locator("#send")).to_be_visible()  # nothing can be sent while an answer comes
    same = page.locator(".turn .asked-text", has_text=re.compile(f"^{re.escape(text)}$"))
    num_same = same.count()
    page.locator("#message").fill(text)
    page.locator("#message").press("Enter")
    expect(same).to_have_count(num_same + 1)
    return page.locator(".turn").nth(same.nth(num_same).evaluate(_PLACE))


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


def address_of(page: Page) -> str:
    """The address of the conversation that is shown; it has one as soon as its first question is painted."""
    page.wait_for_url(re.compile(r"\?c=conv_\w+"))
    return page.url


def conversation_of(page: Page) -> str:
    """The id of the conversation that is shown."""
    return address_of(page).rpartition("c=")[2]


def listen(page: Page) -> None:
    """Writes down what the page says of the connection, for ``heard``: some of it is there for seconds only."""
    page.evaluate(_LISTEN)


def heard(page: Page, line: str) -> None:
    """Waits until the page has said this of the connection since ``listen``."""
    wait_on(page, lambda: line in page.evaluate("window.lines"), f"the page says: {line}")
