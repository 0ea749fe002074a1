"""``axon plans``: the plan that tenants are on is among those that are listed."""

import json

from tests.test_cli import Axon


def test_the_default_plan_is_listed_and_shown_before_anybody_made_it(axon: Axon) -> None:
    assert axon("keys", "create", "--tenant", "acme").returncode == 0
    (tenant,) = json.loads(axon("tenants", "list", "--json").stdout)
    assert [plan["id"] for plan in json.loads(axon("plans", "list", "--json").stdout)] == [tenant["plan"]]
    assert axon("plans", "show", tenant["plan"]).returncode == 0
    assert axon("plans", "create", "default", "--limit", "weight=2").returncode == 0
    (plan,) = json.loads(axon("plans", "list", "--json").stdout)
    assert plan["limits"] == {"weight": 2.0}
