"""The runbooks: one for each alert, with three parts, that name metrics and commands which exist."""

import re
from pathlib import Path

import pytest

from axon.cli import app
from axon.monitoring.names import metrics_in
from axon.monitoring.rules import ALERTS, alert_names

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDER = REPOSITORY / "docs" / "runbooks"
PARTS = ["What to look at", "What to do", "How to see that it worked"]


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    assert {path.stem for path in FOLDER.glob("*.md")} == set(alert_names())


@pytest.mark.parametrize("name", alert_names())
def test_a_runbook_says_what_to_look_at_what_to_do_and_how_to_see_that_it_worked(name: str) -> None:
    page = (FOLDER / f"{name}.md").read_text()
    assert page.startswith(f"# {name}\n")
    assert re.findall(r"^## (.*)$", page, re.M) == PARTS
    first, _, last = (part for part in re.split(r"^## .*$", page, flags=re.M)[1:])
    read = {metric for alert in ALERTS if alert.name == name for metric in metrics_in(alert.condition)}
    assert any(metric in last for metric in read or {"up"}), "the last part does not name what the alert reads"
    assert metrics_in(first), "names no metric"


@pytest.mark.parametrize("name", alert_names())
def test_commands_in_a_runbook_exist(name: str) -> None:
    page = (FOLDER / f"{name}.md").read_text()
    for command in re.findall(r"`axon ([a-z]+)(?: ([a-z]+))?", page):
        assert command[0] in _commands(), command
        assert command[1] in {"", *_commands()[command[0]]} or not _commands()[command[0]], command


def _commands() -> dict[str, set[str]]:
    """The subcommands of each command; none for one that has no subcommand."""
    found: dict[str, set[str]] = {
        (each.name or each.callback.__name__): set() for each in app.registered_commands if each.callback
    }
    for group in app.registered_groups:
        assert group.typer_instance is not None
        of = group.typer_instance.registered_commands
        found[str(group.name)] = {each.name or each.callback.__name__ for each in of if each.callback}
    return found
