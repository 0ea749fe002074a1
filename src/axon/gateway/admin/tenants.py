"""Routes of /v1/admin/tenants: tenants, their plans and limits of their own. Knows no key's secret."""

from dataclasses import replace
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request

from axon.domain.tenants.tenant import DEFAULT_PLAN, Limits, Tenant
from axon.errors import Conflict
from axon.gateway.admin.bodies import (
    AdminWire,
    LimitsBody,
    Name,
    actor_of,
    admin_of,
    note,
    read,
    stored_body,
    terms_body,
)
from axon.gateway.http.paging import DEFAULT_LIMIT, Look, page_of
from axon.gateway.http.schema import body_of_kind
from axon.gateway.turn.context import identity_of
from axon.tenants.facts import limit_facts, tenant_facts

router = APIRouter(tags=["admin"], prefix="/v1/admin/tenants")
_TENANT: Look[Tenant] = Look(lambda tenant: tenant.id, tenant_facts)


class NewTenant(AdminWire):
    """Body of POST /v1/admin/tenants."""

    id: str
    """The tenant's id: 1 to 64 letters, digits, dots, dashes or underscores; it cannot be changed."""
    name: Name = ""
    """A name for people to read."""
    plan: str = DEFAULT_PLAN
    """The name of the tenant's plan."""
    limits: LimitsBody | None = None
    """Limits of the tenant's own, which replace its plan's."""


class TenantChange(AdminWire):
    """Body of PATCH /v1/admin/tenants/{id}; fields that it does not have stay as they are."""

    name: Name | None = None
    """The new name; null removes the name."""
    plan: str | None = None
    """The new plan; null puts the tenant on the plan ``default``."""
    limits: LimitsBody | None = None
    """Limits to change; null unsets a limit, so that the plan decides it."""


@router.get("", summary="List tenants")
async def index(request: Request, after: str = "", limit: str = DEFAULT_LIMIT, order: str = "desc") -> dict[str, Any]:
    """Lists all tenants page by page, the newest first."""
    return page_of(await admin_of(request).tenancy.tenants(), _TENANT, after=after, limit=limit, order=order)


@router.post("", openapi_extra=body_of_kind(NewTenant), summary="Create a tenant")
async def create(request: Request) -> dict[str, Any]:
    """Creates a tenant, which can send requests once it has a key."""
    ask = await read(NewTenant, request)
    limits = ask.limits.over(Limits()) if ask.limits else Limits()
    made = await admin_of(request).tenancy.create(
        ask.id, name=ask.name, plan=ask.plan, limits=limits, actor=actor_of(request)
    )
    note(request, "admin.tenant_created", tenant=made.id, plan=made.plan, limits=limit_facts(made.limits))
    return await _whole(request, made)


@router.get("/{tenant_id}", summary="Retrieve a tenant")
async def show(request: Request, tenant_id: str) -> dict[str, Any]:
    """Returns a tenant. ``terms`` are the limits that hold for it, from its own, its plan's and the server's limits;
    ``stored`` is how much it stores."""
    return await _whole(request, await admin_of(request).tenancy.tenant(tenant_id))


@router.patch("/{tenant_id}", openapi_extra=body_of_kind(TenantChange), summary="Change a tenant")
async def change(request: Request, tenant_id: str) -> dict[str, Any]:
    """Changes a tenant's name, plan or limits; new limits hold for new requests within a second."""
    ask = await read(TenantChange, request)

    def changed(old: Tenant) -> Tenant:
        """Returns the tenant with the changes of the request's body."""
        return replace(
            old,
            name=(ask.name or "") if "name" in ask.model_fields_set else old.name,
            plan=(DEFAULT_PLAN if ask.plan is None else ask.plan) if "plan" in ask.model_fields_set else old.plan,
            limits=ask.limits.over(old.limits) if ask.limits else old.limits,
        )

    new = await admin_of(request).tenancy.change(tenant_id, changed, actor=actor_of(request))
    note(request, "admin.tenant_changed", tenant=new.id, plan=new.plan, limits=limit_facts(new.limits))
    return await _whole(request, new)


@router.post("/{tenant_id}/suspend", summary="Suspend a tenant")
async def suspend(request: Request, tenant_id: str) -> dict[str, Any]:
    """Refuses all requests of the tenant within a second. Its running turns go on to their ends; its data is kept."""
    if tenant_id == identity_of(request).tenant:
        raise Conflict("A tenant cannot suspend itself: its keys could not resume it.", code="own_tenant")
    tenant = await admin_of(request).tenancy.suspend(tenant_id, actor=actor_of(request))
    note(request, "admin.tenant_suspended", tenant=tenant.id)
    return await _whole(request, tenant)


@router.post("/{tenant_id}/resume", summary="Resume a tenant")
async def resume(request: Request, tenant_id: str) -> dict[str, Any]:
    """Accepts requests of a suspended tenant again."""
    tenant = await admin_of(request).tenancy.resume(tenant_id, actor=actor_of(request))
    note(request, "admin.tenant_resumed", tenant=tenant.id)
    return await _whole(request, tenant)


@router.delete("/{tenant_id}", summary="Remove a tenant")
async def remove(request: Request, tenant_id: str) -> dict[str, Any]:
    """Deletes a tenant whose keys are all revoked or expired. Its usage is kept, and its id cannot be used again."""
    await admin_of(request).tenancy.remove(tenant_id, actor=actor_of(request))
    note(request, "admin.tenant_removed", tenant=tenant_id)
    return {"id": tenant_id, "object": "tenant.deleted", "deleted": True}


async def _whole(request: Request, tenant: Tenant) -> dict[str, Any]:
    """Returns the JSON of a tenant with its terms and how much it stores."""
    tenancy = admin_of(request).tenancy
    terms, stored = await tenancy.terms(tenant), await tenancy.stored(tenant.id)
    return {**tenant_facts(tenant), "terms": terms_body(terms), "stored": stored_body(stored)}
