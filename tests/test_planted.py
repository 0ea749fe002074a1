"""The breakages that are planted are still there to be planted, and one that nobody notices is told."""

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
MUST = {"auth", "allocator", "cursor", "epoch", "import rule", "pins"}


@pytest.fixture(scope="module")
def planted() -> Any:
    spec = importlib.util.spec_from_file_location("planted", ROOT / "scripts" / "planted.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["planted"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A project with one rule and two tests, of which one looks at it."""
    for folder in ("src/axon", "tests"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "src/axon/__init__.py").write_text("")
    (tmp_path / "src/axon/rule.py").write_text("def allowed() -> bool:\n    return False\n")
    (tmp_path / "tests/test_rule.py").write_text(
        "from axon.rule import allowed\n\n"
        "def test_it_looks() -> None:\n    assert not allowed()\n\n"
        "def test_it_does_not() -> None:\n    allowed()\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    services: none here\n")
    return tmp_path


def test_every_breakage_can_be_planted_and_has_its_test(planted: Any) -> None:
    assert {each.name for each in planted.BREAKAGES} >= MUST
    for each in planted.BREAKAGES:
        assert planted.holding(ROOT, each.where, each.old).exists()
        assert planted.command_of(ROOT, each)


def test_a_property_that_must_notice_is_tried_with_all_its_examples(planted: Any) -> None:
    """A short run tries others with a third of theirs (``tests.long.examples``)."""
    found = 0
    for each in [each for each in planted.BREAKAGES if each.test]:
        text = planted.holding(ROOT, "tests", f"def {each.test}(").read_text()
        above = text.partition(f"def {each.test}(")[0].rpartition("\n\n")[2]
        if "@given(" in above:
            found += 1
            assert re.search(r"@settings\(.*max_examples=[0-9]+", above), each.test
    assert found


@pytest.mark.parametrize(("test", "told"), [("test_it_looks", ""), ("test_it_does_not", "went unnoticed")])
def test_a_breakage_that_goes_unnoticed_is_told(planted: Any, small: Path, test: str, told: str) -> None:
    breakage = planted.Breakage(name="rule", old="return False", new="return True", test=test)
    said = planted.noticed(small, breakage)
    assert said.startswith(told)
    assert bool(said) is bool(told)
    assert "return False" in (small / "src/axon/rule.py").read_text(), "it is mended again"


def test_a_text_that_is_gone_is_an_error(planted: Any, small: Path) -> None:
    with pytest.raises(LookupError, match="0 times"):
        planted.noticed(small, planted.Breakage(name="rule", old="return None", new="", test="test_it_looks"))
