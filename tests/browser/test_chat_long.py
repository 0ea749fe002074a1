"""A chat of half an hour: the page takes no more memory at its end than in its middle. `make test-long` runs it."""

import time

import pytest
from playwright.sync_api import CDPSession, Page

from tests.browser.chatting import arrive, asked_and_answered
from tests.browser.serving import Served
from tests.long import whole

_CHAT_S = 1800.0
_FULL = 80
"""Turns after which the page shows as many as it ever does."""
_MARGIN_BYTES = 8 << 20


def used(session: CDPSession) -> tuple[int, int]:
    """Bytes of the page's heap and its elements, after the garbage is gone."""
    session.send("HeapProfiler.collectGarbage")
    metrics = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    return int(metrics["JSHeapUsedSize"]), int(metrics["Nodes"])


@pytest.mark.skipif(not whole(), reason="half an hour: make test-long")
@pytest.mark.long
@pytest.mark.timeout(7200)
def test_memory_stays_flat_over_half_an_hour(page: Page, served: Served) -> None:
    arrive(page, served)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    began, num_turns, middle = time.monotonic(), 0, (0, 0)
    while time.monotonic() - began < _CHAT_S or num_turns < 2 * _FULL:
        if num_turns % 20 == 0:
            page.get_by_role("button", name="New chat").click()  # the echo repeats its prompt, which would grow
        asked_and_answered(page, f"question {num_turns}")
        num_turns += 1
        if num_turns == _FULL:
            middle = used(session)
    heap, nodes = used(session)
    assert heap < middle[0] + _MARGIN_BYTES, (middle, heap, num_turns)
    assert nodes < 1.5 * middle[1], (middle, nodes, num_turns)
