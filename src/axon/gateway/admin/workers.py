"""The route of /v1/admin/workers: tells one worker of the fleet to drain. Knows no engine."""

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request

from axon.domain.audit import new_entry
from axon.errors import NotFound
from axon.gateway.admin.bodies import actor_of, admin_of, note
from axon.gateway.turn.context import gateway_of

router = APIRouter(tags=["admin"], prefix="/v1/admin/workers")


@router.post("/{worker_id}/drain", summary="Drain a worker")
async def drain(request: Request, worker_id: str) -> dict[str, Any]:
    """Tells a worker's process to take no more jobs, hand the running ones over and end. Whoever started the process
    may start another one. ``GET /v1/admin/overview`` shows the workers. 404 ``worker_not_found`` without one of this
    name; 409 ``worker_not_drained`` if it does not answer, or is a part of `axon serve`."""
    offers = gateway_of(request).offers.all()
    if not any(presence.worker == worker_id for offer in offers for presence in offer.fleet.presences):
        raise NotFound(
            f"No worker '{worker_id}' has announced itself. GET /v1/admin/overview lists those that have.",
            code="worker_not_found",
            param="worker_id",
        )
    admin = admin_of(request)
    await admin.drains.give(worker_id)
    note(request, "admin.worker_drained", worker=worker_id)  # first: the log has it where the trail cannot be written
    entry = new_entry(at=admin.clock.now(), actor=actor_of(request), kind="worker", name=worker_id, action="drain")
    await admin.audit.add(entry)
    return {"id": worker_id, "object": "worker", "draining": True}
