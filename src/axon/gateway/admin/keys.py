"""Routes of /v1/admin/keys: the API keys of tenants. Only the response that creates a key has its text."""

from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field
from starlette.requests import Request

from axon.domain.tenants.key import HOLDER, Key, Scope
from axon.errors import InvalidInput
from axon.gateway.admin.bodies import AdminWire, Name, actor_of, admin_of, note, read
from axon.gateway.http.body import Many
from axon.gateway.http.paging import DEFAULT_LIMIT, Look, page_of
from axon.gateway.http.schema import body_of_kind
from axon.tenants.facts import key_facts

router = APIRouter(tags=["admin"], prefix="/v1/admin/keys")


class NewKey(AdminWire):
    """Body of POST /v1/admin/keys."""

    tenant: str
    """The id of the tenant that the key belongs to."""
    name: Name = ""
    """A reminder of what the key is for."""
    scopes: Annotated[Many[str], Field(min_length=1, max_length=len(Scope))] | None = None
    """Any of ``inference``, ``read``, ``versions`` and ``admin``; by default the first two."""
    expires_in_s: float | None = None
    """Seconds until the key expires; by default it never does."""


class Rotation(AdminWire):
    """Body of POST /v1/admin/keys/{id}/rotate."""

    overlap_s: float = 3600.0
    """Seconds for which the old key stays valid, at most 30 days."""
    expires_in_s: float | None = None
    """Seconds until the new key expires; by default as many as the old key was created with."""


@router.get("", summary="List keys")
async def index(
    request: Request, tenant: str = "", after: str = "", limit: str = DEFAULT_LIMIT, order: str = "desc"
) -> dict[str, Any]:
    """Lists all keys, or those of one ``tenant``, page by page, the newest first, without their secrets."""
    admin = admin_of(request)
    now = admin.clock.now()
    look: Look[Key] = Look(lambda key: key.id, lambda key: key_facts(key, now))
    return page_of(await admin.keyring.all(tenant=tenant or None), look, after=after, limit=limit, order=order)


@router.post("", openapi_extra=body_of_kind(NewKey), summary="Create a key")
async def create(request: Request) -> dict[str, Any]:
    """Creates a key for a tenant. ``key`` is its text, which is not stored and cannot be shown again."""
    ask = await read(NewKey, request)
    admin = admin_of(request)
    await admin.tenancy.tenant(ask.tenant)
    scopes = HOLDER if ask.scopes is None else _scopes(ask.scopes)
    key, text = await admin.keyring.create(
        ask.tenant, name=ask.name, scopes=scopes, expires_in_s=ask.expires_in_s, actor=actor_of(request)
    )
    note(request, "admin.key_created", key_id=key.id, tenant=key.tenant, scopes=sorted(key.scopes))
    return {**key_facts(key, admin.clock.now()), "key": text}


@router.get("/{key_id}", summary="Retrieve a key")
async def show(request: Request, key_id: str) -> dict[str, Any]:
    """Returns a key without its secret."""
    admin = admin_of(request)
    return key_facts(await admin.keyring.get(key_id), admin.clock.now())


@router.post("/{key_id}/rotate", openapi_extra=body_of_kind(Rotation), summary="Rotate a key")
async def rotate(request: Request, key_id: str) -> dict[str, Any]:
    """Creates a key in place of an old one, which stays valid for ``overlap_s`` seconds while you replace it."""
    ask = await read(Rotation, request, empty=b"{}")
    admin = admin_of(request)
    key, text = await admin.keyring.rotate(
        key_id, overlap_s=ask.overlap_s, expires_in_s=ask.expires_in_s, actor=actor_of(request)
    )
    note(request, "admin.key_rotated", key_id=key.id, previous=key_id, tenant=key.tenant, overlap_s=ask.overlap_s)
    return {**key_facts(key, admin.clock.now()), "key": text}


@router.post("/{key_id}/revoke", summary="Revoke a key")
async def revoke(request: Request, key_id: str) -> dict[str, Any]:
    """Revokes a key for good, at every gateway within a second, even while the store is down."""
    await admin_of(request).keyring.revoke(key_id, actor=actor_of(request))
    note(request, "admin.key_revoked", key_id=key_id)
    return {"id": key_id, "object": "api_key.revoked", "revoked": True}


def _scopes(words: list[str]) -> frozenset[Scope]:
    """Returns the scopes of these names; raises ``InvalidInput`` if one is unknown."""
    unknown = [word for word in words if word not in set(Scope)]
    if unknown:
        raise InvalidInput(f"'{unknown[0]}' is not a scope: use {', '.join(Scope)}.", param="scopes")
    return frozenset(Scope(word) for word in words)
