"""A chat that goes on for half an hour does not grow: what a turn takes in the browser is given back."""

import time

import pytest
from playwright.sync_api import CDPSession, Page, expect

from tests import long
from tests.browser.serving import Served
from tests.browser.visiting import enter

MINUTES = 30
SHORT_CHATS = 9
"""In a short run; each chat has two questions."""
SLACK_BYTES, SLACK_NODES = 2_000_000, 1_500


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_memory_is_flat_over_a_long_chat(page: Page, served: Served) -> None:
    enter(page, served)
    looking = page.context.new_cdp_session(page)
    ends_at = time.monotonic() + MINUTES * 60
    looks: list[tuple[int, int]] = []
    while len(looks) < SHORT_CHATS if not long.whole() else time.monotonic() < ends_at:
        _converse(page)
        looks.append(_look(looking))
    third = len(looks) // 3
    (early_bytes, early_nodes), (late_bytes, late_nodes) = max(looks[:third]), max(looks[-third:])
    assert late_bytes <= early_bytes * 1.1 + SLACK_BYTES
    assert late_nodes <= early_nodes * 1.1 + SLACK_NODES


def _converse(page: Page) -> None:
    """A chat of two questions, after which it is erased, so that the list stays as long as it is."""
    page.keyboard.press("Control+Shift+o")
    for question in ("What is **flat**, `code` and $x^2$?", "And then?"):
        page.get_by_label("Message", exact=True).fill(question)
        page.keyboard.press("Enter")
        expect(page.locator(".answer").last).to_contain_text("Ask again")
        expect(page.locator("#send")).to_be_visible()
    page.get_by_role("button", name="Erase").click()
    page.get_by_role("dialog").get_by_role("button", name="Erase").click()
    expect(page.locator("#title")).to_have_text("New chat")


def _look(looking: CDPSession) -> tuple[int, int]:
    """Bytes of the heap and nodes of the page that are in use when the garbage is gone."""
    looking.send("HeapProfiler.collectGarbage")
    looking.send("Performance.enable")
    found = {each["name"]: each["value"] for each in looking.send("Performance.getMetrics")["metrics"]}
    return int(found["JSHeapUsedSize"]), int(found["Nodes"])
