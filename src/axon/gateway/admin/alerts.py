"""The route of /v1/admin/alerts: what the configured Alertmanager has as active. Changes nothing."""

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request

from axon.errors import NotFound
from axon.gateway.admin.bodies import admin_of
from axon.ports.alerts import ActiveAlert

router = APIRouter(tags=["admin"], prefix="/v1/admin/alerts")
NOT_CONFIGURED = "No Alertmanager is configured: set 'alerts.url' to have its alerts here."


@router.get("", summary="List active alerts")
async def show(request: Request) -> dict[str, Any]:
    """Lists the active alerts of the Alertmanager that ``alerts.url`` names, the oldest first, with those that are
    silenced or inhibited. 404 ``alerts_not_configured`` without one; 503 ``alerts_unavailable`` when it does not answer
    within 5 s."""
    alerts = admin_of(request).alerts
    if alerts is None:
        raise NotFound(NOT_CONFIGURED, code="alerts_not_configured")
    return {"object": "list", "data": [_body(each) for each in await alerts.active()], "has_more": False}


def _body(alert: ActiveAlert) -> dict[str, Any]:
    return {
        "object": "alert",
        "name": alert.name,
        "state": alert.state,
        "starts_at": alert.starts_at,
        "silenced": alert.silenced,
        "inhibited": alert.inhibited,
        "labels": dict(alert.labels),
        "annotations": dict(alert.annotations),
    }
