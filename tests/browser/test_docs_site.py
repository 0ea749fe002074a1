"""The documentation site in Chromium: it is found by searching, shows its pictures, and asks no other host."""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Page, expect

from tests.docs.test_site import site

__all__ = ["site"]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def address(site: object) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        thread = threading.Thread(target=server.serve_forever, name="docs-site")
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_reader_finds_a_page_and_sees_its_picture(page: Page, address: str) -> None:
    page.goto(f"{address}/index.html")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Axon")
    page.get_by_placeholder("Search").fill("axon top")
    page.locator(".md-search-result__link", has_text="what runs, live").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("axon top")
    assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
    page.get_by_role("link", name="How to").first.click()
    expect(page.get_by_role("navigation", name="Tabs")).to_be_visible()
