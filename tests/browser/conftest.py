"""Chromium for tests of the pages: Debian's headless shell, driven by Playwright. It has Chromium's engine and no
windows to draw, which takes a third of the processor time; where it is not installed, the browser itself does.

    def test_a_page_greets(page: Page, served: Served) -> None:
        page.goto(served.url)

A browser and a server are shared by the tests of a file; each test has a context of its own, so no cookie of another
one's. The browser ends with the file, because Playwright's loop must not be there when a test of another file runs its
own. A failed test leaves a picture of each page beside the server's log.
"""

import os
from collections.abc import Callable, Generator, Iterator
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
_FAILED = pytest.StashKey[bool]()
Serve = Callable[..., Served]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remembers that a test has failed, for the pictures of its pages."""
    report = yield
    item.stash[_FAILED] = item.stash.get(_FAILED, False) or report.failed
    return report


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, for a file's tests."""
    shell = find("chromium-headless-shell") or find("chromium")
    if shell is None:
        require("chromium-headless-shell")
    arguments = ["--disable-gpu", *(["--no-sandbox"] if os.geteuid() == 0 else [])]  # an emulated one costs a sixth
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=shell, args=arguments)
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
def new_page(request: pytest.FixtureRequest, browser: Browser, watch: Watch, tmp_path: Path) -> Iterator[NewPage]:
    """Opens a page in a context of its own, with Playwright's options: ``new_page(color_scheme="dark")``."""
    contexts: list[BrowserContext] = []

    def opened(**options: Any) -> Page:
        context = browser.new_context(**options)
        contexts.append(context)
        watch.follow(context)
        return page_of(context)

    yield opened
    for number, context in enumerate(contexts):
        if request.node.stash.get(_FAILED, False) or watch.problems:
            _keep_pictures(context, tmp_path, number)
        for page in context.pages:
            page.unroute_all(behavior="ignoreErrors")  # an answer that a test changes may be on its way
        context.close()


@pytest.fixture
def page(new_page: NewPage) -> Page:
    """A page of the test's own; another tab of the same person is ``page.context.new_page()``."""
    return new_page()


def _keep_pictures(context: BrowserContext, folder: Path, number: int) -> None:
    """For whoever reads why a test failed."""
    for index, page in enumerate(context.pages):
        if not page.is_closed():
            page.screenshot(path=folder / f"page-{number}-{index}.png")
