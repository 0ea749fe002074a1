"""Chromium's own trace of a page: its frames, and the tasks that held its main thread up. Knows no page."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, Page

CATEGORIES = ["devtools.timeline", "disabled-by-default-devtools.timeline.frame", "toplevel", "__metadata"]
LONG_US = 50_000
"""Microseconds of processor time from which browsers call a task long. Not of the clock: the cores may be busy."""
_TASKS = ("RunTask", "ThreadControllerImpl::RunTask")


@dataclass(slots=True)
class Trace:
    """What happened on the page's main thread, once the block has ended."""

    num_frames: int = 0
    num_tasks: int = 0
    long_tasks: list[float] = field(default_factory=list)
    """Milliseconds of processor time of each."""


@contextmanager
def traced(browser: Browser, page: Page) -> Iterator[Trace]:
    """Records what the page does in the block."""
    trace = Trace()
    browser.start_tracing(page=page, categories=CATEGORIES)
    try:
        yield trace
    finally:
        events = json.loads(browser.stop_tracing())["traceEvents"]
    main = _main_threads(events)
    own = [each for each in events if (each["pid"], each["tid"]) in main]
    trace.num_frames = sum(each["name"] == "DrawFrame" for each in events)
    tasks = [each.get("tdur", each.get("dur", 0)) for each in own if each["name"] in _TASKS]
    trace.long_tasks = [each / 1000 for each in tasks if each > LONG_US]
    trace.num_tasks = len(tasks)


def _main_threads(events: list[dict[str, Any]]) -> set[tuple[int, int]]:
    """The main threads of pages, by process and thread."""
    return {
        (each["pid"], each["tid"])
        for each in events
        if each["name"] == "thread_name" and each["args"]["name"] == "CrRendererMain"
    }
