"""Writes the base of the overlays, which is the chart as Helm renders it: ``python -m tests.deploy.kustomize``."""

from pathlib import Path

import yaml

from tests.deploy.chart import NAMESPACE, REPOSITORY, Object, rendered

FOLDER = REPOSITORY / "deploy" / "kustomize"
BASE = FOLDER / "base" / "axon.yaml"
_HEAD = (
    "# Rendered from deploy/helm/axon with deploy/kustomize/values.yaml by `make kustomize`; change those instead.\n"
)


def base() -> str:
    """What the base must hold."""
    objects = [_labelled(each) for each in rendered("kustomize")]
    return _HEAD + str(yaml.safe_dump_all(objects, sort_keys=False, width=120))


def _labelled(each: Object) -> Object:
    """Without what says that Helm made it, and without a namespace, which is the overlay's."""
    text = yaml.safe_dump(each).replace(f"namespace: {NAMESPACE}", "namespace: axon")
    found: Object = yaml.safe_load(text)
    for labels in (found["metadata"]["labels"], _pod_labels(found)):
        labels.pop("helm.sh/chart", None)
        labels["app.kubernetes.io/managed-by"] = "kustomize"
    return found


def _pod_labels(each: Object) -> dict[str, str]:
    found: dict[str, str] = (each.get("spec") or {}).get("template", {}).get("metadata", {}).get("labels", {})
    return found


def write(path: Path = BASE) -> None:
    path.write_text(base())


if __name__ == "__main__":
    write()
