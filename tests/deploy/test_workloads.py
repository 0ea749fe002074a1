"""What every pod of the chart must have: probes, a budget, spread, time to drain, room to write, ways out."""

from typing import Any

import pytest

from tests.deploy.chart import AWS, SETS, Workload, of_kind, rendered, selects, workloads

LEEWAY_S = 10
"""Seconds of grace beyond what a stop takes."""

each_workload = pytest.mark.parametrize("values", [*SETS, AWS])


def pods_of(values: str) -> list[Workload]:
    """Pods that serve until they are told to stop."""
    found = [each for each in every_pod(values) if each.kind != "CronJob"]
    assert len(found) >= 3
    return found


def every_pod(values: str) -> list[Workload]:
    """Those, and the jobs that run and end."""
    return list(workloads(rendered(values)))


def is_ours(pod: Workload) -> bool:
    return pod.labels["axon.dev/role"] != "edge"


@each_workload
def test_probes_ask_the_right_questions(values: str) -> None:
    for pod in pods_of(values):
        container = pod.container
        probes = {name: container[f"{name}Probe"] for name in ("startup", "liveness", "readiness")}
        ports = {port["name"] for port in container["ports"]}
        assert {probe["httpGet"]["port"] for probe in probes.values()} <= ports
        if is_ours(pod):
            assert probes["liveness"]["httpGet"]["path"] == "/livez", "never a path that asks services"
            assert probes["readiness"]["httpGet"]["path"] == "/readyz"
            hung_s = probes["liveness"]["terminationGracePeriodSeconds"]
            assert pre_stop_s(container) < hung_s < pod.spec["terminationGracePeriodSeconds"]
        if pod.labels["axon.dev/role"] == "worker":
            startup = probes["startup"]
            assert startup["periodSeconds"] * startup["failureThreshold"] >= 600, "a model takes minutes to load"


def pre_stop_s(container: dict[str, Any]) -> int:
    """The seconds that a container sleeps before it is told to stop."""
    hook = (container.get("lifecycle") or {}).get("preStop") or {}
    if "exec" in hook:
        return int(hook["exec"]["command"][-1].split()[1].rstrip(";"))
    return int((hook.get("sleep") or {"seconds": 0})["seconds"])


@each_workload
def test_grace_is_longer_than_the_stop(values: str) -> None:
    for pod in pods_of(values):
        if is_ours(pod):
            drain_s = float(pod.env["AXON_LIFECYCLE_DRAIN_S"]) + float(pod.env.get("AXON_LIFECYCLE_NOTICE_S", 0))
        else:
            conf = next(each for each in of_kind(rendered(values), "ConfigMap") if "nginx.conf" in each["data"])
            (line,) = [each for each in conf["data"]["nginx.conf"].splitlines() if "worker_shutdown_timeout" in each]
            drain_s = float(line.split()[1].rstrip("s;"))
        needed_s = pre_stop_s(pod.container) + drain_s + LEEWAY_S
        assert pod.spec["terminationGracePeriodSeconds"] >= needed_s, pod.name
        if pod.labels["axon.dev/role"] in ("gateway", "edge"):
            assert pre_stop_s(pod.container) >= 15, "a balancer needs as long to notice"


@each_workload
def test_pods_write_where_they_may_and_nowhere_else(values: str) -> None:
    for pod in every_pod(values):
        assert pod.spec["enableServiceLinks"] is False, "AXON_GATEWAY_PORT=tcp://… would look like a setting"
        writable = {mount["mountPath"] for mount in pod.container["volumeMounts"] if not mount.get("readOnly")}
        assert "/tmp" in writable
        if is_ours(pod):
            assert pod.env["AXON_DATA_DIR"] in writable


@each_workload
def test_only_a_control_that_launches_has_a_token(values: str) -> None:
    objects = rendered(values)
    accounts = {each["metadata"]["name"] for each in of_kind(objects, "ServiceAccount")}
    for pod in every_pod(values):
        assert pod.spec["serviceAccountName"] in accounts
        launches = pod.env.get("AXON_CONTROL_LAUNCHER") == "kubernetes"
        assert pod.spec["automountServiceAccountToken"] is launches
    assert bool(of_kind(objects, "Role")) is any(
        pod.env.get("AXON_CONTROL_LAUNCHER") == "kubernetes" for pod in pods_of(values)
    )


@each_workload
def test_every_folder_in_memory_or_on_the_node_has_a_limit(values: str) -> None:
    for pod in every_pod(values):
        for volume in pod.spec["volumes"]:
            assert "emptyDir" not in volume or volume["emptyDir"].get("sizeLimit"), volume["name"]


@each_workload
def test_pods_are_spread_and_evicted_one_at_a_time(values: str) -> None:
    budgets = of_kind(rendered(values), "PodDisruptionBudget")
    for pod in pods_of(values):
        mine = [each for each in budgets if selects(each["spec"]["selector"], pod.labels)]
        assert [each["spec"]["maxUnavailable"] for each in mine] == [1], pod.name
        zones = [
            each
            for each in pod.spec["topologySpreadConstraints"]
            if each["topologyKey"] == "topology.kubernetes.io/zone"
        ]
        (zone,) = zones
        leader = {"leaderworkerset.sigs.k8s.io/worker-index": "0"} if pod.kind == "LeaderWorkerSet" else {}
        assert zone["maxSkew"] == 1
        assert selects(zone["labelSelector"], {**pod.labels, **leader})


@each_workload
def test_pods_are_replaced_without_a_gap(values: str) -> None:
    for pod in pods_of(values):
        if pod.kind != "Deployment":
            continue
        strategy = pod.owner["spec"]["strategy"]["rollingUpdate"]
        has_gpus = "nvidia.com/gpu" in pod.container["resources"]["limits"]
        assert strategy == ({"maxUnavailable": 1, "maxSurge": 0} if has_gpus else {"maxUnavailable": 0, "maxSurge": 1})
        assert selects(pod.owner["spec"]["selector"], pod.labels)


@each_workload
def test_every_pod_reaches_what_it_needs(values: str) -> None:
    policies = of_kind(rendered(values), "NetworkPolicy")
    for pod in every_pod(values):
        mine = [each["spec"] for each in policies if selects(each["spec"]["podSelector"], pod.labels)]
        reached = {port["port"] for each in mine for rule in each.get("egress", []) for port in rule.get("ports", [])}
        assert 53 in reached, "names"
        if is_ours(pod):
            assert {5432, 6379} <= reached
            assert {5671, 5672} & reached
        else:
            assert reached == {53, 8000}, "nginx reaches gateways alone"


@each_workload
def test_services_and_monitors_find_their_pods(values: str) -> None:
    objects, pods = rendered(values), pods_of(values)
    services = of_kind(objects, "Service")
    for service in services:
        found = [pod for pod in pods if selects({"matchLabels": service["spec"]["selector"]}, pod.labels)]
        assert found, service["metadata"]["name"]
        for port in service["spec"]["ports"]:
            for pod in found:
                assert port["targetPort"] in {each["name"] for each in pod.container["ports"]}
    for monitor in of_kind(objects, "ServiceMonitor"):
        watched = [each for each in services if selects(monitor["spec"]["selector"], each["metadata"]["labels"])]
        assert len(watched) == 1
        assert watched[0]["metadata"]["labels"][monitor["spec"]["jobLabel"]].startswith("axon-")
    monitored = {each["metadata"]["labels"].get("axon.dev/job") for each in services} - {None}
    assert monitored == {"axon-gateway", "axon-control", "axon-worker"}


def test_gpus_are_tolerated_and_asked_for() -> None:
    (pod,) = [each for each in pods_of("eks-gpu") if each.kind == "launched"]
    assert pod.container["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"} in pod.spec["tolerations"]
    (ranks,) = [each for each in pods_of("multinode-lws") if each.kind == "LeaderWorkerSet"]
    assert ranks.container["resources"]["limits"]["vpc.amazonaws.com/efa"] == "32"
    shm = next(volume for volume in ranks.spec["volumes"] if volume["name"] == "shm")
    assert shm["emptyDir"]["medium"] == "Memory"


def test_the_balancer_is_slower_than_silence_and_quicker_than_grace() -> None:
    objects = rendered("eks-gpu")
    (ingress,) = of_kind(objects, "Ingress")
    annotations = ingress["metadata"]["annotations"]
    attributes = dict(
        pair.split("=")
        for key in ("load-balancer-attributes", "target-group-attributes")
        for pair in annotations[f"alb.ingress.kubernetes.io/{key}"].split(",")
    )
    (edge,) = [pod for pod in pods_of("eks-gpu") if pod.labels["axon.dev/role"] == "edge"]
    assert attributes["idle_timeout.timeout_seconds"] == "300"
    assert int(attributes["deregistration_delay.timeout_seconds"]) < edge.spec["terminationGracePeriodSeconds"]
    (gateway,) = [pod for pod in pods_of("eks-gpu") if pod.labels["axon.dev/role"] == "gateway"]
    assert gateway.env["AXON_GATEWAY_PROXIES"] == "2", "the balancer and nginx"
