"""Routes of /v1/usage and /v1/admin/usage: tokens used and their cost, by tenant, day and model.

An admin key sees every tenant's usage, a key with the scope ``read`` its own tenant's.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request

from axon.domain.billing.usage_sum import UsageSum
from axon.errors import InvalidInput
from axon.gateway.admin.bodies import admin_of
from axon.gateway.http.paging import DEFAULT_LIMIT, Look, page_of
from axon.gateway.turn.context import identity_of
from axon.tenants.facts import usage_facts

router = APIRouter(tags=["usage"])
_MAX_SPAN = timedelta(days=366)
_DEFAULT_SPAN = timedelta(days=30)
_FIRST_YEAR = 1971
"""Days before this year are refused: no usage is older."""
_USAGE: Look[UsageSum] = Look(lambda spent: "/".join(filter(None, spent.of)), usage_facts)


@router.get("/v1/usage", summary="Retrieve your usage")
async def own(
    request: Request,
    since: str = "",
    until: str = "",
    after: str = "",
    limit: str = DEFAULT_LIMIT,
    order: str = "desc",
) -> dict[str, Any]:
    """Lists the usage of this key's tenant by day, from ``since`` to before ``until`` (UTC days like 2026-11-15)."""
    start, end = _span(since, until, admin_of(request).clock.now())
    tenant = identity_of(request).tenant
    sums = await admin_of(request).tenancy.usage(since=start, until=end, tenant=tenant, by_day=True)
    return page_of(sums, _USAGE, after=after, limit=limit, order=order)


@router.get("/v1/admin/usage", summary="Retrieve usage")
async def everybody(
    request: Request,
    tenant: str = "",
    since: str = "",
    until: str = "",
    by: str = "day",
    after: str = "",
    limit: str = DEFAULT_LIMIT,
    order: str = "asc",
) -> dict[str, Any]:
    """Lists the usage of every tenant, or of one ``tenant``, by default of 30 days. It is summed ``by`` day, model or
    tenant; ``costs`` has an amount for each currency."""
    if by not in ("day", "model", "tenant"):
        raise InvalidInput("'by' must be 'day', 'model' or 'tenant'.", param="by")
    start, end = _span(since, until, admin_of(request).clock.now())
    sums = await admin_of(request).tenancy.usage(
        since=start, until=end, tenant=tenant or None, by_day=by == "day", by_model=by == "model"
    )
    return page_of(sums, _USAGE, after=after, limit=limit, order=order)


def _span(since: str, until: str, now: float) -> tuple[float, float]:
    """Returns the start and end of the days asked for, as timestamps; raises ``InvalidInput`` if they are invalid."""
    end = _day(until, "until") if until else _midnight(now) + timedelta(days=1)
    start = _day(since, "since") if since else end - _DEFAULT_SPAN
    if not timedelta(0) < end - start <= _MAX_SPAN:
        raise InvalidInput("'until' must be later than 'since', by at most a year.", param="until")
    return start.timestamp(), end.timestamp()


def _day(text: str, param: str) -> datetime:
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
        if day.year < _FIRST_YEAR:
            raise ValueError
        return day
    except ValueError:
        raise InvalidInput(f"'{param}' must be a day like 2026-11-15.", param=param) from None


def _midnight(now: float) -> datetime:
    return datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
