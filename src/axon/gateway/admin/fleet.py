"""Routes of /v1/admin/fleet: the workers that control runs, and why. Changes nothing."""

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request

from axon.errors import NotFound
from axon.gateway.admin.bodies import admin_of
from axon.registry.fleet_facts import NO_REPORT, fleet_facts

router = APIRouter(tags=["admin"], prefix="/v1/admin/fleet")


@router.get("", summary="Show the fleet")
async def show(request: Request) -> dict[str, Any]:
    """Returns the last report of control's leader: replicas that are wanted, starting, ready and draining for each
    deployment, every launched replica with its restarts and problem, and the last decisions with their reasons.
    ``age_s`` says how old the report is. 404 while no control with a launcher leads."""
    admin = admin_of(request)
    status = await admin.fleet.last()
    if status is None:
        raise NotFound(NO_REPORT, code="fleet_not_run")
    return fleet_facts(status, now=admin.clock.now())
