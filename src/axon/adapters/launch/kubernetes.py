"""Launches replicas on a Kubernetes cluster: Deployments by their scale, LeaderWorkerSets for groups of ranks.

It needs few rights, all of them in one namespace: see deploy/kubernetes/launcher-role.yaml. Pods that end by themselves
are started again by the cluster.
"""

import os
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path

from axon.adapters.launch.kubernetes_api import (
    DEPLOYMENTS,
    LEADER_WORKER_SETS,
    LEASES,
    PODS,
    Kind,
    KubernetesApi,
    Manifest,
    Outrun,
)
from axon.adapters.launch.kubernetes_objects import (
    COST,
    GROUP,
    STOPPED,
    check_fleet,
    check_template,
    group_of,
    kind_of,
    launched_of,
    manifest_of,
    object_name,
    replicas_of,
    selector,
    stopped_of,
    with_defaults,
)
from axon.domain.fleet.replica import Launched, LaunchState, ReplicaName, ReplicaSpec
from axon.errors import DependencyDown, Misconfigured, StaleTerm

_TRIES = 5
"""Others change the same objects, the cluster's own controllers above all."""


def read_template(path: str) -> object:
    """The pod template in a YAML file; raises ``Misconfigured``."""
    import yaml  # comes with the cluster's client

    if not path:
        raise Misconfigured("The launcher kubernetes needs control.kubernetes_template, the pod template of a worker.")
    try:
        return check_template(yaml.safe_load(Path(os.path.expanduser(path)).read_text()))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise Misconfigured(f"control.kubernetes_template = {path} cannot be read: {error}") from error


class KubernetesLauncher:
    """A ``Launcher``; the one who makes it enters and leaves ``api``."""

    def __init__(self, api: KubernetesApi, template: object, *, fleet: str, stop_s: float = 45.0) -> None:
        """``template`` is the pod template of a worker, whose first container gets the arguments; ``fleet`` is a label
        that tells two fleets of one namespace apart. A worker has ``stop_s`` to drain before it is killed, where the
        template does not say otherwise."""
        self._api, self._fleet = api, check_fleet(fleet)
        self._template = with_defaults(check_template(template), stop_s)

    async def list(self) -> Sequence[Launched]:
        labels = selector(self._fleet)
        objects = [each for kind in (DEPLOYMENTS, LEADER_WORKER_SETS) for each in await self._api.list(kind, labels)]
        pods: defaultdict[str, list[Manifest]] = defaultdict(list)
        for pod in await self._api.list(PODS, labels):
            pods[(pod["metadata"].get("labels") or {}).get(GROUP, "")].append(pod)
        return [launched for each in objects for launched in launched_of(each, pods[each["metadata"]["name"]])]

    async def ensure(self, name: ReplicaName, spec: ReplicaSpec, *, term: int) -> None:
        """The scale of the group is at least what the replica's index asks for. An empty group is made anew, so that
        it has the spec and the template of today."""
        kind, wanted = kind_of(spec), name.index + 1

        async def order() -> None:
            found = await self._api.get(kind, object_name(self._fleet, name.group))
            await self._check_term(term)
            manifest = manifest_of(self._template, self._fleet, name.group, spec, wanted)
            if found is None:
                await self._api.create(kind, manifest)
            elif replicas_of(found) == 0:
                changes = {"metadata": {"annotations": manifest["metadata"]["annotations"]}, "spec": manifest["spec"]}
                await self._api.patch(kind, found, changes)
            elif replicas_of(found) < wanted:
                await self._api.patch(kind, found, {"spec": {"replicas": wanted}})

        await self._until_not_outrun(order)

    async def stop(self, name: ReplicaName, incarnation: str, *, term: int) -> None:
        """Takes one from the group's scale, and lets the cluster take this pod. The object says which pods were told
        to stop, in the same change, so that the order counts once."""

        async def order() -> None:
            kind, found = await self._find(name)
            await self._check_term(term)
            if found is None or replicas_of(found) == 0:
                return
            pods = await self._api.list(PODS, f"{GROUP}={found['metadata']['name']}")
            here = {launched.incarnation: launched for launched in launched_of(found, pods)}
            launched = here.get(incarnation)
            if launched is None or launched.state is LaunchState.STOPPING:
                return
            if kind is LEADER_WORKER_SETS and launched.name.index < replicas_of(found) - 1:
                return  # only the last group of ranks can go; the next look sees it again
            await self._mark(pods, incarnation)
            pods_here = {pod["metadata"]["uid"] for pod in pods}
            gone = " ".join(sorted((stopped_of(found) | {incarnation}) & pods_here))
            annotations = {"annotations": {STOPPED: gone}}
            await self._api.patch(kind, found, {"metadata": annotations, "spec": {"replicas": replicas_of(found) - 1}})

        await self._until_not_outrun(order)

    async def _find(self, name: ReplicaName) -> tuple[Kind, Manifest | None]:
        for kind in (DEPLOYMENTS, LEADER_WORKER_SETS):
            found = await self._api.get(kind, object_name(self._fleet, name.group))
            if found is not None and group_of(found) is not None:
                return kind, found
        return DEPLOYMENTS, None

    async def _mark(self, pods: Sequence[Manifest], incarnation: str) -> None:
        """Makes the pod the cheapest to delete, so that the smaller scale takes this one."""
        for pod in pods:
            if pod["metadata"]["uid"] == incarnation:
                await self._api.patch(PODS, pod, {"metadata": {"annotations": {COST: "-1000"}}})

    async def _check_term(self, term: int) -> None:
        """Raises ``StaleTerm`` if a higher term was seen; keeps this one if it is the highest.

        The object that is to be changed was read before: if a new leader changes it after this look, the change of the
        old one is outrun.
        """
        name = f"axon-{self._fleet}-launcher"
        lease = await self._api.get(LEASES, name)
        if lease is None:
            metadata = {"name": name, "labels": {"app.kubernetes.io/managed-by": "axon-control"}}
            manifest = {"apiVersion": LEASES.api, "kind": "Lease", "metadata": metadata}
            await self._api.create(LEASES, {**manifest, "spec": {"leaseTransitions": term}})
            return
        seen = int((lease.get("spec") or {}).get("leaseTransitions", 0))
        if seen > term:
            raise StaleTerm(f"The order is of term {term}, and term {seen} has begun.")
        if seen < term:
            await self._api.patch(LEASES, lease, {"spec": {"leaseTransitions": term}})

    async def _until_not_outrun(self, order: Callable[[], Awaitable[None]]) -> None:
        for _ in range(_TRIES):
            with suppress(Outrun):
                await order()
                return
        raise DependencyDown("Somebody else changes the same objects of the cluster all the time.")
