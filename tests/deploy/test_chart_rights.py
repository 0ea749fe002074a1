"""Every container of every pod, those that run first with them, has few rights, limits, and an image of one version."""

import copy
import re

import pytest

from tests.deploy.chart import Object, Workload, rendered, value_sets, workloads

REHEARSED = "rehearsal-next"
"""Its images have the tag ``next``: no cluster runs them."""
_IMAGE = re.compile(r"[a-z0-9./-]+(?::v?\d[\w.-]*|(?::[\w.-]+)?@sha256:[0-9a-f]{64})")


def complaints(pod: Workload) -> list[str]:
    """What a pod may do that it need not, or lacks, a sentence for each."""
    spec, security = pod.spec, pod.spec.get("securityContext") or {}
    found = [f"{key} is set." for key in ("hostNetwork", "hostPID", "hostIPC", "ephemeralContainers") if spec.get(key)]
    found += [f"{each['name']} is a folder of the node." for each in spec.get("volumes", []) if "hostPath" in each]
    if security.get("runAsNonRoot") is not True or not security.get("runAsUser"):
        found.append("The pod may be root.")
    if security.get("seccompProfile") != {"type": "RuntimeDefault"}:
        found.append("The pod may make any system call.")
    return found + [f"{each['name']}: {said}" for each in pod.containers for said in container_complaints(each)]


def container_complaints(container: Object) -> list[str]:
    own, resources = container.get("securityContext") or {}, container.get("resources") or {}
    wanted = {
        "It is privileged.": not own.get("privileged"),
        "It may be root.": own.get("runAsUser", 1) > 0 and own.get("runAsNonRoot", True) is True,
        "It may gain rights.": own.get("allowPrivilegeEscalation") is False,
        "It has capabilities.": own.get("capabilities") == {"drop": ["ALL"]},
        "It can write to its image.": own.get("readOnlyRootFilesystem") is True,
        "It may make any system call.": own.get("seccompProfile", {"type": "RuntimeDefault"})["type"] != "Unconfined",
        "It has no requests.": {"cpu", "memory"} <= set(resources.get("requests") or {}),
        "It has no limits.": {"cpu", "memory"} <= set(resources.get("limits") or {}),
        "Its image is of no version.": _IMAGE.fullmatch(container.get("image", "")) is not None,
        "It takes a port of the node.": not any(port.get("hostPort") for port in container.get("ports", [])),
    }
    return [said for said, holds in wanted.items() if not holds]


@pytest.mark.parametrize("values", sorted(value_sets().keys() - {REHEARSED}))
def test_no_container_has_more_rights_than_it_needs(values: str) -> None:
    found = {pod.name: complaints(pod) for pod in workloads(rendered(values))}
    assert len(found) >= 3
    assert {name: said for name, said in found.items() if said} == {}


def changed(kind: str, container: Object) -> Workload:
    """A gateway of the chart, with one more container there."""
    (pod,) = [each for each in workloads(rendered("ha")) if each.labels["axon.dev/role"] == "gateway"]
    template = copy.deepcopy(pod.template)
    template["spec"].setdefault(kind, []).append(container)
    return Workload(pod.name, pod.kind, template, pod.owner)


@pytest.mark.parametrize("kind", ["initContainers", "containers"])
def test_a_privileged_container_of_root_would_be_found(kind: str) -> None:
    rights = {"privileged": True, "runAsUser": 0, "runAsNonRoot": False}
    found = complaints(changed(kind, {"name": "more", "image": "busybox", "securityContext": rights}))
    assert len(found) == 8
    assert {"more: It is privileged.", "more: It may be root.", "more: It has no limits."} <= set(found)
    assert "more: Its image is of no version." in found


@pytest.mark.parametrize(
    ("right", "said"),
    [
        ({"privileged": True}, "It is privileged."),
        ({"runAsUser": 0}, "It may be root."),
        ({"runAsNonRoot": False}, "It may be root."),
        ({"allowPrivilegeEscalation": True}, "It may gain rights."),
        ({"capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]}}, "It has capabilities."),
        ({"readOnlyRootFilesystem": False}, "It can write to its image."),
        ({"seccompProfile": {"type": "Unconfined"}}, "It may make any system call."),
    ],
    ids=str,
)
def test_one_right_more_of_a_container_that_runs_first_would_be_found(right: Object, said: str) -> None:
    (pod,) = [each for each in workloads(rendered("ha")) if each.labels["axon.dev/role"] == "gateway"]
    clean = {**pod.container, "name": "first"}
    assert complaints(changed("initContainers", clean)) == []
    more = {**clean, "securityContext": {**clean["securityContext"], **right}}
    assert complaints(changed("initContainers", more)) == [f"first: {said}"]


def test_the_nodes_network_and_folders_would_be_found() -> None:
    pod = changed("volumes", {"name": "host", "hostPath": {"path": "/"}})
    pod.template["spec"]["hostNetwork"] = True
    assert complaints(pod) == ["hostNetwork is set.", "host is a folder of the node."]
