"""Tables and messages on a terminal: what a server says cannot steer it."""

import pytest

from axon import cli
from axon.console.tables import print_table
from axon.errors import AxonError


def test_no_cell_steers_the_terminal_or_breaks_its_row(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("name", "role"), [("a\x1b[31mb\u202e\nc", "engine")])
    title, row = capsys.readouterr().out.splitlines()
    assert title.split() == ["name", "role"]
    assert row.split() == ["a\\x1b[31mb\\u202e\\nc", "engine"]


def test_no_message_of_a_server_steers_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*arguments: object, **named: object) -> None:
        raise AxonError("bad \x1b[31m\x07")

    monkeypatch.setattr(cli, "app", fails)
    with pytest.raises(SystemExit):
        cli.main(["top"])
    assert capsys.readouterr().err == "axon: bad \\x1b[31m\\x07\n"
