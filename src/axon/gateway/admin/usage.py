"""What turns cost, by tenant and day: everybody's for an admin, a tenant's own for whoever may read."""

from datetime import UTC, datetime, timedelta
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request

from axon.domain.usage import UsageSum
from axon.errors import InvalidInput
from axon.gateway.admin.bodies import admin_of, usage_body
from axon.gateway.http.paging import DEFAULT_LIMIT, Look, page_of
from axon.gateway.turn.context import identity_of

router = APIRouter(tags=["usage"])
_LONGEST = timedelta(days=366)
_USUAL = timedelta(days=30)
_FIRST_YEAR = 1971
_USAGE: Look[UsageSum] = Look(lambda spent: f"{spent.tenant}/{spent.day}", usage_body)


@router.get("/v1/usage", summary="Retrieve your usage")
async def own(
    request: Request,
    since: str = "",
    until: str = "",
    after: str = "",
    limit: str = DEFAULT_LIMIT,
    order: str = "desc",
) -> dict[str, Any]:
    """What the tenant of this key has used day by day, ``since`` and before ``until`` (days as 2026-11-15, in UTC)."""
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
    """What every tenant or one ``tenant`` has used, ``by`` day or tenant; without ``since``, in the last 30 days."""
    if by not in ("day", "tenant"):
        raise InvalidInput("'by' must be 'day' or 'tenant'.", param="by")
    start, end = _span(since, until, admin_of(request).clock.now())
    sums = await admin_of(request).tenancy.usage(since=start, until=end, tenant=tenant or None, by_day=by == "day")
    return page_of(sums, _USAGE, after=after, limit=limit, order=order)


def _span(since: str, until: str, now: float) -> tuple[float, float]:
    end = _day(until, "until") if until else _midnight(now) + timedelta(days=1)
    start = _day(since, "since") if since else end - _USUAL
    if not timedelta(0) < end - start <= _LONGEST:
        raise InvalidInput("'until' must be later than 'since', by at most a year.", param="until")
    return start.timestamp(), end.timestamp()


def _day(text: str, param: str) -> datetime:
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
        if day.year < _FIRST_YEAR:
            raise ValueError
        return day
    except ValueError:
        raise InvalidInput(f"'{param}' must be a day, as 2026-11-15.", param=param) from None


def _midnight(now: float) -> datetime:
    return datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
