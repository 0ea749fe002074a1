"""The documentation site: built strictly, found by searching, with its pictures, and asks no other host."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.docs.blocks import REPOSITORY

LOADED = re.compile(r"<(?:script|link|img|iframe|source|use)\b[^>]*?\b(?:src|href)=[\"']?((?:https?:)?//[^\"' >]*)")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as ``make docs`` does, with no way to another host."""
    folder = tmp_path_factory.mktemp("site")
    nowhere = {"NO_MKDOCS_2_WARNING": "1", "https_proxy": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9"}
    command = [str(Path(sys.executable).parent / "mkdocs"), "build", "--quiet", "--site-dir", str(folder)]
    built = subprocess.run(
        command, cwd=REPOSITORY, env=os.environ | nowhere, capture_output=True, text=True, timeout=300
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
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


def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 80
    assert {page.name: LOADED.findall(page.read_text()) for page in pages if LOADED.search(page.read_text())} == {}
    styles = [sheet.read_text() for sheet in site.rglob("*.css")]
    assert not [style for style in styles if re.search(r"(url\(|@import )[\"']?(https?:)?//", style)]


def test_pictures_files_and_search_are_on_the_site(site: Path) -> None:
    tour = (site / "tour.html").read_text()
    assert 'href="source/src/axon/bootstrap/embedded.py.txt"' in tour
    assert (site / "source/src/axon/bootstrap/embedded.py.txt").read_text().startswith('"""')
    assert "base/\n" in (site / "source/deploy/kustomize.txt").read_text()
    for source in re.findall(r'<img[^>]* src="([^"]+)"', (site / "top.html").read_text()):
        assert (site / source).is_file()
    assert "idempotency" in (site / "search" / "search_index.json").read_text().lower()
