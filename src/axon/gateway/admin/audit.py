"""The route of /v1/admin/audit: every change that administrators made, the newest first. Changes nothing itself."""

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request

from axon.domain.audit import AuditEntry
from axon.errors import InvalidInput
from axon.gateway.admin.bodies import admin_of
from axon.gateway.http.paging import DEFAULT_LIMIT, Look, limit_of, listed
from axon.tenants.facts import audit_facts

router = APIRouter(tags=["admin"], prefix="/v1/admin/audit")
_LOOK: Look[AuditEntry] = Look(lambda entry: entry.id, audit_facts)
_MAX_TEXT = 256


@router.get("", summary="List the audit trail")
async def index(
    request: Request, after: str = "", limit: str = DEFAULT_LIMIT, kind: str = "", text: str = ""
) -> dict[str, Any]:
    """Lists who changed what, page by page, the newest first: tenants, plans, keys, drained workers and, among them,
    the changes of the registry, whose ids are their numbers in ``/v1/admin/changes``. ``before`` and ``after`` are the
    record, without secrets. ``kind`` is one kind of record; ``text`` is looked for in names, actors, actions and
    records. A page of large records has fewer than ``limit``. Nothing is ever removed from it."""
    if len(text) > _MAX_TEXT:
        raise InvalidInput(f"'text' must have at most {_MAX_TEXT} characters.", param="text")
    found = await admin_of(request).audit.page(limit=limit_of(limit), after=after, kind=kind, text=text)
    if found is None:
        raise InvalidInput(f"No item with id '{after[:100]}' in this list.", param="after")
    return listed(found.entries, _LOOK, has_more=found.has_more)
