"""Every command that a dialogue can show is one that the command line takes, whatever names there are."""

import shlex
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.console import command_of, dialog, enter, parsed
from tests.browser.serving import Served
from tests.browser.visiting import visit
from tests.services import warm

BAD = '-x\'; echo $HOME "`id`" #'
CASES: dict[str, Any] = {
    "createTenant": {"id": "-acme", "name": BAD, "plan": "pro", "limits": {"weight": 2, "models": ["a", "b"]}},
    "changeTenant": {"id": "acme", "name": "Acme", "plan": "pro", "limits": {"weight": 2, "pool": None}},
    "suspendTenant": "acme",
    "resumeTenant": "acme",
    "removeTenant": "-acme",
    "createPlan": {"id": "pro", "limits": {"tokens_per_day": 1000}},
    "changePlan": {"id": "pro", "limits": {"tokens_per_day": None}},
    "removePlan": "pro",
    "createKey": {"tenant": "acme", "name": BAD, "scopes": ["read", "admin"], "expires": 2592000},
    "rotateKey": {"id": "3f9c2k7q", "overlap": 0},
    "revokeKey": "3f9c2k7q",
    "drainWorker": "-host-1f3a-0",
    "startRollout": {
        "deployment": "small",
        "version": "v2",
        "steps": [1, 12.5, 100],
        "bake": 300,
        "tolerance": {"min_samples": 20},
    },
    "changeDeployment": {"id": "small", "min": 0, "max": 4},
    "createDeployment": {"id": "small", "model": "small", "version": "small@v1", "min": 1, "max": 1},
    "removeDeployment": "small",
    "setAlias": {"id": "best", "deployment": "small"},
    "removeAlias": "best",
    "addAdapter": {"model": "small", "name": "sql", "source": "hf://acme/sql@main", "tenant": "acme"},
    "removeAdapter": {"model": "small", "name": "sql"},
    "addModel": {"name": "small", "source": "-odd/folder", "label": "v2", "deploy": True},
    "addPrice": {
        "model": "small",
        "version": "small@v1",
        "prompt": 0.15,
        "cached": 0,
        "output": 0.6,
        "currency": "EUR",
    },
    "audit": {"kind": "key", "text": BAD},
    "trace": "chatcmpl-01k",
    "slowest": {"most": 100, "since": 3600},
}
STEPS = ("pause", "resume", "step", "promote", "abort", "rollback")


def test_the_command_line_takes_every_command(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/sign-in")
    names = page.evaluate(
        """async () => {
          const { commands } = await import(`${location.origin}/ui/console/commands.js`);
          globalThis.axonCommands = commands;
          return Object.keys(commands);
        }"""
    )
    assert set(names) == {*CASES, "stepRollout"}, "a new command needs a case here"

    def line(name: str, values: Any) -> dict[str, Any]:
        return parsed(page.evaluate("([name, values]) => axonCommands[name](values)", [name, values]))

    read = {name: line(name, values) for name, values in CASES.items()}
    assert read["createTenant"]["name"] == BAD
    assert read["createTenant"]["limit"] == ["weight=2", "models=a,b"]
    assert (read["createKey"]["scope"], read["createKey"]["expires_in"]) == (["read", "admin"], "30d")
    assert read["changeTenant"]["unset"] == ["pool"]
    assert (read["startRollout"]["steps"], read["startRollout"]["bake"]) == ("1,12.5,100", "5m")
    for step in STEPS:
        assert line("stepRollout", {"deployment": "small", "step": step, "reason": BAD})["name"] == "small"


def test_flags_of_the_server_come_before_the_names(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/sign-in")
    store, asked, needed = page.evaluate(
        """async () => {
          const { commands, needs, setPlace } = await import(`${location.origin}/ui/console/commands.js`);
          const variables = ["AXON_STORE", "AXON_PEPPER"];
          setPlace({ store: ["--data-dir", "/a b"], server: [], by_address: true, variables }, "https://x/axon");
          const lines = [commands.removeTenant("-acme"), commands.drainWorker("w")];
          return [...lines, lines.map(needs)];
        }"""
    )
    assert (parsed(store)["data_dir"], parsed(store)["tenant_id"]) == ("/a b", "-acme")
    assert (parsed(asked)["url"], parsed(asked)["worker"]) == ("https://x/axon", "w")
    assert "AXON_STORE and AXON_PEPPER" in needed[0]
    assert "AXON_API_KEY" in needed[1]


def test_commands_do_what_they_say_in_a_shell_of_their_own(page: Page, served: Served, tmp_path: Path) -> None:
    enter(page, served, "tenants")
    page.get_by_role("button", name="Make a tenant").click()
    found = dialog(page)
    found.get_by_label("Id").fill("by-hand")
    made = _typed(served, command_of(found), tmp_path)
    assert made.returncode == 0, made.stderr
    found.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("link", name="by-hand")).to_be_visible()

    visit(page, "audit?text=by-hand")
    expect(page.get_by_text("add tenant")).to_be_visible()
    listed = _typed(served, page.get_by_text("In a terminal:").locator("code").inner_text(), tmp_path)
    assert "by-hand" in listed.stdout, listed.stderr

    visit(page, "requests")
    shown = page.get_by_text("In a terminal:").locator("code")
    expect(shown).to_contain_text("axon trace")
    slow = _typed(served, shown.inner_text(), tmp_path, AXON_API_KEY=served.admin_key)
    assert slow.returncode == 0, slow.stderr
    assert "turn" in slow.stdout


def _typed(served: Served, line: str, folder: Path, **environ: str) -> Any:
    """Runs a line as somebody does who has copied it: in another folder, and knowing no setting of the server."""
    own = {name: value for name, value in served.server.environment.items() if not name.startswith("AXON_")}
    return warm.run(shlex.split(line)[1:], environ={**own, **environ}, folder=folder)
