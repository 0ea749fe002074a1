"""``axon config show --describe`` is read in a terminal of any width."""

import pytest

from axon.console.config import description
from axon.settings import describe
from tests.console.program import Axon


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_no_line_is_wider_than_the_terminal(columns: int) -> None:
    for each in describe():
        lines = description(each, columns).splitlines()
        assert lines[0].startswith(f"{each.name}: ")
        assert all(len(line) <= max(columns, len(each.name) + 1) for line in lines)


def test_every_setting_is_described_in_the_width_that_is_there(axon: Axon) -> None:
    shown = axon("config", "show", "--describe", COLUMNS="72").stdout
    assert max(len(line) for line in shown.splitlines()) <= 72
    assert all(f"{each.name}: " in shown for each in describe())
