"""Routes of /v1/admin/adapters: the LoRA adapters of models. Knows no engine, and fetches by what it is passed."""

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request

from axon.gateway.admin.bodies import AdminWire, actor_of, admin_of, note, read
from axon.gateway.admin.models.registry import asked_revision, page, removed
from axon.gateway.http.paging import DEFAULT_LIMIT
from axon.gateway.http.schema import body_of_kind
from axon.registry.facts import facts_of
from axon.registry.rules import adapter_of

router = APIRouter(tags=["admin"], prefix="/v1/admin/adapters")


class NewAdapter(AdminWire):
    """Body of POST /v1/admin/adapters."""

    model: str
    """Name of the model that it changes."""
    name: str
    """The adapter's name, behind the colon in requests: 1 to 64 letters, digits, dots, dashes or underscores."""
    source: str
    """Where its files come from: a path that every worker can read, ``hf://org/name@revision`` or
    ``s3://bucket/prefix``."""
    tenant: str = ""
    """The tenant that it is for; to others it does not exist. Empty for everybody."""


@router.get("", summary="List adapters")
async def index(
    request: Request, model: str = "", after: str = "", limit: str = DEFAULT_LIMIT, order: str = "asc"
) -> dict[str, Any]:
    """Lists the adapters of all models and tenants, or those of one ``model``, page by page, by name."""
    found = await admin_of(request).catalog.snapshot()
    own = [each for _, each in sorted(found.adapters.items()) if model in ("", each.model)]
    return page(own, after=after, limit=limit, order=order)


@router.post("", openapi_extra=body_of_kind(NewAdapter), summary="Add an adapter")
async def create(request: Request) -> dict[str, Any]:
    """Fetches an adapter's files, checks them and registers it: requests name it ``model:name``. One that is there gets
    the new files; sessions that began with the earlier ones keep them."""
    ask, admin = await read(NewAdapter, request), admin_of(request)
    fetched = await admin.fetch_adapter(ask.model, ask.name, ask.source, ask.tenant)
    made = await admin.catalog.set_adapter(fetched, actor=actor_of(request))
    note(request, "admin.adapter_added", adapter=made.id, tenant=made.tenant, digest=made.digest)
    return facts_of(made)


@router.get("/{adapter_id}", summary="Retrieve an adapter")
async def show(request: Request, adapter_id: str) -> dict[str, Any]:
    """Returns an adapter, whose id is ``model:name``, with the last files that it had, the present ones first."""
    return facts_of(adapter_of(await admin_of(request).catalog.snapshot(), adapter_id))


@router.delete("/{adapter_id}", summary="Remove an adapter")
async def remove(request: Request, adapter_id: str) -> dict[str, Any]:
    """Removes an adapter: no request may name it any more. Turns that run with it end with it."""
    revision = asked_revision(request)
    await admin_of(request).catalog.remove_adapter(adapter_id, revision=revision, actor=actor_of(request))
    note(request, "admin.adapter_removed", adapter=adapter_id)
    return removed(adapter_id, "adapter")
