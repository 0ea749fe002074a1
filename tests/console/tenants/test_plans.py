"""``axon plans``: the plan that tenants are on is among those that are listed."""

import json

from tests.console.program import Axon


def test_the_default_plan_is_listed_and_shown_before_anybody_made_it(axon: Axon) -> None:
    assert axon("keys", "create", "--tenant", "acme").returncode == 0
    (tenant,) = json.loads(axon("tenants", "list", "--json").stdout)
    assert [plan["id"] for plan in json.loads(axon("plans", "list", "--json").stdout)] == [tenant["plan"]]
    assert axon("plans", "show", tenant["plan"]).returncode == 0
    assert axon("plans", "create", "default", "--limit", "weight=2").returncode == 0
    (plan,) = json.loads(axon("plans", "list", "--json").stdout)
    assert plan["limits"] == {"weight": 2.0}


def test_without_a_plan_the_list_says_which_limits_hold(axon: Axon) -> None:
    assert axon("keys", "create", "--tenant", "acme").returncode == 0
    listed = axon("plans", "list")
    assert listed.stderr.startswith("No plan has been made. Tenants are on 'default',")
    assert "axon plans create" in listed.stderr
    assert "those of the server's settings" in listed.stdout
    made = axon("plans", "create", "pro")
    assert made.stdout == "Plan pro is made: its limits are those of the server's settings.\n"
    assert axon("plans", "list").stderr == ""
