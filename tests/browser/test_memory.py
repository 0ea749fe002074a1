"""A chat that goes on for half an hour does not grow: what a turn takes in the browser is given back."""

import time
from pathlib import Path

import pytest
from playwright.sync_api import CDPSession, Page, expect

from tests import long
from tests.browser.chatting import answered, asked_and_answered, script_in
from tests.browser.conftest import Serve
from tests.browser.serving import Served
from tests.browser.visiting import enter

MINUTES = 30
CHATS = 9
"""Chats that are erased one after the other; each has two questions."""
SHOWN = 60
"""Turns of a chat that the page shows; older ones leave it."""
SLACK_BYTES, SLACK_NODES = 2_000_000, 200
TURN_BYTES = 6_000
"""A turn that is not shown any more is kept as the server lists it, so that it can be shown again."""
UNDO_NODES = 2
"""What Chromium keeps of each text that was put into the field, to undo it; of the last 1,000, so it ends by itself."""
Look = tuple[int, int]


@pytest.mark.long("browser soaks")
@pytest.mark.timeout(3600)
def test_memory_is_flat_over_one_chat_that_goes_on(page: Page, serve: Serve, tmp_path: Path) -> None:
    enter(page, serve(engine_echo_script=script_in(tmp_path)))
    looking = page.context.new_cdp_session(page)
    ends_at = time.monotonic() + (MINUTES * 60 if long.whole() else 0)  # a short run asks until turns are taken away
    looks: list[Look] = []
    num_turns = 0
    while num_turns < SHOWN + 20 or time.monotonic() < ends_at:
        num_turns += 1
        page.get_by_label("Message", exact=True).fill(f"Say it in short, {num_turns}")
        page.keyboard.press("Enter")
        last = page.locator(".turn").last
        expect(last.locator(".asked")).to_have_text(f"Say it in short, {num_turns}")
        answered(last)
        if num_turns >= SHOWN:
            looks.append(_look(looking))
    expect(page.locator(".turn")).to_have_count(SHOWN)
    _assert_flat(looks, num_asked=1, more_bytes=TURN_BYTES * len(looks))


def test_memory_is_flat_over_chats_that_are_erased(page: Page, served: Served) -> None:
    enter(page, served)
    looking = page.context.new_cdp_session(page)
    looks: list[Look] = []
    for _ in range(CHATS):
        _converse(page)
        looks.append(_look(looking))
    _assert_flat(looks, num_asked=2)


def _assert_flat(looks: list[Look], *, num_asked: int, more_bytes: int = 0) -> None:
    """``num_asked`` questions were asked from one look to the next."""
    third = len(looks) // 3
    (early_bytes, early_nodes), (late_bytes, late_nodes) = _most(looks[:third]), _most(looks[-third:])
    more_nodes = UNDO_NODES * num_asked * (len(looks) - third)
    assert late_bytes <= early_bytes * 1.1 + SLACK_BYTES + more_bytes
    assert late_nodes <= early_nodes + SLACK_NODES + more_nodes


def _most(looks: list[Look]) -> Look:
    return max(num_bytes for num_bytes, _ in looks), max(num_nodes for _, num_nodes in looks)


def _converse(page: Page) -> None:
    """A chat of two questions, after which it is erased, so that the list stays as long as it is."""
    page.keyboard.press("Control+Shift+o")
    for question in ("What is **flat**, `code` and $x^2$?", "And then?"):
        asked_and_answered(page, question)
        expect(page.locator("#send")).to_be_visible()
    page.get_by_role("button", name="Erase").click()
    page.get_by_role("dialog").get_by_role("button", name="Erase").click()
    expect(page.locator("#title")).to_have_text("New chat")


def _look(looking: CDPSession) -> Look:
    """Bytes of the heap and nodes of the page that are in use when the garbage is gone."""
    looking.send("HeapProfiler.collectGarbage")
    looking.send("Performance.enable")
    found = {each["name"]: each["value"] for each in looking.send("Performance.getMetrics")["metrics"]}
    return int(found["JSHeapUsedSize"]), int(found["Nodes"])
