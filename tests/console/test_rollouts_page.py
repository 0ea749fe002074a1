"""The worked example of docs/rollouts.md: its commands, one after the other, as a reader would type them."""

import re
import shlex
from pathlib import Path

from tests.console.models.test_registry import said, small
from tests.console.models.test_rollouts import deployed, warm
from tests.console.program import Axon

PAGE = Path(__file__).resolve().parents[2] / "docs" / "rollouts.md"
assert small
assert deployed  # the fixtures


def commands() -> list[list[str]]:
    """The commands of the section's console blocks, without their comments."""
    (section,) = re.findall(r"^## A worked example$(.*?)^## ", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    blocks = re.findall(r"^```console\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    return [shlex.split(line, comments=True) for block in blocks for line in block.splitlines()]


def test_the_worked_example_works(deployed: Axon, tmp_path: Path) -> None:
    told = []
    for program, *arguments in commands():
        assert program == "axon"
        told.append(said(deployed, *arguments))
        if arguments[:2] == ["rollouts", "start"]:
            warm(tmp_path)
    assert len(told) == 10
    assert "5 %, 25 %, 50 %, 100 %" in told[1]
    assert "the stable version is small@v2" in told[-2]
    assert "the stable version is small@v1" in told[-1]
