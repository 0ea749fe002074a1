"""Every command that a dialogue can show is one that the command line takes, whatever names there are."""

from typing import Any

from playwright.sync_api import Page

from tests.browser.console import parsed
from tests.browser.serving import Served

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
    "addPrice": {"model": "small", "prompt": 0.15, "cached": 0, "output": 0.6, "currency": "EUR"},
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
