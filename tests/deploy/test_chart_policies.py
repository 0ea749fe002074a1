"""Network policies let in what each pod needs and nothing else: clients, the edge, monitors and a group's ranks."""

import copy
import json
from typing import Any

import pytest

from tests.deploy.chart import WITHOUT_EDGE, Object, Values, Workload, of_kind, rendered, selects, value_sets, workloads

ANYONE = "anyone"
Opening = tuple[int | str, str]
"""A port and who may come to it, as text."""
_ALL = {"app.kubernetes.io/name": "axon", "app.kubernetes.io/instance": "axon"}
_RANK = "leaderworkerset.sigs.k8s.io/name"
RANKS = {
    "podSelector": {
        "matchLabels": {**_ALL, "axon.dev/role": "worker"},
        "matchExpressions": [{"key": _RANK, "operator": "Exists"}],
    }
}


def complaints(objects: list[Object], values: Values) -> list[str]:
    """Where a pod is more open than it need be, or less, a sentence for each."""
    found = []
    for pod in workloads(objects):
        mine = policies_of(pod, objects)
        if {direction for each in mine for direction in each["policyTypes"]} != {"Ingress", "Egress"}:
            found.append(f"{pod.name} is not denied what no rule allows.")
        opened, wanted = openings(pod, mine), needed(pod, values)
        found += [f"{pod.name} is open on {port} for {who}." for port, who in sorted(opened - wanted, key=str)]
        found += [f"{pod.name} is not open on {port} for {who}." for port, who in sorted(wanted - opened, key=str)]
        for rule in (rule for each in mine for rule in each.get("egress", [])):
            if not rule.get("ports") and rule.get("to") != [RANKS]:
                found.append(f"{pod.name} may go anywhere.")
    return found


def policies_of(pod: Workload, objects: list[Object]) -> list[Object]:
    """The policies that the pod has in a cluster, where a group's pods have a label of their group."""
    labels = {**pod.labels, **({_RANK: pod.name} if pod.kind == "LeaderWorkerSet" else {})}
    specs = [each["spec"] for each in of_kind(objects, "NetworkPolicy")]
    return [each for each in specs if selects(each["podSelector"], labels)]


def openings(pod: Workload, policies: list[Object]) -> set[Opening]:
    """Each port that is open, with each peer that may come to it."""
    numbers = {each["name"]: each["containerPort"] for each in pod.container.get("ports", [])}
    found: set[Opening] = set()
    for rule in (rule for each in policies for rule in each.get("ingress") or []):
        ports = [port_of(each, numbers) for each in rule.get("ports") or [{}]]
        peers = [text_of(each) for each in rule["from"]] if rule.get("from") else [ANYONE]
        found |= {(port, peer) for port in ports for peer in peers if port is not None}
    return found


def port_of(port: Object, numbers: dict[str, int]) -> int | str | None:
    """The port's number, or in words what is more than one port; None for a name that the pod does not have."""
    if "port" not in port or "endPort" in port:
        return f"ports {port.get('port', 'of any number')} to {port.get('endPort', 'the last')}"
    if port.get("protocol", "TCP") != "TCP":
        return f"{port['protocol']} {port['port']}"
    return numbers.get(port["port"]) if isinstance(port["port"], str) else int(port["port"])


def text_of(peer: Any) -> str:
    return json.dumps(peer, sort_keys=True)


def needed(pod: Workload, values: Values) -> set[Opening]:
    """What must be open on the pod, and nothing else may."""
    net, role = values["networkPolicy"], pod.labels["axon.dev/role"]
    clients = [text_of(each) for each in net["clients"]] or [ANYONE]
    monitoring = [text_of(each) for each in net["monitoring"] or [{"namespaceSelector": {}}]]
    edge = text_of({"podSelector": {"matchLabels": {**_ALL, "app.kubernetes.io/component": "edge"}}})
    metrics = {each["containerPort"] for each in pod.container.get("ports", []) if each["name"] == "metrics"}
    found: set[Opening] = {(port, who) for port in metrics for who in monitoring}
    if role == "edge":
        found |= {(8080, who) for who in clients}
    if role == "gateway":
        found |= {(8000, who) for who in ([edge] if values["edge"]["enabled"] else clients)}
        found |= {(50051, who) for who in clients}  # gRPC does not go through the edge
    if pod.kind == "LeaderWorkerSet":
        found.add((str(port_of({}, {})), text_of(RANKS)))
    return found


@pytest.mark.parametrize("values", sorted(value_sets()))
def test_every_pod_is_as_open_as_it_must_be_and_no_more(values: str) -> None:
    assert complaints(rendered(values), value_sets()[values]) == []


def policy(objects: list[Object], name: str) -> Object:
    (found,) = [each["spec"] for each in of_kind(objects, "NetworkPolicy") if each["metadata"]["name"] == name]
    return dict(found)


EVERYWHERE: Object = {"ipBlock": {"cidr": "0.0.0.0/0"}}
OPENED: dict[str, tuple[str, Object, str]] = {
    "all": ("axon-deny", {}, "axon-control is open on ports of any number to the last for anyone."),
    "all-of-gateways": ("axon-gateway", {}, "axon-gateway is open on ports of any number to the last for anyone."),
    "past-the-edge": ("axon-gateway", {"ports": [{"port": 8000}]}, "axon-gateway is open on 8000 for anyone."),
    "past-the-edge-by-name": (
        "axon-gateway",
        {"ports": [{"port": "http"}]},
        "axon-gateway is open on 8000 for anyone.",
    ),
    "from-an-address": (
        "axon-gateway",
        {"ports": [{"port": 8000}], "from": [EVERYWHERE]},
        f"axon-gateway is open on 8000 for {text_of(EVERYWHERE)}.",
    ),
    "metrics": ("axon-common", {"ports": [{"port": "metrics"}]}, "axon-control is open on 8003 for anyone."),
    "a-range": (
        "axon-edge",
        {"ports": [{"port": 1, "endPort": 65535}]},
        "axon-edge is open on ports 1 to 65535 for anyone.",
    ),
    "datagrams": ("axon-edge", {"ports": [{"port": 53, "protocol": "UDP"}]}, "axon-edge is open on UDP 53 for anyone."),
}
"""Rules for what comes in, each with the policy that it is planted in and one of the complaints."""


@pytest.mark.parametrize("name", OPENED)
def test_a_rule_that_opens_more_would_be_found(name: str) -> None:
    objects = copy.deepcopy([each for each in rendered("ha") if each["kind"] in ("NetworkPolicy", "Deployment")])
    place, rule, said = OPENED[name]
    assert complaints(objects, value_sets()["ha"]) == []
    found = of_kind(objects, "NetworkPolicy")
    (planted,) = [each["spec"] for each in found if each["metadata"]["name"] == place]
    planted.setdefault("ingress", []).append(rule)
    assert said in complaints(objects, value_sets()["ha"])


@pytest.mark.parametrize("rule", [{}, {"to": [EVERYWHERE]}], ids=str)
def test_a_way_out_to_anywhere_would_be_found(rule: Object) -> None:
    objects = copy.deepcopy([each for each in rendered("ha") if each["kind"] in ("NetworkPolicy", "Deployment")])
    policy(objects, "axon-services")["egress"].append(rule)
    assert "axon-gateway may go anywhere." in complaints(objects, value_sets()["ha"])


def test_policies_that_are_gone_would_be_missed() -> None:
    objects = of_kind(rendered("ha"), "Deployment")
    said = complaints(objects, value_sets()["ha"])
    assert "axon-edge is not denied what no rule allows." in said
    assert "axon-edge is not open on 8080 for anyone." in said


def test_without_an_edge_a_gateway_that_is_open_for_more_than_clients_would_be_found() -> None:
    objects, values = copy.deepcopy(rendered(WITHOUT_EDGE)), value_sets()[WITHOUT_EDGE]
    (rule,) = policy(objects, "axon-gateway")["ingress"]
    assert rule.pop("from") == values["networkPolicy"]["clients"]
    assert "axon-gateway is open on 8000 for anyone." in complaints(objects, values)
