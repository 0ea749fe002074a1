"""How tests use the console: signing in, dialogues, tables, and the commands that dialogues show. Knows no view."""

import json
import re
import shlex
from typing import Any

import typer.main
from playwright.sync_api import Locator, Page, expect

from axon.cli import app
from tests.browser import visiting
from tests.browser.serving import Served

expect.set_options(timeout=30_000)  # the cores may be busy


def enter(page: Page, served: Served, view: str = "overview") -> None:
    """Signs in with the operator's key and opens a view."""
    visiting.enter(page, served, "console")
    expect(page.locator("#rooms a")).not_to_have_count(0)  # on a phone they are behind a button
    visiting.visit(page, view)


def row(page: Page, name: str | re.Pattern[str]) -> Locator:
    """The row of a table that its first cell names."""
    return page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=name))


def dialog(page: Page) -> Locator:
    """The dialogue that is open; the command that it shows is one that the command line takes."""
    found = page.get_by_role("dialog")
    expect(found).to_be_visible()
    parsed(command_of(found))
    return found


def command_of(found: Locator) -> str:
    """The command line that a dialogue shows."""
    return found.locator("pre.command").inner_text()


def confirm(found: Locator, action: str) -> None:
    """Presses the dialogue's button once; the dialogue closes."""
    parsed(command_of(found))
    found.get_by_role("button", name=action, exact=True).click()
    expect(found.locator("pre.command")).to_have_count(0)


def parsed(line: str) -> dict[str, Any]:
    """The parameters that the real command line reads from a line; raises what is wrong with it. Runs nothing."""
    program, *words = shlex.split(line)
    assert program == "axon"
    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    with command.make_context("axon", words) as context:
        return json.loads(json.dumps(context.params, default=str))  # type: ignore[no-any-return]
