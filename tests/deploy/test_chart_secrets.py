"""No secret is in what the chart renders: Terraform's values and the base of the overlays are looked at too."""

import copy
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.deploy.chart import Object, objects_of, of_kind, rendered, value_sets, workloads
from tests.deploy.kustomize import BASE

OVERLAID = "the base of the overlays"
EVERY = (*sorted(value_sets()), OVERLAID)
IN_FILES = ("AXON_QUEUE", "AXON_LIVE", "AXON_STORE")
"""URLs with passwords, which pods read from files."""
_SECRET_NAME = re.compile(
    r"SECRET|PASSW(?:OR)?D|PASSPHRASE|TOKEN|CREDENTIAL|PEPPER|(?:^|_|API|ACCESS)KEY$", re.IGNORECASE
)
_SECRET_TEXT = {
    "a URL with a password": re.compile(r"[a-z]+://[^/\s:@]*:[^/\s@]+@"),
    "a key": re.compile(r"\b(?:AKIA[0-9A-Z]{16}|axk_[A-Za-z0-9]+)|-----BEGIN [A-Z ]*PRIVATE KEY"),
}


def secrets_in(objects: list[Object]) -> list[str]:
    """What is secret in these objects, or looks like it, a sentence for each."""
    words = "\n".join(texts(objects))
    found = [f"There is {what}." for what, pattern in _SECRET_TEXT.items() if pattern.search(words)]
    found += [f"{each['metadata']['name']} is a Secret." for each in of_kind(objects, "Secret")]
    for name, value in (pair for each in objects for pair in given(each)):
        if name in IN_FILES or (is_secret(name) and not is_harmless(name, value)):
            found.append(f"{name} has its value here.")
    return found


def texts(part: Any) -> Iterator[str]:
    """Every text within."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, dict | list):
        for each in part.values() if isinstance(part, dict) else part:
            yield from texts(each)


def given(part: Any) -> Iterator[tuple[str, str]]:
    """Each variable with its value, wherever it is: in any container, in a custom resource, in a template within a
    ConfigMap, or in a ConfigMap of which a pod takes its environment."""
    if isinstance(part, list):
        for each in part:
            yield from given(each)
    elif isinstance(part, dict):
        if isinstance(part.get("name"), str) and "value" in part:
            yield part["name"], str(part["value"])
        if part.get("kind") == "ConfigMap":
            yield from part["data"].items()
            yield from given([yaml.safe_load(text) for name, text in part["data"].items() if name.endswith(".yaml")])
        for each in part.values():
            yield from given(each)


def is_secret(name: str) -> bool:
    return _SECRET_NAME.search(name) is not None


def is_harmless(name: str, value: str) -> bool:
    """Whether it is the path of a file, or a number of tokens."""
    return (name.endswith("_FILE") and value.startswith("/")) or (name.endswith("_TOKENS") and value.isdigit())


def objects_in(values: str) -> list[Object]:
    return objects_of(BASE.read_text()) if values == OVERLAID else rendered(values)


@pytest.mark.parametrize("values", EVERY)
def test_no_secret_is_in_what_is_rendered(values: str) -> None:
    objects = objects_in(values)
    assert secrets_in(objects) == []
    for each in workloads(objects):
        variables = {env["name"]: env for container in each.containers for env in container.get("env", [])}
        if "AXON_PEPPER" in variables:
            assert list(variables["AXON_PEPPER"]["valueFrom"]) == ["secretKeyRef"]


PLANTED = (
    *(
        {"name": name, "value": "hunter2"}
        for name in ("AXON_PEPPER", "PGPASSWORD", "AWS_SECRET_ACCESS_KEY", "HF_TOKEN")
    ),
    *({"name": name, "value": "hunter2"} for name in ("OPENAI_API_KEY", "apiKey", "DB_PASSWD", "PASSWORD_FILE")),
    {"name": "AXON_LIVE", "value": "redis://live:6379"},
    {"name": "CACHE", "value": "redis://:hunter2@live:6379"},
)


@pytest.mark.parametrize("env", PLANTED, ids=lambda env: env["name"])
@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_a_variable_with_a_secret_would_be_found(env: Object, kind: str) -> None:
    objects = copy.deepcopy(of_kind(rendered("ha"), "Deployment"))
    spec = objects[0]["spec"]["template"]["spec"]
    spec.setdefault(kind, [{"name": "first"}])[0].setdefault("env", []).append(env)
    assert len(secrets_in(objects)) == 1


def test_a_secret_in_a_config_map_and_in_the_launchers_template_would_be_found() -> None:
    maps = of_kind(rendered("eks-gpu"), "ConfigMap")
    (template,) = [copy.deepcopy(each) for each in maps if "worker-template.yaml" in each["data"]]
    pod = yaml.safe_load(template["data"]["worker-template.yaml"])
    pod["spec"]["containers"][0]["env"].append({"name": "HF_TOKEN", "value": "hunter2"})
    template["data"] = {"worker-template.yaml": yaml.safe_dump(pod), "DATABASE_PASSWORD": "hunter2"}
    assert secrets_in([template]) == ["DATABASE_PASSWORD has its value here.", "HF_TOKEN has its value here."]


def test_paths_of_files_and_numbers_of_tokens_are_no_secrets() -> None:
    env = [{"name": "AXON_PEPPER_FILE", "value": "/etc/axon-secrets/pepper"}, {"name": "MAX_TOKENS", "value": "4096"}]
    assert secrets_in([{"kind": "Pod", "env": env}]) == []
