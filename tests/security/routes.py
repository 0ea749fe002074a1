"""Every route of the application, from its own table, with what a request to it needs to be a good one."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fastapi.routing import iter_route_contexts

from axon.domain.tenants.key import Scope
from axon.gateway.app import routes as application
from axon.gateway.http.scopes import NEEDED

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

_ASK = {"model": "echo", "input": "hello", "max_output_tokens": 2}
_MESSAGE = {"model": "echo", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 2}
_ITEMS = {"items": [{"role": "user", "content": "hello"}]}
_VERSION = {"label": "v1", "source": "/models/small", "digest": "d" * 64, "text": "mark", "max_model_len": 2048}
BODIES: dict[str, dict[str, Any]] = {
    "POST /v1/chat/completions": {
        "model": "echo",
        "messages": [{"role": "user", "content": "hello"}],
        "max_tokens": 2,
    },
    "POST /v1/completions": {"model": "echo", "prompt": "hello", "max_tokens": 2},
    "POST /v1/embeddings": {"model": "echo", "input": "hello"},
    "POST /v1/classify": {"model": "echo", "input": "hello"},
    "POST /v1/rerank": {"model": "echo", "query": "hello", "documents": ["hi"]},
    "POST /v1/score": {"model": "echo", "text_1": "hello", "text_2": "hi"},
    "POST /v1/messages": _MESSAGE,
    "POST /v1/messages/count_tokens": _MESSAGE,
    "POST /v1/responses": _ASK,
    "POST /v1/responses/input_tokens": _ASK,
    "POST /v1/responses/{response_id}/cancel": {},
    "POST /tokenize": {"model": "echo", "prompt": "hello"},
    "POST /detokenize": {"model": "echo", "tokens": [104]},
    "POST /api/show": {"model": "echo"},
    "POST /api/chat": {"model": "echo", "messages": [{"role": "user", "content": "hello"}]},
    "POST /api/generate": {"model": "echo", "prompt": "hello"},
    "POST /api/embed": {"model": "echo", "input": "hello"},
    "POST /v1/conversations": _ITEMS,
    "POST /v1/conversations/{conversation_id}": {"metadata": {"a": "b"}},
    "POST /v1/conversations/{conversation_id}/items": _ITEMS,
    "POST /v1/batches": {"input_file_id": "file-1", "endpoint": "/v1/completions", "completion_window": "24h"},
    "POST /v1/batches/{batch_id}/cancel": {},
    "POST /v1/admin/tenants": {"id": "tenant-c"},
    "PATCH /v1/admin/tenants/{tenant_id}": {"name": "another"},
    "POST /v1/admin/tenants/{tenant_id}/suspend": {},
    "POST /v1/admin/tenants/{tenant_id}/resume": {},
    "POST /v1/admin/plans": {"name": "plan-c"},
    "PATCH /v1/admin/plans/{plan_id}": {"limits": {}},
    "POST /v1/admin/keys": {"tenant": "tenant-a", "scopes": ["admin"]},
    "POST /v1/admin/keys/{key_id}/rotate": {},
    "POST /v1/admin/keys/{key_id}/revoke": {},
    "POST /v1/admin/models": {"id": "model-c"},
    "PATCH /v1/admin/models/{model_id}": {"revision": 1, "licence": "mit"},
    "POST /v1/admin/models/{model_id}/versions": _VERSION,
    "POST /v1/admin/deployments": {"id": "deployment-c", "model": "small", "version": "v1"},
    "PATCH /v1/admin/deployments/{deployment_id}": {"revision": 1, "max_replicas": 2},
    "POST /v1/admin/deployments/{deployment_id}/rollout": {"version": "v2"},
    "POST /v1/admin/deployments/{deployment_id}/rollout/pause": {},
    "POST /v1/admin/deployments/{deployment_id}/rollout/resume": {},
    "POST /v1/admin/deployments/{deployment_id}/rollout/step": {},
    "POST /v1/admin/deployments/{deployment_id}/rollout/promote": {},
    "POST /v1/admin/deployments/{deployment_id}/rollout/rollback": {},
    "POST /v1/admin/deployments/{deployment_id}/rollout/abort": {"reason": "it swears"},
    "POST /v1/admin/aliases": {"id": "alias-c", "deployment": "small"},
    "PATCH /v1/admin/aliases/{alias_id}": {"revision": 1, "deployment": "small"},
    "POST /v1/admin/adapters": {"model": "small", "name": "sql", "source": "/nowhere"},
    "POST /v1/admin/workers/{worker_id}/drain": {},
    "POST /v1/admin/profiles": {"kind": "cpu", "seconds": 0.1},
    "POST /v1/admin/prices": {"model": "small", "prompt": 1.0},
}
"""A good one for each route that takes one."""


@dataclass(frozen=True, slots=True)
class Way:
    """A route by one of its methods."""

    method: str
    path: str
    """With the names of its parameters."""
    name: str
    """In the application's table of scopes."""

    @property
    def needed(self) -> frozenset[Scope]:
        """Scopes of which one is enough; none where it is open to everybody."""
        return NEEDED[self.name]

    @property
    def body(self) -> dict[str, Any] | None:
        return BODIES.get(f"{self.method} {self.path}")

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def declared() -> Iterator[Way]:
    """As the application has them."""
    for route in iter_route_contexts(application("test").routes):
        assert route.methods, f"{route} is no plain route: say here how it is to be asked"
        for method in sorted(route.methods):
            yield Way(method, str(route.path_format), f"{method} {route.path}")


WAYS = sorted(declared(), key=str)
CLOSED = [way for way in WAYS if NEEDED.get(way.name) != frozenset()]
OPEN = {way.path for way in WAYS} - {way.path for way in CLOSED}
PATHS = sorted({way.path for way in WAYS})
