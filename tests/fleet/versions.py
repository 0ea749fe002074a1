"""Versions of an echo model in a fleet's registry: each says the prompt rotated by its number, so that the tokens of an
answer tell its version."""

import json
from collections.abc import Mapping
from typing import Any

import httpx

from tests.fleet.fleet import Fleet
from tests.fleet.member import Member
from tests.journeys.server import wait_until

MODEL = "small"
OTHER = "other"
SHIFTS = {"small@v1": 0, "small@v2": 1, "small@v3": 2, "other@v1": 3}
"""By how many tokens each version rotates what it was told."""


def rotated(text: str, shift: int) -> str:
    """What the version with this shift says to a prompt."""
    return text[shift:] + text[:shift]


def version_body(label: str, model: str = MODEL, **more: str) -> dict[str, Any]:
    """A version of an echo model."""
    shift = SHIFTS[f"{model}@{label}"]
    return {
        "label": label,
        "source": "echo",
        "digest": f"{shift:064x}",
        "text": "bytes",
        "max_model_len": 4096,
        "settings": {"kind": "echo", "more": {"echo_shift": str(shift), **more}},
        "advice": {"temperature": 0},
    }


def sent(answer: httpx.Response) -> dict[str, Any]:
    """The body of an answer that must not be an error."""
    assert answer.status_code < 300, answer.text
    body: dict[str, Any] = answer.json()
    return body


class Registry:
    """The registry of a fleet, as an operator works on it over the admin API."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        key = json.loads(fleet.axon("keys", "create", "--scope", "admin", "--json"))["key"]
        headers = {"Authorization": f"Bearer {key}"}
        self.http = httpx.Client(base_url=fleet.gateways[0].url, headers=headers, timeout=60)

    def __enter__(self) -> "Registry":
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def add(
        self, label: str = "v1", model: str = MODEL, *, engine: Mapping[str, str] | None = None, patience_s: float = 2.0
    ) -> None:
        """A version with these settings of its engine; with the first one the model and its deployment too."""
        body = version_body(label, model, **(engine or {}))
        if label != "v1":
            sent(self.http.post(f"/v1/admin/models/{model}/versions", json=body))
            return
        sent(self.http.post("/v1/admin/models", json={"id": model}))
        sent(self.http.post(f"/v1/admin/models/{model}/versions", json=body))
        body = {"id": model, "model": model, "version": label, "num_lanes": 4, "patience_s": patience_s}
        sent(self.http.post("/v1/admin/deployments", json=body))

    def worker(self, label: str, model: str = MODEL) -> Member:
        """One more worker of a version, ready."""
        return self._fleet.add("worker", worker_deployment=model, worker_version=label, worker_announce_s=0.2)

    def change(self, **said: object) -> None:
        """Changes the deployment, as it is now."""
        path = f"/v1/admin/deployments/{MODEL}"
        sent(self.http.patch(path, json={"revision": sent(self.http.get(path))["revision"], **said}))

    def rollout(self, act: str = "", **body: object) -> dict[str, Any]:
        """Starts a rollout, or does something to it; without either it is looked at."""
        path = f"/v1/admin/deployments/{MODEL}/rollout"
        if not act and not body:
            return sent(self.http.get(path))
        return sent(self.http.post(f"{path}/{act}" if act else path, json=body))

    def members(self) -> dict[str, str]:
        """The state of each version of the deployment."""
        found = sent(self.http.get(f"/v1/admin/deployments/{MODEL}"))
        return {member["version"]: member["state"] for member in found["members"]}


def register_echo(fleet: Fleet, name: str, **deployment: object) -> None:
    """Registers an echo model with a deployment of the same name, as soon as a gateway answers."""
    url = fleet.gateways[0].url
    wait_until(lambda: _answers(url), "a gateway answers")
    with Registry(fleet) as registry:
        sent(registry.http.post("/v1/admin/models", json={"id": name}))
        sent(registry.http.post(f"/v1/admin/models/{name}/versions", json=version_body("v1")))
        body = {"id": name, "model": name, "version": "v1", "num_lanes": 4, "patience_s": 60.0, **deployment}
        sent(registry.http.post("/v1/admin/deployments", json=body))


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/livez", timeout=5).status_code == 200
    except httpx.TransportError:
        return False
