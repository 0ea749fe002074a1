"""A double of a cluster's API: it validates what it is sent by the published schemas, allows what the role allows, and
acts as the controllers do. It can be slow, wrong and away.

It is no cluster: it schedules nothing, and pods are as it is told.
"""

import asyncio
import copy
import json
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import yaml
from aiohttp import web

RELEASE = "1.34"
ROLE = Path(os.environ.get("LAUNCHER_ROLE") or Path(__file__).parents[2] / "deploy/kubernetes/launcher-role.yaml")
"""The role whose rights the double gives; the chart's tests name the one that the chart renders."""
NAMESPACE = "serving"
_BEGAN = datetime(2026, 1, 1, tzinfo=UTC)

# The fields of a LeaderWorkerSet that are used, by the definition that its project publishes (v1).
_LWS: Mapping[str, Any] = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "apiVersion": {"const": "leaderworkerset.x-k8s.io/v1"},
        "kind": {"const": "LeaderWorkerSet"},
        "metadata": {"type": "object"},
        "status": {"type": "object"},
        "spec": {
            "type": "object",
            "required": ["leaderWorkerTemplate"],
            "additionalProperties": False,
            "properties": {
                "replicas": {"type": "integer", "minimum": 0},
                "startupPolicy": {"enum": ["LeaderCreated", "LeaderReady"]},
                "leaderWorkerTemplate": {
                    "type": "object",
                    "required": ["workerTemplate"],
                    "additionalProperties": False,
                    "properties": {
                        "size": {"type": "integer", "minimum": 1},
                        "restartPolicy": {"enum": ["None", "RecreateGroupOnPodRestart"]},
                        "workerTemplate": {"type": "object", "required": ["spec"]},
                    },
                },
            },
        },
    },
}


@dataclass
class Cluster:
    """The state of one namespace, and how the API behaves."""

    objects: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    """By plural and name."""
    calls: list[tuple[str, str, str]] = field(default_factory=list)
    """Verb, API group and plural of each call."""
    slow_s: float = 0.0
    wrong: Callable[[str, str], web.Response | None] = lambda verb, plural: None
    """Answers in place of the API."""
    before_patch: Callable[[str], None] = lambda plural: None
    """Runs between a patch's arrival and its comparison."""
    knows_groups: bool = True
    """Whether LeaderWorkerSets are installed."""
    page: int = 500
    settles: bool = False
    """Whether its controllers act after every call."""
    _version: int = 0
    _uid: int = 0

    def pods(self) -> list[dict[str, Any]]:
        return [each for (plural, _), each in self.objects.items() if plural == "pods"]

    def alone(self, plural: str) -> dict[str, Any]:
        [found] = [each for (kind, _), each in self.objects.items() if kind == plural]
        return found

    def add(self, plural: str, manifest: dict[str, Any]) -> dict[str, Any]:
        self._uid += 1
        metadata = manifest["metadata"]
        metadata["uid"] = f"uid-{self._uid}"
        metadata["creationTimestamp"] = (_BEGAN + timedelta(seconds=self._uid)).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.objects[plural, metadata["name"]] = manifest
        self.touch(manifest)
        return manifest

    def touch(self, manifest: dict[str, Any]) -> None:
        self._version += 1
        manifest["metadata"]["resourceVersion"] = str(self._version)

    def settle(self) -> None:
        """The controllers' work: as many pods as the scale says; pods that leave stay until ``finish``."""
        for (plural, name), each in list(self.objects.items()):
            if plural == "deployments":
                self._settle_deployment(name, each)
            elif plural == "leaderworkersets":
                self._settle_groups(name, each)

    def _settle_deployment(self, name: str, deployment: dict[str, Any]) -> None:
        mine = [pod for pod in self._pods_of(name) if "deletionTimestamp" not in pod["metadata"]]
        for _ in range(deployment["spec"]["replicas"] - len(mine)):
            self._add_pod(f"{name}-{self._uid}", deployment["spec"]["template"], {})
        mine.sort(key=lambda pod: (pod["status"]["phase"] == "Running", _cost(pod)))
        for pod in mine[: max(0, len(mine) - deployment["spec"]["replicas"])]:
            self.terminate(pod)

    def _settle_groups(self, name: str, groups: dict[str, Any]) -> None:
        template = groups["spec"]["leaderWorkerTemplate"]
        for index in range(groups["spec"]["replicas"]):
            for rank in range(template["size"]):
                own = f"{name}-{index}" if rank == 0 else f"{name}-{index}-{rank}"
                if ("pods", own) not in self.objects:
                    prefix = "leaderworkerset.sigs.k8s.io"
                    labels = {f"{prefix}/group-index": str(index), f"{prefix}/worker-index": str(rank)}
                    self._add_pod(own, template["workerTemplate"], labels)
        for pod in self._pods_of(name):
            if int(pod["metadata"]["labels"]["leaderworkerset.sigs.k8s.io/group-index"]) >= groups["spec"]["replicas"]:
                self.terminate(pod)

    def _pods_of(self, name: str) -> list[dict[str, Any]]:
        return [pod for pod in self.pods() if pod["metadata"]["labels"]["axon.dev/group"] == name]

    def _add_pod(self, name: str, template: Mapping[str, Any], labels: Mapping[str, str]) -> None:
        pod = copy.deepcopy(dict(template))
        pod["metadata"] = {**pod.get("metadata", {}), "name": name}
        pod["metadata"]["labels"] = {**pod["metadata"].get("labels", {}), **labels}
        kubernetes_validate.validate({"apiVersion": "v1", "kind": "Pod", **pod}, RELEASE, strict=True)
        pod["status"] = {"phase": "Pending"}
        self.add("pods", pod)

    def run_pods(self) -> None:
        for pod in self.pods():
            pod["status"] = {"phase": "Running", "containerStatuses": [{"restartCount": 0, "state": {"running": {}}}]}

    def terminate(self, pod: dict[str, Any]) -> None:
        pod["metadata"].setdefault("deletionTimestamp", "2026-01-01T01:00:00Z")
        self.touch(pod)

    def finish(self) -> None:
        """Pods that leave are gone."""
        for pod in self.pods():
            if "deletionTimestamp" in pod["metadata"]:
                del self.objects["pods", pod["metadata"]["name"]]


def _cost(pod: Mapping[str, Any]) -> int:
    annotations = pod["metadata"].get("annotations") or {}
    return int(annotations.get("controller.kubernetes.io/pod-deletion-cost", 0))


def allowed() -> set[tuple[str, str, str]]:
    """Verb, API group and plural of everything that the role allows."""
    return rights(ROLE)


def rights(role: Path) -> set[tuple[str, str, str]]:
    """What the role in this file allows."""
    return {
        (verb, group, plural)
        for rule in yaml.safe_load(role.read_text())["rules"]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for plural in rule["resources"]
    }


@asynccontextmanager
async def served(cluster: Cluster) -> AsyncIterator[str]:
    """The address of the double."""

    async def answer(request: web.Request) -> web.Response:
        answered = await _answer(cluster, request)
        if cluster.settles:
            cluster.settle()
            cluster.run_pods()
        return answered

    app = web.Application()
    app.router.add_route("*", "/{root:apis?}/{rest:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def _answer(cluster: Cluster, request: web.Request) -> web.Response:
    parts = request.path.split("/")[2:]
    group = "" if request.match_info["root"] == "api" else parts[0]
    *_, namespaces, namespace, plural = parts[: 5 if group else 4]
    name = parts[5 if group else 4] if len(parts) > (5 if group else 4) else ""
    verb = {"GET": "get" if name else "list", "POST": "create", "PATCH": "patch"}.get(request.method, request.method)
    cluster.calls.append((verb, group, plural))
    await asyncio.sleep(cluster.slow_s)
    if (wrong := cluster.wrong(verb, plural)) is not None:
        return wrong
    if (verb, group, plural) not in allowed() or (namespaces, namespace) != ("namespaces", NAMESPACE):
        return _status(403, f"{verb} of {plural} is forbidden")
    if plural == "leaderworkersets" and not cluster.knows_groups:
        return _status(404, "the server could not find the requested resource")
    match verb:
        case "list":
            return _list(cluster, plural, request)
        case "create":
            return _create(cluster, plural, await request.json())
        case "patch":
            return _patch(cluster, plural, name, request, await request.json())
    found = cluster.objects.get((plural, name))
    return web.json_response(found) if found else _status(404, f"{plural} {name} not found")


def _list(cluster: Cluster, plural: str, request: web.Request) -> web.Response:
    wanted = dict(each.split("=") for each in request.query["labelSelector"].split(","))
    matching = [
        each
        for (kind, _), each in cluster.objects.items()
        if kind == plural and wanted.items() <= (each["metadata"].get("labels") or {}).items()
    ]
    first, page = int(request.query.get("continue", 0)), min(cluster.page, int(request.query["limit"]))
    more = {"continue": str(first + page)} if len(matching) > first + page else {}
    return web.json_response({"items": matching[first : first + page], "metadata": more})


def _create(cluster: Cluster, plural: str, manifest: dict[str, Any]) -> web.Response:
    if (problem := _invalid(manifest)) is not None:
        return _status(422, problem)
    if (plural, manifest["metadata"]["name"]) in cluster.objects:
        return _status(409, "already exists")
    return web.json_response(cluster.add(plural, manifest), status=201)


def _patch(cluster: Cluster, plural: str, name: str, request: web.Request, changes: Any) -> web.Response:
    if request.content_type != "application/merge-patch+json":
        return _status(415, "no merge patch")
    cluster.before_patch(plural)
    found = cluster.objects.get((plural, name))
    if found is None:
        return _status(404, f"{plural} {name} not found")
    if changes["metadata"].get("resourceVersion") != found["metadata"]["resourceVersion"]:
        return _status(409, "the object has been modified")
    merged = _merged(found, changes)
    if plural != "pods" and (problem := _invalid(merged)) is not None:
        return _status(422, problem)
    cluster.objects[plural, name] = merged
    cluster.touch(merged)
    return web.json_response(merged)


def _merged(old: Any, new: Any) -> Any:
    """RFC 7396."""
    if not isinstance(new, dict):
        return new
    merged = dict(old) if isinstance(old, dict) else {}
    for key, value in new.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), value)
    return merged


def _invalid(manifest: dict[str, Any]) -> str | None:
    try:
        if manifest.get("kind") == "LeaderWorkerSet":
            jsonschema.validate(manifest, _LWS)
            pod = {"apiVersion": "v1", "kind": "Pod", **manifest["spec"]["leaderWorkerTemplate"]["workerTemplate"]}
            kubernetes_validate.validate(pod, RELEASE, strict=True)
        else:
            kubernetes_validate.validate(manifest, RELEASE, strict=True)
    except jsonschema.ValidationError as error:
        return f"{error.json_path}: {error.message}"
    return None


def _status(code: int, message: str) -> web.Response:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code}
    return web.Response(status=code, text=json.dumps(body), content_type="application/json")
