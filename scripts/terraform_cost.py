"""Estimates what an AWS environment costs a month, from its sizes and the list prices noted in the repository.

python scripts/terraform_cost.py prod

The first figure is with every node group at its least size, the second with all at their largest. Prices are those of
``deploy/terraform/aws/prices.toml``, with their date and region: check them before you rely on the sum.
"""

import argparse
import json
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

AWS = Path(__file__).resolve().parents[1] / "deploy" / "terraform" / "aws"
ZONES = 3
ENDPOINTS = 6
"""Interface endpoints that the module network makes."""
KEYS = 9
SECRETS = 4
FIREWALL_RULES = 4
BROKER_GIB = 200
"""The disk of a broker's node, which Amazon MQ fixes."""


class PriceMissing(Exception):
    """A size has no price in the table."""


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that is paid for: at the least and at the largest sizes, in dollars a month."""

    name: str
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Prices:
    """The table of list prices."""

    table: Mapping[str, Any]

    def month(self, kind: str, name: str) -> float:
        """A month of one that is paid by the hour; raises ``PriceMissing``."""
        try:
            return float(self.table["hourly"][kind][name]) * float(self.table["hours_a_month"])
        except KeyError:
            raise PriceMissing(
                f"{name} has no price: put it into [hourly.{kind}] of prices.toml, with the region's list price."
            ) from None

    def __getitem__(self, name: str) -> float:
        """A price by the month or by what is used."""
        return float({**self.table["monthly"], **self.table["used"]}[name])


def estimate(sizes: Mapping[str, Any], prices: Prices, usage: Mapping[str, float]) -> list[Line]:
    """The lines of the environment's bill."""
    return [*_nodes(sizes, prices, usage), *_services(sizes, prices, usage), *_shared(sizes, prices, usage)]


def _nodes(sizes: Mapping[str, Any], prices: Prices, usage: Mapping[str, float]) -> Iterator[Line]:
    yield _fixed("EKS control plane", prices.month("fixed", "cluster"))
    for name, group in sizes["node_groups"].items():
        share = usage["spot_share"] if group.get("capacity_type") == "SPOT" else 1.0
        yield _group(f"nodes {name}", group["instance_types"][0], {"disk_gib": 100, **group}, share, prices)
    for name, group in sizes["gpu_groups"].items():
        share = usage["spot_share"] if group.get("capacity") == "spot" else 1.0
        yield _group(f"GPU nodes {name}", group["instance_type"], {"disk_gib": 200, **group}, share, prices)


def _group(name: str, instance: str, group: Mapping[str, Any], share: float, prices: Prices) -> Line:
    """Nodes of one kind. Spot capacity has its share of the instance's price; a disk costs the same on every node."""
    one = prices.month("instance", instance) * share + group["disk_gib"] * prices["disk_gib"]
    return Line(f"{name}: {instance}", group["min_size"] * one, group["max_size"] * one)


def _services(sizes: Mapping[str, Any], prices: Prices, usage: Mapping[str, float]) -> Iterator[Line]:
    database, cache, broker, search = sizes["database"], sizes["cache"], sizes["broker"], sizes["search"]
    disks = (
        database["allocated_storage_gib"] * prices["database_gib"]
        + (database.get("iops") or 0) * prices["database_iops"]
    )
    instances = ZONES * prices.month("database", database["instance_class"])
    yield _fixed(f"PostgreSQL: {ZONES} x {database['instance_class']}", instances + disks)
    nodes = 1 + cache["replicas"]
    yield _fixed(f"Valkey: {nodes} x {cache['node_type']}", nodes * prices.month("cache", cache["node_type"]))
    nodes = ZONES if broker["deployment_mode"] == "CLUSTER_MULTI_AZ" else 1
    one = prices.month("broker", broker["instance_type"]) + BROKER_GIB * prices["broker_gib"]
    yield _fixed(f"RabbitMQ: {nodes} x {broker['instance_type']}", nodes * one)
    if search:
        one = prices.month("search", search["instance_type"]) + search["disk_gib"] * prices["search_gib"]
        masters = ZONES * prices.month("search", search["master_type"]) if search.get("master_type") else 0.0
        yield _fixed(
            f"OpenSearch: {search['instance_count']} x {search['instance_type']}",
            search["instance_count"] * one + masters,
        )
    metrics = usage["million_samples"] * prices["million_samples"]
    people = usage["grafana_users"] * prices["grafana_user"] if sizes["grafana_enabled"] else 0.0
    yield _fixed("Prometheus and Grafana", metrics + people)


def _shared(sizes: Mapping[str, Any], prices: Prices, usage: Mapping[str, float]) -> Iterator[Line]:
    gateways = ZONES if sizes["nat_per_zone"] else 1
    out = gateways * prices.month("fixed", "nat_gateway") + usage["nat_gib"] * prices["nat_gib"]
    yield _fixed(
        f"NAT gateways: {gateways}, and endpoints",
        out + ENDPOINTS * ZONES * prices.month("fixed", "interface_endpoint"),
    )
    units = usage["load_balancer_units"] * prices.month("fixed", "load_balancer_unit")
    rules = prices["firewall"] + FIREWALL_RULES * prices["firewall_rule"]
    requests = usage["million_requests"] * prices["million_requests"]
    yield _fixed("Load balancer and firewall", prices.month("fixed", "load_balancer") + units + rules + requests)
    kept = usage["model_gib"] * (prices["model_gib"] + prices["replica_gib"])
    yield _fixed("Buckets and their replicas", kept + usage["changed_gib"] * prices["replicated_gib"])
    yield _fixed("Backups, in two regions", 2 * usage["backup_gib"] * prices["backup_gib"])
    places = KEYS * prices["key"] + 2 * SECRETS * prices["secret"]
    yield _fixed("Logs, keys and secrets", usage["log_gib"] * prices["log_gib"] + places)


def _fixed(name: str, dollars: float) -> Line:
    return Line(name, dollars, dollars)


def report(name: str, lines: list[Line], prices: Prices) -> str:
    """The estimate as a table."""
    table = prices.table
    head = f"{name}, dollars a month, without tax and traffic out"
    source = f"(list prices of {table['region']} noted {table['noted']}, to be checked)"
    rows = [f"{line.name:<44}{line.least:>12,.0f}{line.most:>12,.0f}" for line in lines]
    least, most = sum(line.least for line in lines), sum(line.most for line in lines)
    return "\n".join(
        [head, source, f"{'':<44}{'least':>12}{'most':>12}", *rows, f"{'together':<44}{least:>12,.0f}{most:>12,.0f}"]
    )


def load(name: str) -> tuple[Mapping[str, Any], Prices, Mapping[str, float]]:
    """Sizes, prices and assumed usage of an environment."""
    prices = Prices(tomllib.loads((AWS / "prices.toml").read_text()))
    sizes = json.loads((AWS / "environments" / name / "sizes.auto.tfvars.json").read_text())
    if sizes["region"] != prices.table["region"]:
        raise PriceMissing(
            f"The prices are of {prices.table['region']}, and {name} is in {sizes['region']}: note those of its region."
        )
    return sizes, prices, prices.table["usage"][name]


def main() -> int:
    environments = sorted(path.name for path in (AWS / "environments").iterdir())
    parser = argparse.ArgumentParser(description="Estimates what an AWS environment costs a month.")
    parser.add_argument("environment", choices=environments)
    name = parser.parse_args().environment
    try:
        sizes, prices, usage = load(name)
        print(report(name, estimate(sizes, prices, usage), prices))
    except PriceMissing as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
