"""Routes of /v1/admin/plans: named sets of limits for many tenants. Knows no request that the limits hold for."""

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request

from axon.domain.tenants.tenant import Limits, Plan
from axon.gateway.admin.bodies import AdminWire, LimitsBody, actor_of, admin_of, note, read
from axon.gateway.http.paging import DEFAULT_LIMIT, Look, page_of
from axon.gateway.http.schema import body_of_kind
from axon.tenants.facts import limit_facts, plan_facts

router = APIRouter(tags=["admin"], prefix="/v1/admin/plans")
_PLAN: Look[Plan] = Look(lambda plan: plan.name, plan_facts)


class NewPlan(AdminWire):
    """Body of POST /v1/admin/plans."""

    id: str
    """The plan's name: 1 to 64 letters, digits, dots, dashes or underscores. Tenants without a plan are on ``default``.
    """
    limits: LimitsBody | None = None


class PlanChange(AdminWire):
    """Body of PATCH /v1/admin/plans/{id}."""

    limits: LimitsBody
    """Limits to change; null unsets a limit, so that the server's settings decide it."""


@router.get("", summary="List plans")
async def index(request: Request, after: str = "", limit: str = DEFAULT_LIMIT, order: str = "asc") -> dict[str, Any]:
    """Lists all plans page by page, by name."""
    return page_of(await admin_of(request).tenancy.plans(), _PLAN, after=after, limit=limit, order=order)


@router.post("", openapi_extra=body_of_kind(NewPlan), summary="Create a plan")
async def create(request: Request) -> dict[str, Any]:
    """Creates a plan, which tenants can then be put on."""
    ask = await read(NewPlan, request)
    limits = ask.limits.over(Limits()) if ask.limits else Limits()
    made = await admin_of(request).tenancy.create_plan(ask.id, limits, actor=actor_of(request))
    note(request, "admin.plan_created", plan=made.name, limits=limit_facts(made.limits))
    return plan_facts(made)


@router.get("/{plan_id}", summary="Retrieve a plan")
async def show(request: Request, plan_id: str) -> dict[str, Any]:
    """Returns a plan and its limits."""
    return plan_facts(await admin_of(request).tenancy.plan(plan_id))


@router.patch("/{plan_id}", openapi_extra=body_of_kind(PlanChange), summary="Change a plan")
async def change(request: Request, plan_id: str) -> dict[str, Any]:
    """Changes some of a plan's limits; they hold for all its tenants within a second."""
    ask = await read(PlanChange, request)
    new = await admin_of(request).tenancy.change_plan(plan_id, ask.limits.over, actor=actor_of(request))
    note(request, "admin.plan_changed", plan=new.name, limits=limit_facts(new.limits))
    return plan_facts(new)


@router.delete("/{plan_id}", summary="Remove a plan")
async def remove(request: Request, plan_id: str) -> dict[str, Any]:
    """Deletes a plan that no tenant is on. The plan ``default`` cannot be deleted; unset its limits instead."""
    await admin_of(request).tenancy.remove_plan(plan_id, actor=actor_of(request))
    note(request, "admin.plan_removed", plan=plan_id)
    return {"id": plan_id, "object": "plan.deleted", "deleted": True}
