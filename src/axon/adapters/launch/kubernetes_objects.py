"""Replicas as objects of a cluster, and back: names, manifests, what pods say. Pure.

A group is one Deployment, or one LeaderWorkerSet where a replica is several ranks. Its replicas are counted, not named:
a replica's index is the place of its pod among those that stay, oldest first.
"""

import copy
import hashlib
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from math import ceil
from typing import Any

import msgspec

from axon.adapters.launch.kubernetes_api import DEPLOYMENTS, LEADER_WORKER_SETS, Kind, Manifest
from axon.domain.fleet.replica import Group, Launched, LaunchState, ReplicaSpec
from axon.errors import Misconfigured

FLEET, GROUP = "axon.dev/fleet", "axon.dev/group"
"""Labels of all that is launched: the fleet's name, and the name of the group's object."""
WHAT, STOPPED = "axon.dev/replica", "axon.dev/stopped"
"""Annotations: the group and its spec as JSON; the uids of pods that were told to stop, with spaces between."""
COST = "controller.kubernetes.io/pod-deletion-cost"
_FIRST_LEAVING = 1_000_000
"""Indexes from here on are those of pods that leave: their places are free for others."""
_INDEX = "leaderworkerset.sigs.k8s.io/group-index"
_RANK = "leaderworkerset.sigs.k8s.io/worker-index"
_ZONE = "topology.kubernetes.io/zone"
_BAD = re.compile(r"[^a-z0-9]+")
_FLEET_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")


class _What(msgspec.Struct, frozen=True):
    """What the annotation of an object says."""

    deployment: str
    letter: str
    pool: str
    spec: ReplicaSpec


def kind_of(spec: ReplicaSpec) -> Kind:
    """The kind of object that runs such replicas."""
    return LEADER_WORKER_SETS if spec.ranks > 1 else DEPLOYMENTS


def object_name(fleet: str, group: Group) -> str:
    """The name of a group's object: readable, at most 50 characters, and no other group's."""
    digest = hashlib.sha256(f"{fleet}\0{group}".encode()).hexdigest()[:8]
    words = _BAD.sub("-", f"{group.deployment}-{group.letter}-{group.pool}".lower()).strip("-")[:34].strip("-")
    return f"axon-{words}-{digest}" if words else f"axon-{digest}"


def selector(fleet: str) -> str:
    """The labels by which everything of a fleet is found."""
    return f"{FLEET}={fleet}"


def check_fleet(fleet: str) -> str:
    """The fleet's name, which is a label and part of a name there; raises ``Misconfigured`` if it cannot be."""
    if not _FLEET_NAME.fullmatch(fleet):
        raise Misconfigured(
            f"namespace = {fleet!r} names no fleet on Kubernetes: it may have 1 to 40 small letters, digits and '-', "
            "and begins and ends with a letter or digit."
        )
    return fleet


def with_defaults(template: Manifest, stop_s: float) -> Manifest:
    """The template with what it does not say: time to drain, and no variables of the namespace's services. These would
    look like settings: a Service ``axon-gateway`` sets ``AXON_GATEWAY_PORT``."""
    own = {"terminationGracePeriodSeconds": ceil(stop_s), "enableServiceLinks": False, **template["spec"]}
    return {**template, "spec": own}


def check_template(template: object) -> Manifest:
    """The pod template that replicas are made from; raises ``Misconfigured`` if it is none."""
    spec = template.get("spec") if isinstance(template, dict) else None
    containers = spec.get("containers") if isinstance(spec, dict) else None
    if not isinstance(template, dict) or not isinstance(containers, list) or not containers:
        raise Misconfigured(
            "control.kubernetes_template is no pod template: it needs spec.containers, the worker's first."
        )
    return template


def manifest_of(template: Manifest, fleet: str, group: Group, spec: ReplicaSpec, replicas: int) -> dict[str, Any]:
    """The object of a new group."""
    name = object_name(fleet, group)
    labels = {FLEET: fleet, GROUP: name, "app.kubernetes.io/managed-by": "axon-control"}
    pod = _pod(template, labels, group, spec)
    metadata = {"name": name, "labels": labels, "annotations": {WHAT: _encode(group, spec)}}
    kind = kind_of(spec)
    if kind is LEADER_WORKER_SETS:
        own: dict[str, Any] = {
            "replicas": replicas,
            "startupPolicy": "LeaderCreated",
            "leaderWorkerTemplate": {
                "size": spec.ranks,
                "restartPolicy": "RecreateGroupOnPodRestart",
                "workerTemplate": pod,
            },
        }
        return {"apiVersion": kind.api, "kind": "LeaderWorkerSet", "metadata": metadata, "spec": own}
    own = {
        "replicas": replicas,
        "revisionHistoryLimit": 0,
        "selector": {"matchLabels": {GROUP: name}},
        "template": pod,
    }
    return {"apiVersion": kind.api, "kind": "Deployment", "metadata": metadata, "spec": own}


def _pod(template: Manifest, labels: Mapping[str, str], group: Group, spec: ReplicaSpec) -> dict[str, Any]:
    pod: dict[str, Any] = copy.deepcopy({"metadata": template.get("metadata") or {}, "spec": template["spec"]})
    pod["metadata"]["labels"] = {**(pod["metadata"].get("labels") or {}), **labels}
    worker = pod["spec"]["containers"][0]
    worker["args"] = [
        *("worker", "--deployment", group.deployment, "--version", spec.label),
        *(("--pool", group.pool) if group.pool else ()),
    ]
    by_name = {"name": "AXON_WORKER_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    worker["env"] = [*(worker.get("env") or []), by_name]
    _reserve(worker, spec)
    spread = {
        "maxSkew": 1,
        "topologyKey": _ZONE,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {GROUP: labels[GROUP]}},
    }
    pod["spec"].setdefault("topologySpreadConstraints", [spread])
    return pod


def _reserve(worker: dict[str, Any], spec: ReplicaSpec) -> None:
    """Asks for the memory and the GPUs that the spec needs."""
    resources = worker.setdefault("resources", {})
    if spec.memory_bytes:
        resources.setdefault("requests", {})["memory"] = str(spec.memory_bytes)
        resources.setdefault("limits", {})["memory"] = str(spec.memory_bytes)
    if spec.devices:
        resources.setdefault("limits", {})["nvidia.com/gpu"] = str(spec.devices)


def _encode(group: Group, spec: ReplicaSpec) -> str:
    return msgspec.json.encode(_What(group.deployment, group.letter, group.pool, spec)).decode()


def group_of(manifest: Manifest) -> tuple[Group, ReplicaSpec] | None:
    """The group whose object this is, and its spec; None for an object that is no group's."""
    text = (manifest["metadata"].get("annotations") or {}).get(WHAT, "")
    try:
        what = msgspec.json.decode(text, type=_What)
    except msgspec.MsgspecError:
        return None
    return Group(what.deployment, what.letter, what.pool), what.spec


def replicas_of(manifest: Manifest) -> int:
    return int((manifest.get("spec") or {}).get("replicas", 1))


def stopped_of(manifest: Manifest) -> frozenset[str]:
    """The uids of the pods that were told to stop."""
    return frozenset(str((manifest["metadata"].get("annotations") or {}).get(STOPPED, "")).split())


def launched_of(manifest: Manifest, pods: Sequence[Manifest]) -> list[Launched]:
    """The replicas of a group's object, one for each pod that leads one, and one for each that has no pod yet."""
    known = group_of(manifest)
    if known is None:
        return []
    group, spec = known
    replicas, stopped, since = replicas_of(manifest), stopped_of(manifest), _time(manifest["metadata"])
    leading = [pod for pod in pods if (pod["metadata"].get("labels") or {}).get(_RANK, "0") == "0"]
    leading.sort(key=lambda pod: (_time(pod["metadata"]), pod["metadata"]["name"]))
    alive = [pod for pod in leading if not pod["metadata"].get("deletionTimestamp")]
    # The cluster takes pods that are not ready first: where it took others, the marked ones stay.
    surplus = max(0, len(alive) - replicas)
    marked = [pod for pod in alive if pod["metadata"]["uid"] in stopped][:surplus]
    staying = [pod for pod in alive if pod not in marked and not _beyond(pod, replicas)]
    leaving = [pod for pod in leading if pod not in staying]
    found = [
        _launched(group, spec, _index(pod, place), pod, LaunchState.STOPPING if pod in leaving else None)
        for pods_of, first in ((staying, 0), (leaving, _FIRST_LEAVING))
        for place, pod in enumerate(pods_of, first)
    ]
    taken = {each.name.index for each in found}
    missing = [index for index in range(replicas) if index not in taken][: max(0, replicas - len(staying))]
    found += [
        Launched(
            name=group.replica(index),
            incarnation=f"{manifest['metadata']['uid']}/{index}",
            spec=spec,
            state=LaunchState.STARTING,
            since=since,
            problem=_why_no_pod(manifest),
        )
        for index in missing
    ]
    return found


def _launched(group: Group, spec: ReplicaSpec, index: int, pod: Manifest, state: LaunchState | None) -> Launched:
    metadata, status = pod["metadata"], pod.get("status") or {}
    containers = status.get("containerStatuses") or []
    problem = next((text for each in containers if (text := _problem(each))), str(status.get("message") or ""))
    if state is None:
        is_up = status.get("phase") == "Running"
        state = LaunchState.WAITING if problem else LaunchState.RUNNING if is_up else LaunchState.STARTING
    return Launched(
        name=group.replica(index),
        incarnation=metadata["uid"],
        spec=spec,
        state=state,
        since=_time(metadata),
        restarts=sum(int(each.get("restartCount", 0)) for each in containers),
        zone=(metadata.get("labels") or {}).get(_ZONE, ""),
        problem=problem[:500],
        worker=metadata["name"],
    )


def _problem(container: Manifest) -> str:
    """Why a container does not run; empty while it runs or is being made."""
    waiting = (container.get("state") or {}).get("waiting") or {}
    reason, message = waiting.get("reason", ""), waiting.get("message", "")
    return "" if reason in ("", "ContainerCreating", "PodInitializing") else f"{reason}: {message}".rstrip(": ")


def _why_no_pod(manifest: Manifest) -> str:
    conditions = (manifest.get("status") or {}).get("conditions") or []
    failures = [each for each in conditions if each.get("type") == "ReplicaFailure" and each.get("status") == "True"]
    return str(failures[0].get("message", ""))[:500] if failures else ""


def _beyond(pod: Manifest, replicas: int) -> bool:
    """Whether the pod is of a group of ranks beyond those that shall run: the highest ones go."""
    number = (pod["metadata"].get("labels") or {}).get(_INDEX)
    return number is not None and int(number) >= replicas


def _index(pod: Manifest, place: int) -> int:
    number = (pod["metadata"].get("labels") or {}).get(_INDEX)
    return place if number is None or place >= _FIRST_LEAVING else int(number)


def _time(metadata: Mapping[str, Any]) -> float:
    text = str(metadata.get("creationTimestamp") or "")
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() if text else 0.0
