"""The launcher's contract suite passes on a cluster that allows exactly what the rendered role allows."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from axon.adapters.launch.kubernetes import KubernetesLauncher
from axon.adapters.launch.kubernetes_api import KubernetesApi
from axon.domain.fleet.replica import Group, ReplicaSpec
from axon.errors import DependencyDown
from tests.deploy.chart import NAMESPACE as RENDERED_IN
from tests.deploy.chart import REPOSITORY, named, of_kind, rendered, workloads
from tests.launch import cluster
from tests.launch.cluster import NAMESPACE, ROLE, Cluster, rights, served


@pytest.fixture
def role(tmp_path: Path) -> Path:
    """The rendered role, alone in a file."""
    (role,) = of_kind(rendered("eks-gpu"), "Role")
    path = tmp_path / "role.yaml"
    path.write_text(yaml.safe_dump(role))
    return path


def test_the_rendered_role_is_bound_to_control_and_to_nobody_else() -> None:
    objects = rendered("eks-gpu")
    assert of_kind(objects, "ClusterRole", "ClusterRoleBinding") == []
    (binding,) = of_kind(objects, "RoleBinding")
    (control,) = [each for each in workloads(objects) if each.labels["axon.dev/role"] == "control"]
    account = {"kind": "ServiceAccount", "name": control.spec["serviceAccountName"], "namespace": RENDERED_IN}
    assert binding["subjects"] == [account]
    assert named(objects, "Role", binding["roleRef"]["name"])


def test_it_is_the_role_that_is_shipped_without_the_chart(role: Path) -> None:
    assert rights(role) == rights(ROLE)


def test_the_launchers_own_tests_pass_with_exactly_these_rights(role: Path) -> None:
    files = ["tests/launch/test_kubernetes.py", "tests/contracts/test_launcher.py"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not process", *files]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environ = {**clean, "LAUNCHER_ROLE": str(role)}
    done = subprocess.run(command, cwd=REPOSITORY, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
    assert " passed" in done.stdout


def _take_away(role: Path, plural: str) -> None:
    fewer = yaml.safe_load(role.read_text())
    fewer["rules"] = [rule for rule in fewer["rules"] if rule["resources"] != [plural]]
    role.write_text(yaml.safe_dump(fewer))


async def test_the_rendered_template_is_launched_and_one_right_less_is_noticed(
    role: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (launched,) = [each for each in workloads(rendered("eks-gpu")) if each.kind == "launched"]
    state = Cluster(settles=True)
    monkeypatch.setattr(cluster, "ROLE", role)
    async with served(state) as address, KubernetesApi(NAMESPACE, server=address) as api:
        launcher = KubernetesLauncher(api, launched.template, fleet="axon")
        for spec in (ReplicaSpec(version="a", label="v1"), ReplicaSpec(version="b", label="v1", ranks=2)):
            await launcher.ensure(Group(f"d{spec.ranks}").replica(0), spec, term=1)
        assert len(await launcher.list()) == 2
        pod = state.pods()[0]
        assert pod["spec"]["terminationGracePeriodSeconds"] == 180
        assert pod["metadata"]["labels"]["axon.dev/role"] == "worker"
        assert pod["spec"]["topologySpreadConstraints"] == launched.spec["topologySpreadConstraints"]
        _take_away(role, "pods")
        with pytest.raises(DependencyDown, match="403"):
            await launcher.list()
