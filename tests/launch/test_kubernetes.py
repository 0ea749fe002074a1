"""The launcher on a cluster: what it sends, what it reads, and what it does when the API is slow, wrong or away."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from axon.adapters.launch.kubernetes import KubernetesLauncher
from axon.adapters.launch.kubernetes_api import KubernetesApi
from axon.adapters.launch.kubernetes_objects import check_template, object_name
from axon.domain.fleet.replica import Group, Launched, LaunchState, ReplicaSpec
from axon.errors import DependencyDown, Misconfigured, StaleTerm
from tests.launch.cluster import NAMESPACE, Cluster, allowed, served

TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "axon-worker"}},
    "spec": {
        "terminationGracePeriodSeconds": 120,
        "containers": [{"name": "worker", "image": "axon:1", "env": [{"name": "AXON_LIVE", "value": "redis://r"}]}],
    },
}
GROUP = Group("small", "b", "gold")
SPEC = ReplicaSpec(version="qwen@v2", label="v2", memory_bytes=1 << 30, devices=1)
RANKS = ReplicaSpec(version="large@v1", label="v1", devices=8, ranks=2)


@pytest.fixture
async def cluster() -> Cluster:
    return Cluster()


@asynccontextmanager
async def opened(cluster: Cluster, *, deadline_s: float = 20.0) -> AsyncIterator[KubernetesLauncher]:
    async with (
        served(cluster) as address,
        KubernetesApi(NAMESPACE, server=address, deadline_s=deadline_s) as api,
    ):
        yield KubernetesLauncher(api, TEMPLATE, fleet="prod")


@pytest.fixture
async def launcher(cluster: Cluster) -> AsyncIterator[KubernetesLauncher]:
    async with opened(cluster) as launcher:
        yield launcher


def by_index(launched: list[Launched], state: LaunchState = LaunchState.RUNNING) -> dict[int, Launched]:
    return {each.name.index: each for each in launched if each.state is state}


async def running(cluster: Cluster, launcher: KubernetesLauncher) -> dict[int, Launched]:
    cluster.settle()
    cluster.run_pods()
    return by_index(list(await launcher.list()))


class TestDeployments:
    async def test_replicas_run_and_say_what_they_are(self, cluster: Cluster, launcher: KubernetesLauncher) -> None:
        for index in range(3):
            await launcher.ensure(GROUP.replica(index), SPEC, term=1)
        assert {each.state for each in await launcher.list()} == {LaunchState.STARTING}
        found = await running(cluster, launcher)
        assert sorted(found) == [0, 1, 2]
        assert {(each.name.group, each.spec) for each in found.values()} == {(GROUP, SPEC)}
        pod = cluster.pods()[0]
        container = pod["spec"]["containers"][0]
        assert container["args"] == ["worker", "--deployment", "small", "--version", "v2", "--pool", "gold"]
        assert container["resources"]["limits"] == {"memory": str(1 << 30), "nvidia.com/gpu": "1"}
        assert found[0].announced == pod["metadata"]["name"]
        assert TEMPLATE["spec"]["containers"][0].keys() == {"name", "image", "env"}, "the template itself is untouched"

    async def test_one_order_for_the_highest_index_makes_all_below_it(
        self, cluster: Cluster, launcher: KubernetesLauncher
    ) -> None:
        await launcher.ensure(GROUP.replica(4), SPEC, term=1)
        await launcher.ensure(GROUP.replica(1), SPEC, term=1)
        assert sorted(await running(cluster, launcher)) == [0, 1, 2, 3, 4]

    async def test_the_pod_that_is_told_to_stop_goes_and_no_other(
        self, cluster: Cluster, launcher: KubernetesLauncher
    ) -> None:
        await launcher.ensure(GROUP.replica(2), SPEC, term=1)
        middle = (await running(cluster, launcher))[1]
        for _ in range(2):  # told twice before the cluster has acted
            await launcher.stop(middle.name, middle.incarnation, term=1)
        assert [each.incarnation for each in by_index(list(await launcher.list()), LaunchState.STOPPING).values()] == [
            middle.incarnation
        ]
        cluster.settle()
        await launcher.stop(middle.name, middle.incarnation, term=1)  # while it drains
        cluster.finish()
        await launcher.stop(middle.name, middle.incarnation, term=1)  # when it is gone
        found = await running(cluster, launcher)
        assert sorted(found) == [0, 1]
        assert middle.incarnation not in {each.incarnation for each in found.values()}

    async def test_a_place_is_free_while_its_pod_drains(self, cluster: Cluster, launcher: KubernetesLauncher) -> None:
        await launcher.ensure(GROUP.replica(1), SPEC, term=1)
        last = (await running(cluster, launcher))[1]
        await launcher.stop(last.name, last.incarnation, term=1)
        cluster.settle()
        await launcher.ensure(GROUP.replica(1), SPEC, term=1)
        found = await running(cluster, launcher)
        assert sorted(found) == [0, 1]
        assert found[1].incarnation != last.incarnation
        assert len(by_index(list(await launcher.list()), LaunchState.STOPPING)) == 1

    async def test_where_the_cluster_takes_another_pod_the_marked_one_stays(
        self, cluster: Cluster, launcher: KubernetesLauncher
    ) -> None:
        await launcher.ensure(GROUP.replica(1), SPEC, term=1)
        found = await running(cluster, launcher)
        other = next(pod for pod in cluster.pods() if pod["metadata"]["uid"] != found[1].incarnation)
        other["status"] = {"phase": "Pending"}  # such pods are taken first
        await launcher.stop(found[1].name, found[1].incarnation, term=1)
        cluster.settle()
        cluster.finish()
        assert [each.incarnation for each in (await running(cluster, launcher)).values()] == [found[1].incarnation]

    async def test_an_empty_group_begins_again_with_its_new_spec(
        self, cluster: Cluster, launcher: KubernetesLauncher
    ) -> None:
        await launcher.ensure(GROUP.replica(0), SPEC, term=1)
        only = (await running(cluster, launcher))[0]
        await launcher.stop(only.name, only.incarnation, term=1)
        cluster.settle()
        cluster.finish()
        assert list(await launcher.list()) == []
        newer = ReplicaSpec(version="qwen@v3", label="v3")
        await launcher.ensure(GROUP.replica(0), newer, term=1)
        assert (await running(cluster, launcher))[0].spec == newer

    async def test_a_pod_that_does_not_run_says_why(self, cluster: Cluster, launcher: KubernetesLauncher) -> None:
        await launcher.ensure(GROUP.replica(0), SPEC, term=1)
        await running(cluster, launcher)
        waiting = {"reason": "CrashLoopBackOff", "message": "back-off 40s"}
        cluster.pods()[0]["status"]["containerStatuses"] = [{"restartCount": 4, "state": {"waiting": waiting}}]
        cluster.pods()[0]["metadata"]["labels"]["topology.kubernetes.io/zone"] = "eu-1a"
        [pod] = await launcher.list()
        assert (pod.state, pod.restarts, pod.zone) == (LaunchState.WAITING, 4, "eu-1a")
        assert pod.problem == "CrashLoopBackOff: back-off 40s"

    async def test_a_replica_that_gets_no_pod_says_why(self, cluster: Cluster, launcher: KubernetesLauncher) -> None:
        await launcher.ensure(GROUP.replica(0), SPEC, term=1)
        failure = {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota: gpus"}
        cluster.alone("deployments")["status"] = {"conditions": [failure]}
        [launched] = await launcher.list()
        assert (launched.state, launched.problem) == (LaunchState.STARTING, "exceeded quota: gpus")
        await launcher.stop(launched.name, launched.incarnation, term=1)
        await launcher.stop(launched.name, launched.incarnation, term=1)
        assert list(await launcher.list()) == []


class TestRanks:
    async def test_a_group_of_ranks_is_one_replica(self, cluster: Cluster, launcher: KubernetesLauncher) -> None:
        await launcher.ensure(Group("large").replica(1), RANKS, term=1)
        found = await running(cluster, launcher)
        assert sorted(found) == [0, 1]
        assert len(cluster.pods()) == 4

    async def test_the_last_group_goes_first(self, cluster: Cluster, launcher: KubernetesLauncher) -> None:
        await launcher.ensure(Group("large").replica(2), RANKS, term=1)
        found = await running(cluster, launcher)
        await launcher.stop(found[0].name, found[0].incarnation, term=1)
        assert cluster.alone("leaderworkersets")["spec"]["replicas"] == 3, "the cluster cannot take the first"
        await launcher.stop(found[2].name, found[2].incarnation, term=1)
        cluster.settle()
        assert list(by_index(list(await launcher.list()), LaunchState.STOPPING)) == [1_000_000]
        cluster.finish()
        assert sorted(await running(cluster, launcher)) == [0, 1]

    async def test_a_cluster_without_them_has_none(self, cluster: Cluster, launcher: KubernetesLauncher) -> None:
        cluster.knows_groups = False
        await launcher.ensure(GROUP.replica(0), SPEC, term=1)
        assert sorted(await running(cluster, launcher)) == [0]
        with pytest.raises(DependencyDown, match="does not know this kind"):
            await launcher.ensure(Group("large").replica(0), RANKS, term=1)


class TestTerms:
    async def test_an_old_leader_is_refused(self, cluster: Cluster, launcher: KubernetesLauncher) -> None:
        await launcher.ensure(GROUP.replica(0), SPEC, term=7)
        only = (await running(cluster, launcher))[0]
        with pytest.raises(StaleTerm):
            await launcher.ensure(GROUP.replica(5), SPEC, term=6)
        with pytest.raises(StaleTerm):
            await launcher.stop(only.name, only.incarnation, term=6)
        assert sorted(await running(cluster, launcher)) == [0]

    async def test_a_leader_that_is_replaced_between_look_and_change_changes_nothing(
        self, cluster: Cluster, launcher: KubernetesLauncher
    ) -> None:
        await launcher.ensure(GROUP.replica(0), SPEC, term=1)

        def replaced(plural: str) -> None:
            if plural == "deployments":
                cluster.before_patch = lambda plural: None
                cluster.alone("leases")["spec"]["leaseTransitions"] = 2
                deployment = cluster.alone("deployments")  # the new leader acts on it
                deployment["spec"]["replicas"] = 3
                cluster.touch(deployment)

        cluster.before_patch = replaced
        with pytest.raises(StaleTerm):
            await launcher.ensure(GROUP.replica(8), SPEC, term=1)
        assert cluster.alone("deployments")["spec"]["replicas"] == 3


class TestTrouble:
    async def test_many_orders_at_once_all_count(self, cluster: Cluster, launcher: KubernetesLauncher) -> None:
        names = [Group(f"d{number}").replica(0) for number in range(8)]
        await asyncio.gather(*(launcher.ensure(name, SPEC, term=1) for name in names))
        assert {each.name for each in await launcher.list()} == set(names)

    async def test_a_list_is_whole_or_fails(self, cluster: Cluster, launcher: KubernetesLauncher) -> None:
        cluster.page = 2
        await launcher.ensure(GROUP.replica(6), SPEC, term=1)
        assert len(await running(cluster, launcher)) == 7
        pods = iter([None, web.Response(status=500, text="oops")])
        cluster.wrong = lambda verb, plural: next(pods, None) if plural == "pods" else None
        with pytest.raises(DependencyDown, match="500"):
            await launcher.list()

    @pytest.mark.parametrize(
        "answer",
        [
            web.Response(status=200, text="<html>a proxy's page</html>"),
            web.Response(status=200, text="[]", content_type="application/json"),
            web.Response(status=200, text="{}", content_type="application/json"),
            web.Response(status=503, text="{"),
            web.Response(status=403, text='{"message": "forbidden"}'),
        ],
    )
    async def test_nonsense_is_an_outage(
        self, cluster: Cluster, launcher: KubernetesLauncher, answer: web.Response
    ) -> None:
        cluster.wrong = lambda verb, plural: answer.__class__(
            status=answer.status, text=answer.text, content_type=answer.content_type
        )
        with pytest.raises(DependencyDown):
            await launcher.list()

    async def test_slow_is_an_outage_after_the_deadline(self, cluster: Cluster) -> None:
        async with opened(cluster, deadline_s=0.2) as launcher:
            cluster.slow_s = 30.0
            with pytest.raises(DependencyDown, match=r"within 0\.2 s"):
                await launcher.list()

    async def test_away_is_an_outage(self, unused_tcp_port: int) -> None:
        async with KubernetesApi(NAMESPACE, server=f"http://127.0.0.1:{unused_tcp_port}") as api:
            with pytest.raises(DependencyDown, match="cannot be reached"):
                await KubernetesLauncher(api, TEMPLATE, fleet="prod").list()

    async def test_an_object_of_somebody_else_is_left_alone(
        self, cluster: Cluster, launcher: KubernetesLauncher
    ) -> None:
        labels = {"axon.dev/fleet": "prod"}
        cluster.add("deployments", {"metadata": {"name": "stray", "labels": labels}, "spec": {"replicas": 4}})
        assert list(await launcher.list()) == []


async def test_no_right_is_unused(cluster: Cluster) -> None:
    async with opened(cluster) as launcher:
        for term, group, spec in ((1, GROUP, SPEC), (2, Group("large"), RANKS)):
            await launcher.ensure(group.replica(0), spec, term=term)
            await launcher.ensure(group.replica(1), spec, term=term)
            found = await running(cluster, launcher)
            await launcher.stop(found[1].name, found[1].incarnation, term=term)
            cluster.settle()
            cluster.finish()
            cluster.objects.pop(("pods", found[0].announced))
    assert set(cluster.calls) == allowed()


def test_names_of_objects_are_short_and_apart() -> None:
    groups = [Group("Qwen/3.5_large-" + "x" * 80), Group("a", "b"), Group("a-b"), Group("a", "", "b"), Group("日本")]
    names = [object_name("prod", group) for group in groups]
    assert len(set(names)) == len(names)
    assert all(len(name) <= 50 and name.replace("-", "").isalnum() and name.isascii() for name in names)


@pytest.mark.parametrize("template", [None, [], {}, {"spec": {}}, {"spec": {"containers": []}}])
def test_a_template_without_a_container_is_refused(template: object) -> None:
    with pytest.raises(Misconfigured, match="pod template"):
        check_template(template)


async def test_outside_of_a_cluster_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(Misconfigured, match="kubectl proxy"):
        async with KubernetesApi(NAMESPACE):
            pass
