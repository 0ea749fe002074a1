"""The route of /v1/admin/changes: who changed what in the registry. Changes nothing itself."""

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request

from axon.domain.registry.change import Change
from axon.errors import InvalidInput
from axon.gateway.admin.bodies import admin_of
from axon.gateway.http.paging import DEFAULT_LIMIT, Look, is_descending, limit_of, listed
from axon.registry.catalog import Catalog
from axon.registry.facts import change_facts

router = APIRouter(tags=["admin"], prefix="/v1/admin/changes")
_LOOK: Look[Change] = Look(lambda change: str(change.number), change_facts)
_MAX_DIGITS = 18


@router.get("", summary="List changes of the registry")
async def index(request: Request, after: str = "0", limit: str = DEFAULT_LIMIT, order: str = "asc") -> dict[str, Any]:
    """Lists the audit trail page by page, by default the oldest first: who changed which record, with the record before
    and after. Changes are numbered without gaps; ``after`` is the number of the last one that was read. A page of large
    records has fewer than ``limit``."""
    catalog, number, most = admin_of(request).catalog, _number(after), limit_of(limit)
    if is_descending(order):
        newest = await _newest(catalog, number - 1 if number else await catalog.revision(), most)
        return listed(newest, _LOOK, has_more=bool(newest) and newest[-1].number > 1)
    found = await catalog.changes(after=number, limit=most)
    return listed(found, _LOOK, has_more=bool(found) and found[-1].number < await catalog.revision())


async def _newest(catalog: Catalog, last: int, most: int) -> list[Change]:
    """The changes up to number ``last``, the newest first. The store may give fewer than it is asked for, from the
    oldest on, so it is asked until it has given the last one."""
    found: list[Change] = []
    number = max(0, last - most)
    while number < last and (some := await catalog.changes(after=number, limit=last - number)):
        found += some
        number = some[-1].number
    return found[::-1]


def _number(text: str) -> int:
    """Returns the change's number; raises ``InvalidInput`` for anything else."""
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS):
        raise InvalidInput("'after' must be the number of a change.", param="after")
    return int(text)
