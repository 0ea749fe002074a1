"""The cost of each AWS environment is added up from its sizes and the noted list prices."""

import json
import tomllib
from typing import Any

import pytest

from tests.deploy.terraform import scripts

cost = scripts.load("terraform_cost")
ENVIRONMENTS = sorted(path.name for path in (cost.AWS / "environments").iterdir())


TABLE = tomllib.loads((cost.AWS / "prices.toml").read_text())
USAGE = dict.fromkeys(TABLE["usage"]["dev"], 0.0) | {"spot_share": 0.5}


def _table(**hourly: float) -> Any:
    """Prices of nothing but what is asked about; a month has 10 hours."""
    monthly, used, fixed = (
        dict.fromkeys(each, 0.0) for each in (TABLE["monthly"], TABLE["used"], TABLE["hourly"]["fixed"])
    )
    kinds = {"instance": {"m": 1.0, "g": 10.0}, "database": {"d": 0.0}, "cache": {"c": 0.0}, "broker": {"b": 0.0}}
    by_the_hour = {**kinds, "fixed": {**fixed, **hourly}}
    return cost.Prices({"hours_a_month": 10, "hourly": by_the_hour, "monthly": monthly, "used": used})


def _sizes(**other: object) -> dict[str, object]:
    return {
        "node_groups": {"general": {"instance_types": ["m"], "min_size": 2, "max_size": 4}},
        "gpu_groups": {},
        "database": {"instance_class": "d", "allocated_storage_gib": 0},
        "cache": {"node_type": "c", "replicas": 0},
        "broker": {"instance_type": "b", "deployment_mode": "SINGLE_INSTANCE"},
        "search": None,
        "grafana_enabled": False,
        "nat_per_zone": False,
        **other,
    }


def _sum(sizes: dict[str, object], prices: Any) -> tuple[float, float]:
    lines = cost.estimate(sizes, prices, USAGE)
    return sum(line.least for line in lines), sum(line.most for line in lines)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_everything_in_an_environment_has_a_price(name: str) -> None:
    sizes, prices, usage = cost.load(name)
    lines = cost.estimate(sizes, prices, usage)
    assert all(0 < line.least <= line.most or line.name.startswith("GPU nodes") for line in lines)
    text = cost.report(name, lines, prices)
    assert "list prices of eu-central-1 noted" in text
    assert "to be checked" in text
    assert text.splitlines()[-1].startswith("together")


def test_nodes_are_paid_by_their_least_and_largest_number() -> None:
    assert _sum(_sizes(), _table()) == (20.0, 40.0)


def test_spot_capacity_costs_its_share_and_an_idle_gpu_group_nothing() -> None:
    spot = {"zone": "a", "instance_type": "g", "gpus": 1, "min_size": 0, "max_size": 2, "capacity": "spot"}
    assert _sum(_sizes(gpu_groups={"l4": spot}), _table()) == (20.0, 40.0 + 2 * 10.0 * 10 * 0.5)


def test_a_disk_of_a_spot_node_costs_as_much_as_any() -> None:
    prices = _table()
    prices.table["monthly"]["disk_gib"] = 1.0
    nodes = {"instance_types": ["m"], "min_size": 1, "max_size": 1, "disk_gib": 7, "capacity_type": "SPOT"}
    gpus = {"zone": "a", "instance_type": "g", "gpus": 1, "min_size": 1, "max_size": 1, "capacity": "spot"}
    sizes = _sizes(node_groups={"general": nodes}, gpu_groups={"l4": gpus})
    assert _sum(sizes, prices)[0] == (10.0 * 0.5 + 7) + (100.0 * 0.5 + 200)


def test_a_gateway_in_each_zone_costs_three_times_one() -> None:
    prices = _table(nat_gateway=1.0)
    assert _sum(_sizes(nat_per_zone=True), prices)[0] - _sum(_sizes(), prices)[0] == 20.0


def test_a_size_without_a_price_is_named() -> None:
    sizes = _sizes(node_groups={"general": {"instance_types": ["m99.huge"], "min_size": 1, "max_size": 1}})
    with pytest.raises(cost.PriceMissing, match=r"m99\.huge has no price: put it into \[hourly\.instance\]"):
        cost.estimate(sizes, _table(), USAGE)


def test_prices_of_another_region_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    folder = tmp_path / "environments" / "dev"
    folder.mkdir(parents=True)
    (tmp_path / "prices.toml").write_text((cost.AWS / "prices.toml").read_text())
    sizes = json.loads((cost.AWS / "environments" / "dev" / "sizes.auto.tfvars.json").read_text())
    (folder / "sizes.auto.tfvars.json").write_text(json.dumps({**sizes, "region": "us-east-1"}))
    monkeypatch.setattr(cost, "AWS", tmp_path)
    with pytest.raises(cost.PriceMissing, match="note those of its region"):
        cost.load("dev")


def test_the_script_counts_what_the_modules_make() -> None:
    modules = cost.AWS / "modules"
    text = {
        name: "\n".join(path.read_text() for path in sorted((modules / name).glob("*.tf")))
        for name in ("network", "edge", "platform")
    }
    endpoints = text["network"].partition('variable "interface_endpoints"')[2].partition("default")[2].partition("]")[0]
    assert endpoints.count('"') // 2 == cost.ENDPOINTS
    assert text["edge"].count("\n  rule {") == cost.FIREWALL_RULES
    assert text["platform"].partition("  secrets = {")[2].partition("}")[0].count(' = "') == cost.SECRETS
    purposes = [each.partition("\n  }")[0] for each in text["platform"].split("purposes = {")[1:]]
    assert sum(each.count(" = [") for each in purposes) == cost.KEYS
