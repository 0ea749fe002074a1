"""The kustomize overlays build, and what they build is valid and keeps the chart's rules."""

import re

import kubernetes_validate
import pytest

from tests.deploy import tools
from tests.deploy.chart import contents, objects_of, of_kind, told_once, workloads
from tests.deploy.kustomize import BASE, FOLDER, base

OVERLAYS = sorted(path.name for path in (FOLDER / "overlays").iterdir())


def test_the_base_is_the_chart_as_it_is_rendered_now() -> None:
    assert BASE.read_text() == base(), "run `make kustomize`"


def build(overlay: str) -> str:
    done = tools.run("kubectl", "kustomize", str(FOLDER / "overlays" / overlay))
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_an_overlay_builds_valid_objects(overlay: str) -> None:
    objects = objects_of(told_once("kubectl", (overlay, contents(FOLDER)), lambda: build(overlay)))
    for each in objects:
        kubernetes_validate.validate(each, "1.34", strict=True)
    assert {each["metadata"]["namespace"] for each in objects} == {"axon-dev" if overlay == "dev" else "axon"}
    pods = {each.labels["axon.dev/role"]: each for each in workloads(objects)}
    assert set(pods) == {"edge", "gateway", "control", "worker"}
    assert len(of_kind(objects, "PodDisruptionBudget")) == len(pods)
    if overlay == "dev":
        assert pods["worker"].env["AXON_ENGINE_KIND"] == "echo"
        assert all("persistentVolumeClaim" not in volume for volume in pods["gateway"].spec["volumes"])
    else:
        for pod in pods.values():
            assert re.fullmatch(r"registry\.example/[a-z-]+@sha256:[0-9a-f]{64}", pod.container["image"])
        zones = {each.spec["topologySpreadConstraints"][0]["whenUnsatisfiable"] for each in pods.values()}
        assert zones == {"DoNotSchedule"}
