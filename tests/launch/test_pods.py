"""The pods that a cluster is asked for: what a template need not say, and the one that comes with the release."""

from pathlib import Path
from typing import Any

import pytest

from axon.adapters.launch.kubernetes import KubernetesLauncher, read_template
from axon.adapters.launch.kubernetes_api import KubernetesApi
from axon.domain.fleet.replica import Group, ReplicaSpec
from axon.errors import Misconfigured
from axon.settings import load
from tests.launch.cluster import NAMESPACE, Cluster, served

EXAMPLE = Path(__file__).parents[2] / "deploy/kubernetes/worker-template.yaml"
BARE = {"spec": {"containers": [{"name": "worker", "image": "axon:1"}]}}
SPEC = ReplicaSpec(version="qwen@v2", label="v2")


async def pod_of(template: object, *, ranks: int = 1) -> dict[str, Any]:
    """The spec of the pod that the API is sent for a template; it validates what it is sent."""
    cluster = Cluster()
    async with served(cluster) as address, KubernetesApi(NAMESPACE, server=address) as api:
        launcher = KubernetesLauncher(api, template, fleet="prod", stop_s=45.2)
        spec = ReplicaSpec(version=SPEC.version, label=SPEC.label, ranks=ranks)
        await launcher.ensure(Group("small").replica(0), spec, term=1)
    cluster.settle()
    pod: dict[str, Any] = cluster.pods()[0]["spec"]
    return pod


@pytest.mark.parametrize("ranks", [1, 2])
async def test_a_pod_has_the_time_to_drain_before_the_cluster_kills_it(ranks: int) -> None:
    assert (await pod_of(BARE, ranks=ranks))["terminationGracePeriodSeconds"] == 46


async def test_a_pod_is_not_told_of_services_whose_variables_look_like_settings() -> None:
    # A Service "axon-gateway" would set AXON_GATEWAY_PORT=tcp://… in every pod beside it.
    assert (await pod_of(BARE))["enableServiceLinks"] is False


async def test_what_a_template_says_is_kept() -> None:
    own = {"terminationGracePeriodSeconds": 120, "enableServiceLinks": True, **BARE["spec"]}
    pod = await pod_of({"spec": own})
    assert (pod["terminationGracePeriodSeconds"], pod["enableServiceLinks"]) == (120, True)


async def test_the_example_of_a_template_makes_pods_whose_variables_are_settings() -> None:
    container = (await pod_of(read_template(str(EXAMPLE))))["containers"][0]
    told = {each["name"]: each.get("value", "text") for each in container["env"]}
    settings = load(environ={name: value for name, value in told.items() if name.startswith("AXON_")}).settings
    assert settings.lifecycle.drain_s > 0
    assert told.keys() >= {"AXON_QUEUE", "AXON_LIVE", "AXON_STORE", "AXON_ZONE", "AXON_WORKER_NAME"}


@pytest.mark.parametrize("fleet", ["", "Prod", "a_b", "team/a", "x" * 50, "-a"])
async def test_a_fleet_whose_name_the_cluster_would_refuse_is_refused_at_once(fleet: str) -> None:
    with pytest.raises(Misconfigured, match="namespace"):
        KubernetesLauncher(KubernetesApi(NAMESPACE), BARE, fleet=fleet)
