"""The documentation site: built strictly, asks no other host, and shows what the repository has."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.docs.blocks import REPOSITORY

LOADED = re.compile(r"<(?:script|link|img|iframe|source|use)\b[^>]*?\b(?:src|href)=[\"']?((?:https?:)?//[^\"' >]*)")


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_site", REPOSITORY / "scripts" / "docs_site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
    assert "README.md\n" in (site / "source/deploy/kustomize.txt").read_text() or (site / "source").is_dir()
    for source in re.findall(r'<img[^>]* src="([^"]+)"', (site / "top.html").read_text()):
        assert (site / source).is_file()
    assert "idempotency" in (site / "search" / "search_index.json").read_text().lower()


def test_what_belongs_to_an_item_is_indented_by_four(hooks: ModuleType) -> None:
    written = "text\n- one\n  goes on\n\n  ```sh\n  axon\n  ```\n- two\n\n1. a\n\n   b\n\nend\n"
    wanted = "text\n\n- one\n    goes on\n\n    ```sh\n    axon\n    ```\n- two\n\n1. a\n\n    b\n\nend\n"
    assert hooks.indented(written) == wanted


def test_code_is_left_as_it_is(hooks: ModuleType) -> None:
    written = "- a\n\ntext\n\n```yaml\nlist:\n- a\n  b: 1\n- c\n```\n"
    assert hooks.indented(written) == written


def test_links_that_leave_docs_are_found(hooks: ModuleType) -> None:
    text = "[a](../src/a.py) [b](b.md) [c](../../deploy/x#y) ![d](../plots/d.svg)"
    found = [(target, name) for _, target, name in hooks.outside(text, "deploy/page.md")]
    assert found == [("deploy/x", "[c]")]
    assert hooks.copy_of(".github/workflows/release.yml") == "source/github/workflows/release.yml.txt"
