"""Authorization: one table of the scopes that each route needs. A route that is not in the table lets nobody in.

Routes that generate or change need ``inference``; routes that show what is stored need ``read``. A single answer may be
fetched with either, because only whoever asked for it knows its id. ``versions`` opens no route: it lets a key that may
use a route name one version of a model there.
"""

from collections.abc import Mapping

from starlette.requests import Request

from axon.domain.tenants.key import Scope
from axon.errors import Forbidden

_ASKS = frozenset({Scope.INFERENCE})
_READS = frozenset({Scope.READ})
_ANSWERS = frozenset({Scope.INFERENCE, Scope.READ})
_ADMIN = frozenset({Scope.ADMIN})
_ANY = frozenset(Scope)
_OPEN: frozenset[Scope] = frozenset()

NEEDED: Mapping[str, frozenset[Scope]] = {
    "POST /v1/chat/completions": _ASKS,
    "GET /v1/chat/completions": _READS,
    "GET /v1/chat/completions/{completion_id}": _ANSWERS,
    "GET /v1/chat/completions/{completion_id}/messages": _ANSWERS,
    "DELETE /v1/chat/completions/{completion_id}": _ASKS,
    "POST /v1/chat/completions/{completion_id}/cancel": _ASKS,
    "POST /v1/completions": _ASKS,
    "POST /v1/completions/{completion_id}/cancel": _ASKS,
    "POST /v1/embeddings": _ASKS,
    "POST /v1/classify": _ASKS,
    "POST /v1/rerank": _ASKS,
    "POST /v1/score": _ASKS,
    "POST /v1/messages": _ASKS,
    "POST /v1/messages/count_tokens": _ASKS,
    "GET /v1/streams/{stream_id}": _ANSWERS,
    "DELETE /v1/streams/{stream_id}": _ASKS,
    "POST /v1/responses": _ASKS,
    "POST /v1/responses/input_tokens": _ASKS,
    "GET /v1/responses/{response_id}": _ANSWERS,
    "DELETE /v1/responses/{response_id}": _ASKS,
    "POST /v1/responses/{response_id}/cancel": _ASKS,
    "GET /v1/responses/{response_id}/input_items": _ANSWERS,
    "POST /v1/conversations": _ASKS,
    "GET /v1/conversations": _READS,
    "GET /v1/conversations/{conversation_id}": _READS,
    "GET /v1/conversations/{conversation_id}/responses": _READS,
    "POST /v1/conversations/{conversation_id}": _ASKS,
    "DELETE /v1/conversations/{conversation_id}": _ASKS,
    "POST /v1/conversations/{conversation_id}/items": _ASKS,
    "GET /v1/conversations/{conversation_id}/items": _READS,
    "GET /v1/conversations/{conversation_id}/items/{item_id}": _READS,
    "DELETE /v1/conversations/{conversation_id}/items/{item_id}": _ASKS,
    "POST /v1/files": _ASKS,
    "GET /v1/files": _READS,
    "GET /v1/files/{file_id}": _ANSWERS,
    "GET /v1/files/{file_id}/content": _ANSWERS,
    "DELETE /v1/files/{file_id}": _ASKS,
    "POST /v1/batches": _ASKS,
    "GET /v1/batches": _READS,
    "GET /v1/batches/{batch_id}": _ANSWERS,
    "POST /v1/batches/{batch_id}/cancel": _ASKS,
    "GET /v1/models": _ANSWERS,
    "GET /v1/models/{model:path}": _ANSWERS,
    "POST /tokenize": _ASKS,
    "POST /detokenize": _ASKS,
    "GET /api/version": _ANSWERS,
    "GET /api/tags": _ANSWERS,
    "GET /api/ps": _ANSWERS,
    "POST /api/show": _ASKS,
    "POST /api/chat": _ASKS,
    "POST /api/generate": _ASKS,
    "POST /api/embed": _ASKS,
    "GET /v1/usage": _READS,
    "GET /v1/admin/usage": _ADMIN,
    "GET /v1/admin/tenants": _ADMIN,
    "POST /v1/admin/tenants": _ADMIN,
    "GET /v1/admin/tenants/{tenant_id}": _ADMIN,
    "PATCH /v1/admin/tenants/{tenant_id}": _ADMIN,
    "DELETE /v1/admin/tenants/{tenant_id}": _ADMIN,
    "POST /v1/admin/tenants/{tenant_id}/suspend": _ADMIN,
    "POST /v1/admin/tenants/{tenant_id}/resume": _ADMIN,
    "GET /v1/admin/plans": _ADMIN,
    "POST /v1/admin/plans": _ADMIN,
    "GET /v1/admin/plans/{plan_id}": _ADMIN,
    "PATCH /v1/admin/plans/{plan_id}": _ADMIN,
    "DELETE /v1/admin/plans/{plan_id}": _ADMIN,
    "GET /v1/admin/keys": _ADMIN,
    "POST /v1/admin/keys": _ADMIN,
    "GET /v1/admin/keys/{key_id}": _ADMIN,
    "POST /v1/admin/keys/{key_id}/rotate": _ADMIN,
    "POST /v1/admin/keys/{key_id}/revoke": _ADMIN,
    "GET /v1/admin/models": _ADMIN,
    "POST /v1/admin/models": _ADMIN,
    "GET /v1/admin/models/{model_id}": _ADMIN,
    "PATCH /v1/admin/models/{model_id}": _ADMIN,
    "DELETE /v1/admin/models/{model_id}": _ADMIN,
    "GET /v1/admin/models/{model_id}/versions": _ADMIN,
    "POST /v1/admin/models/{model_id}/versions": _ADMIN,
    "GET /v1/admin/models/{model_id}/versions/{label}": _ADMIN,
    "DELETE /v1/admin/models/{model_id}/versions/{label}": _ADMIN,
    "GET /v1/admin/adapters": _ADMIN,
    "POST /v1/admin/adapters": _ADMIN,
    "GET /v1/admin/adapters/{adapter_id}": _ADMIN,
    "DELETE /v1/admin/adapters/{adapter_id}": _ADMIN,
    "GET /v1/admin/deployments": _ADMIN,
    "POST /v1/admin/deployments": _ADMIN,
    "GET /v1/admin/deployments/{deployment_id}": _ADMIN,
    "PATCH /v1/admin/deployments/{deployment_id}": _ADMIN,
    "DELETE /v1/admin/deployments/{deployment_id}": _ADMIN,
    "GET /v1/admin/deployments/{deployment_id}/rollout": _ADMIN,
    "POST /v1/admin/deployments/{deployment_id}/rollout": _ADMIN,
    "GET /v1/admin/deployments/{deployment_id}/rollout/figures": _ADMIN,
    "POST /v1/admin/deployments/{deployment_id}/rollout/pause": _ADMIN,
    "POST /v1/admin/deployments/{deployment_id}/rollout/resume": _ADMIN,
    "POST /v1/admin/deployments/{deployment_id}/rollout/step": _ADMIN,
    "POST /v1/admin/deployments/{deployment_id}/rollout/promote": _ADMIN,
    "POST /v1/admin/deployments/{deployment_id}/rollout/rollback": _ADMIN,
    "POST /v1/admin/deployments/{deployment_id}/rollout/abort": _ADMIN,
    "GET /v1/admin/aliases": _ADMIN,
    "POST /v1/admin/aliases": _ADMIN,
    "GET /v1/admin/aliases/{alias_id}": _ADMIN,
    "PATCH /v1/admin/aliases/{alias_id}": _ADMIN,
    "DELETE /v1/admin/aliases/{alias_id}": _ADMIN,
    "GET /v1/admin/fleet": _ADMIN,
    "POST /v1/admin/workers/{worker_id}/drain": _ADMIN,
    "GET /v1/admin/streams": _ADMIN,
    "GET /v1/admin/settings": _ADMIN,
    "GET /v1/admin/logs": _ADMIN,
    "GET /v1/admin/alerts": _ADMIN,
    "GET /v1/admin/overview": _ADMIN,
    "GET /v1/admin/processes": _ADMIN,
    "POST /v1/admin/profiles": _ADMIN,
    "GET /v1/admin/traces": _ADMIN,
    "GET /v1/admin/traces/{turn_id}": _ADMIN,
    "GET /v1/admin/prices": _ADMIN,
    "POST /v1/admin/prices": _ADMIN,
    "GET /v1/admin/changes": _ADMIN,
    "GET /v1/admin/audit": _ADMIN,
    "GET /v1/auth": _ANY,
    "POST /v1/auth": _ANY,
    "PATCH /v1/auth": _ANY,
    "DELETE /v1/auth": _ANY,
    "GET /docs": _ANY,
    "GET /openapi.json": _ANY,
    "GET /ui/session": _ANY,
    "POST /ui/render": _ANY,
    "GET /ui/sign-in": _OPEN,
    "POST /ui/sign-out": _OPEN,
    "GET /ui/oidc/start": _OPEN,
    "GET /ui/oidc/callback": _OPEN,
    "POST /ui/sign-in": _OPEN,
    "GET /ui/{room}/{file}": _OPEN,
    "HEAD /ui/{room}/{file}": _OPEN,
    "GET /console": _OPEN,
    "HEAD /console": _OPEN,
    "GET /sign-in": _OPEN,
    "HEAD /sign-in": _OPEN,
    "GET /": _OPEN,
    "HEAD /": _OPEN,
    "GET /livez": _OPEN,
    "HEAD /livez": _OPEN,
    "GET /readyz": _OPEN,
    "HEAD /readyz": _OPEN,
    "GET /health": _OPEN,
}
"""The scopes of which a key needs at least one, by method and path; an empty set means that the route needs no key."""


async def check_scope(request: Request) -> None:
    """Raises ``Forbidden`` if the caller's key has none of the scopes that this route needs."""
    needed = NEEDED[f"{request.method} {request.scope['route'].path}"]
    if needed:
        require_scope(needed, request.scope["axon.identity"].scopes)


def require_scope(needed: frozenset[Scope], scopes: frozenset[Scope]) -> None:
    """Raises ``Forbidden`` if a key with ``scopes`` has none of those that are needed."""
    if not needed & scopes:
        raise Forbidden(
            f"This API key may not do that: it needs the scope {_words(needed)}, and has {_words(scopes, 'and')}."
        )


def check_names_version(scopes: frozenset[Scope]) -> None:
    """Raises ``Forbidden`` if a key with these scopes may not ask for one version of a model."""
    if Scope.VERSIONS not in scopes:
        raise Forbidden(
            f"This API key may not ask for one version of a model: it needs the scope '{Scope.VERSIONS}', and has "
            f"{_words(scopes, 'and')}. Without '@' and a version, its sessions are given one.",
            param="model",
        )


def _words(scopes: frozenset[Scope], joint: str = "or") -> str:
    """Returns the scopes' names for an error's sentence: ``'inference' or 'read'``."""
    return f" {joint} ".join(f"'{scope}'" for scope in Scope if scope in scopes) or "none"
