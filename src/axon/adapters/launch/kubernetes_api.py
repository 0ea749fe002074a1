"""The cluster's API: objects of a namespace read and changed by comparison, as JSON. Knows no replica.

It speaks through the official client, which knows how a pod signs in. Every call has a deadline.
"""

import asyncio
import json
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Self

from axon.errors import DependencyDown, Misconfigured

_PAGE = 500
_MAX_PAGES = 200
"""A listing of more objects than this many pages hold is refused: it is not a fleet's."""
_MERGE = "application/merge-patch+json"

Manifest = Mapping[str, Any]
"""An object of the cluster, as JSON; its schema is the cluster's."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object."""

    api: str
    """``apps/v1``; ``v1`` for the core."""
    plural: str

    def path(self, namespace: str, name: str = "") -> str:
        root = "/api" if "/" not in self.api else "/apis"
        return f"{root}/{self.api}/namespaces/{namespace}/{self.plural}" + (f"/{name}" if name else "")


DEPLOYMENTS = Kind("apps/v1", "deployments")
LEADER_WORKER_SETS = Kind("leaderworkerset.x-k8s.io/v1", "leaderworkersets")
PODS = Kind("v1", "pods")
LEASES = Kind("coordination.k8s.io/v1", "leases")


class Outrun(Exception):
    """Somebody else has made or changed the object meanwhile."""


class KubernetesApi(AbstractAsyncContextManager["KubernetesApi"]):
    """Enter it; leaving closes its connections."""

    def __init__(self, namespace: str, *, server: str = "", deadline_s: float = 10.0) -> None:
        """``server`` is the address of a cluster that asks for no sign-in, such as ``kubectl proxy``; without it the
        pod's own account is used."""
        self.namespace, self._server, self._deadline_s = namespace, server, deadline_s
        self._client: Any = None

    async def __aenter__(self) -> Self:
        # Imported here: it takes long, and only who launches on a cluster has it.
        try:
            from kubernetes.aio import client, config
        except ImportError as error:
            raise Misconfigured("The launcher kubernetes needs `pip install axon-serving[kubernetes]`.") from error
        configuration = client.Configuration(host=self._server or None)
        if not self._server:
            try:
                config.load_incluster_config(configuration)
            except config.ConfigException as error:
                raise Misconfigured(
                    f"The launcher kubernetes runs in a pod with a service account: {error} Elsewhere, run "
                    "`kubectl proxy` and name its address with control.kubernetes_server."
                ) from error
        configuration.retries = None
        self._client = client.ApiClient(configuration)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._client.close()

    async def list(self, kind: Kind, labels: str) -> list[Manifest]:
        """All objects with these labels, or an empty list where the cluster does not know the kind; never a part."""
        found: list[Manifest] = []
        query = {"labelSelector": labels, "limit": str(_PAGE)}
        for _ in range(_MAX_PAGES):
            answer = await self._call("GET", kind.path(self.namespace), query=query)
            if answer is None:
                return []
            items = answer.get("items")
            if not isinstance(items, list):
                raise DependencyDown("The cluster answered with something that is no list.")
            found += items
            token = (answer.get("metadata") or {}).get("continue")
            if not token:
                return found
            query["continue"] = token
        raise DependencyDown(f"The cluster has more {kind.plural} of this fleet than can be listed.")

    async def get(self, kind: Kind, name: str) -> Manifest | None:
        return await self._call("GET", kind.path(self.namespace, name))

    async def create(self, kind: Kind, manifest: Manifest) -> Manifest:
        """Raises ``Outrun`` when there is one of that name."""
        return _there(await self._call("POST", kind.path(self.namespace), body=manifest))

    async def patch(self, kind: Kind, old: Manifest, changes: Manifest) -> Manifest | None:
        """Merges changes into the object if it is still ``old``, else raises ``Outrun``; None when it is gone."""
        known = old["metadata"]
        metadata = {**changes.get("metadata", {}), "resourceVersion": known["resourceVersion"]}
        body = {**changes, "metadata": metadata}
        return await self._call("PATCH", kind.path(self.namespace, known["name"]), body=body, content=_MERGE)

    async def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Manifest | None = None,
        content: str = "application/json",
    ) -> Manifest | None:
        """The answer; None where the path leads to nothing."""
        headers = {"Accept": "application/json", "Content-Type": content}
        try:
            async with asyncio.timeout(self._deadline_s):
                request = await self._client.param_serialize(
                    method,
                    path,
                    query_params=list((query or {}).items()),
                    header_params=headers,
                    body=body,
                    auth_settings=["BearerToken"],
                )
                response = await self._client.call_api(*request, _request_timeout=self._deadline_s)
                status, data = response.status, await response.read()
        except TimeoutError as error:
            raise DependencyDown(f"The cluster has not answered within {self._deadline_s:g} s.") from error
        except Exception as error:  # the client raises its own, aiohttp's and the system's
            raise DependencyDown(f"The cluster cannot be reached: {error}") from error
        if status == 404:
            return None
        if status == 409:
            raise Outrun(path)
        answer = _parse(data)
        if not 200 <= status < 300 or answer is None:
            message = str((answer or {}).get("message") or "")[:300] or "no reason given"
            raise DependencyDown(f"The cluster refused {method} {path} with {status}: {message}")
        return answer


def _parse(data: bytes) -> dict[str, Any] | None:
    try:
        answer = json.loads(data)
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None


def _there(answer: Manifest | None) -> Manifest:
    if answer is None:
        raise DependencyDown("The cluster does not know this kind of object, or the namespace.")
    return answer
