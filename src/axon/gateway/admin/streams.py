"""The route of /v1/admin/streams: the streams that the gateway that answers writes to readers now. Has no text."""

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request

from axon.domain.job import Job
from axon.gateway.admin.bodies import admin_of
from axon.gateway.turn.context import gateway_of
from axon.gateway.turn.reader import Reader

router = APIRouter(tags=["admin"], prefix="/v1/admin/streams")
_MOST = 500


@router.get("", summary="List live streams")
async def index(request: Request, tenant: str = "", key: str = "") -> dict[str, Any]:
    """Lists the streams of all tenants, or of one ``tenant`` or ``key``, that the gateway that answers writes now, the
    oldest first and at most 500; ``num_streams`` counts all. ``process`` names the gateway: others have their own."""
    admin = admin_of(request)
    found = [
        (reader, job)
        for reader in gateway_of(request).follower.readers
        if (job := reader.job) is not None and tenant in ("", job.tenant) and key in ("", reader.key_id)
    ]
    found.sort(key=lambda each: each[1].created)
    now = admin.clock.now()
    return {
        "object": "list",
        "process": admin.process,
        "num_streams": len(found),
        "data": [_body(reader, job, now) for reader, job in found[:_MOST]],
        "has_more": len(found) > _MOST,
    }


def _body(reader: Reader, job: Job, now: float) -> dict[str, Any]:
    return {
        "id": job.id,
        "object": "stream",
        "tenant": job.tenant,
        "model": job.deployment,
        "version": job.version,
        "key": reader.key_id,
        "created_at": int(job.created),
        "age_s": round(max(0.0, now - job.created), 3),
    }
