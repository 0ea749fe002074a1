"""What mkdocs is told about pages that are written for a repository's viewer. The site itself: tests/browser."""

import importlib.util
from types import ModuleType

import pytest

from tests.docs.blocks import REPOSITORY


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_site", REPOSITORY / "scripts" / "docs_site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
