"""Chromium for tests of the pages: Debian's, without a window, driven by Playwright.

    def test_a_page_greets(page: Page, served: Served) -> None:
        page.goto(served.url)

A browser and a server are shared by the tests of a file; each test has a context of its own, so no cookie of another
one's. The browser ends with the file, because Playwright's loop must not be there when a test of another file runs its
own. A failed test leaves a picture of each page beside the server's log.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.browser.serving import Served, serving
from tests.browser.watch import Watch, page_of
from tests.services.require import find, require

expect.set_options(timeout=30_000)  # the cores may be busy
NewPage = Callable[..., Page]
Serve = Callable[..., Served]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, for a file's tests."""
    require("chromium")
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=find("chromium"), args=arguments)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with the echo engine for a file's tests that leave it as it was, or start it again."""
    with serving(tmp_path_factory.mktemp("served") / "data") as server:
        yield server


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts a server of the test's own with these settings, as in ``serve(engine_echo_step_s=0.05)``."""
    with ExitStack() as stack:

        def start(name: str = "data", **settings: object) -> Served:
            return stack.enter_context(serving(tmp_path / name, **settings))

        yield start


@pytest.fixture
def watch(request: pytest.FixtureRequest) -> Iterator[Watch]:
    """What the test's pages did that no page may do; the test fails at its end if there is anything."""
    seen = Watch()
    yield seen
    assert not seen.problems, "the page did what no page may do:\n" + "\n".join(seen.problems)


@pytest.fixture
def new_page(browser: Browser, watch: Watch, tmp_path: Path) -> Iterator[NewPage]:
    """Opens a page in a context of its own, with Playwright's options: ``new_page(color_scheme="dark")``."""
    contexts: list[BrowserContext] = []

    def opened(**options: Any) -> Page:
        context = browser.new_context(**options)
        contexts.append(context)
        watch.follow(context)
        return page_of(context)

    yield opened
    for number, context in enumerate(contexts):
        _keep_pictures(context, tmp_path, number)
        context.close()


@pytest.fixture
def page(new_page: NewPage) -> Page:
    """A page of the test's own; another tab of the same person is ``page.context.new_page()``."""
    return new_page()


def _keep_pictures(context: BrowserContext, folder: Path, number: int) -> None:
    """For whoever reads why a test failed; it costs a tenth of a second a page."""
    for index, page in enumerate(context.pages):
        if not page.is_closed():
            page.screenshot(path=folder / f"page-{number}-{index}.png")
