"""Writes what the Helm chart has from elsewhere: its README and schema from values.yaml, the settings that the schema
knows from the code, dashboards and rules from deploy/observability, nginx's configuration from deploy/edge.

python scripts/chart.py [--check]
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from axon.settings import Described, describe

ROOT = Path(__file__).resolve().parents[1]
CHART, OBSERVABILITY = ROOT / "deploy" / "helm" / "axon", ROOT / "deploy" / "observability"
EDGE = ROOT / "deploy" / "edge" / "nginx"

RESERVED = {
    "queue": "secrets.queue",
    "live": "secrets.live",
    "store": "secrets.store",
    "queue_file": "secrets.queue",
    "live_file": "secrets.live",
    "store_file": "secrets.store",
    "service_ca_file": "secrets.ca",
    "pepper": "secrets.pepper",
    "data_dir": "a volume of the pod",
    "models_dir": "workerDefaults.modelClaim",
    "failpoints": "for tests only",
    "zone": "the pod's label",
    "gateway.host": "every address of the pod",
    "gateway.port": "the Service",
    "gateway.metrics_host": "every address of the pod",
    "gateway.metrics_port": "the Service",
    "gateway.proxies": "gateway.proxies",
    "gateway.ollama_without_key": "for programs on the same machine only",
    "grpc.host": "every address of the pod",
    "grpc.port": "the Service",
    "batches.files_dir": "batchFiles",
    "worker.name": "the pod's name",
    "worker.pool": "workerDefaults.pool",
    "worker.deployment": "workerDefaults.deployment",
    "worker.version": "workerDefaults.version",
    "worker.host_index": "LeaderWorkerSet",
    "worker.metrics_host": "every address of the pod",
    "worker.metrics_port": "the Service",
    "engine.rendezvous": "LeaderWorkerSet",
    "engine.hosts": "LeaderWorkerSet",
    "control.metrics_host": "every address of the pod",
    "control.metrics_port": "the Service",
    "control.launcher": "control.launcher",
    "control.kubernetes_namespace": "the release's namespace",
    "control.kubernetes_template": "control.launches",
    "control.kubernetes_server": "the pod's own cluster",
    "lifecycle.drain_s": "drainSeconds of each role",
}
"""Settings that cannot be given as such, each with who gives it."""

ENUMS: Mapping[str, list[str]] = {
    "control.launcher": ["none", "kubernetes", "external"],
    "workerDefaults.kind": ["Deployment", "LeaderWorkerSet"],
    "ingress.scheme": ["internal", "internet-facing"],
    "monitoring.rules.kind": ["ConfigMap", "PrometheusRule", "none"],
    "spread.whenUnsatisfiable": ["ScheduleAnyway", "DoNotSchedule"],
    "secrets.ca.kind": ["Secret", "ConfigMap"],
    "secrets.external.store.kind": ["SecretStore", "ClusterSecretStore"],
}
_FREE = {
    "resources",
    "nodeSelector",
    "affinity",
    "annotations",
    "labels",
    "podAnnotations",
    "podSecurityContext",
    "data",
}
"""Keys below which anything may stand."""
_TYPES = {"a whole number": "integer", "a number": "number", "true or false": "boolean"}
_KEY = re.compile(r"( *)([A-Za-z][A-Za-z0-9]*):(.*)")


def settable() -> list[Described]:
    """The settings that values may give."""
    return [each for each in describe() if each.name not in RESERVED]


def settings_schema() -> dict[str, Any]:
    """The schema of a map of settings."""
    top: dict[str, Any] = {}
    for each in settable():
        section, _, name = each.name.rpartition(".")
        empty = {"type": "object", "additionalProperties": False, "properties": {}}
        where = top.setdefault(section, empty)["properties"] if section else top
        where[name] = _setting_schema(each)
    return {"type": "object", "additionalProperties": False, "properties": top}


def _setting_schema(setting: Described) -> dict[str, Any]:
    kind = _TYPES.get(setting.type)
    if kind is not None:
        return {"type": kind}
    choices = setting.type.split(" or ")
    return {"type": "string"} if len(choices) == 1 else {"enum": choices}


def schema(values: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of the values: what values.yaml has, and nothing else."""
    found = _schema_of(values, "")
    own = {**found["properties"]["workerDefaults"], "type": ["object", "null"]}
    found["properties"]["workers"] = {
        "type": "object",
        "propertyNames": {"pattern": "^[a-z0-9]([a-z0-9-]{0,18}[a-z0-9])?$"},
        "additionalProperties": own,
    }
    found["properties"]["global"] = {"type": "object"}  # Helm adds it
    draft = {"$schema": "http://json-schema.org/draft-07/schema#"}
    return {**draft, **found, "definitions": {"settings": settings_schema()}}


def _schema_of(value: object, path: str) -> dict[str, Any]:
    key = path.rpartition(".")[2]
    if key == "settings":
        return {"$ref": "#/definitions/settings"}
    if path in ENUMS:
        return {"enum": ENUMS[path]}
    if isinstance(value, dict):
        if key in _FREE or not value:
            return {"type": "object"}
        inner = {name: _schema_of(each, f"{path}.{name}".lstrip(".")) for name, each in value.items()}
        return {"type": "object", "additionalProperties": False, "properties": inner}
    if isinstance(value, bool):
        return {"type": "boolean"}
    if isinstance(value, int):
        return {"type": ["integer", "string"]} if key == "maxUnavailable" else {"type": "integer", "minimum": -1}
    return {"type": "array"} if isinstance(value, list) else {"type": "string"}


def rows(text: str) -> Iterator[tuple[str, str, str]]:
    """Each key of values.yaml with its default and what the comment above it says."""
    values = yaml.safe_load(text)
    path: list[str] = []
    said: list[str] = []
    for line in text.splitlines():
        if line.strip().startswith("#"):
            said.append(line.strip().removeprefix("#").strip())
            continue
        match = _KEY.fullmatch(line)
        if match is None:
            said = []
            continue
        depth, rest = len(match[1]) // 2, match[3].strip()
        path[depth:] = [match[2]]
        if said or rest:
            default = f"`{json.dumps(_at(values, path), ensure_ascii=False)}`" if rest else ""
            yield ".".join(path), default, " ".join(said)
        said = []


def _at(values: Any, path: list[str]) -> Any:
    for key in path:
        values = values[key]
    return values


def readme(text: str) -> str:
    lines = [
        "# The chart `axon`",
        "",
        "<!-- Written by scripts/chart.py from values.yaml; edit the comments there. -->",
        "",
        "It runs Axon as a fleet on Kubernetes, from 1.30 on. How to install it, what it needs and what it decides for "
        "you: [docs/deploy/helm.md](../../../docs/deploy/helm.md). To another release: "
        "[docs/upgrade.md](../../../docs/upgrade.md). Sets of values to begin with are in [`ci`](ci).",
        "",
        "| value | default | meaning |",
        "|---|---|---|",
    ]
    lines += [f"| `{name}` | {default.replace('|', chr(92) + '|')} | {said} |" for name, default, said in rows(text)]
    lines += [
        "",
        "## Settings that values do not give as such",
        "",
        "Every other setting of [docs/settings.md](../../../docs/settings.md) can stand in `settings`, "
        "`gateway.settings`, `control.settings` and a worker set's `settings`.",
        "",
        "| setting | given by |",
        "|---|---|",
        *(f"| `{name}` | {who} |" for name, who in RESERVED.items()),
    ]
    return "\n".join(lines) + "\n"


def files() -> dict[Path, str]:
    """Everything that is written, by its path."""
    text = (CHART / "values.yaml").read_text()
    found = {
        CHART / "README.md": readme(text),
        CHART / "values.schema.json": json.dumps(schema(yaml.safe_load(text)), indent=2) + "\n",
        CHART / "files" / "rules.yaml": (OBSERVABILITY / "prometheus" / "rules.yaml").read_text(),
    }
    edge = {CHART / "files" / "nginx" / name: (EDGE / name).read_text() for name in ("nginx.conf.template", "tls.conf")}
    boards = sorted((OBSERVABILITY / "grafana").glob("*.json"))
    return found | edge | {CHART / "files" / "dashboards" / each.name: each.read_text() for each in boards}


def main(arguments: list[str]) -> int:
    wanted = files()
    stray = set((CHART / "files").rglob("*.*")) - set(wanted)
    old = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    if "--check" in arguments:
        for path in sorted({*old, *stray}):
            print(f"{path.relative_to(ROOT)} is out of date: run `python scripts/chart.py`", file=sys.stderr)
        return 1 if old or stray else 0
    for path in stray:
        path.unlink()
    for path in old:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wanted[path])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
