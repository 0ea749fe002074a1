"""Limits for requests that open no turn: each takes one from the token bucket, and storage needs room in the quota."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.requests import Request

from axon.admission.meters import Meters
from axon.domain.tenants.storage import Stored
from axon.errors import AxonError, InvalidInput, LimitReached, TooLarge
from axon.gateway.http.middleware import METERS
from axon.gateway.turn.context import gateway_of, identity_of


async def count_request(request: Request) -> None:
    """Takes one request from the tenant's token bucket; raises ``LimitReached`` if it is empty."""
    meters = Meters()
    request.scope[METERS] = meters
    who = identity_of(request)
    await gateway_of(request).opening.count(who.tenant, who.terms, meters)


async def counted_error(request: Request, error: AxonError) -> AxonError:
    """Returns the error to answer with: ``error``, or ``LimitReached`` if the tenant's request bucket is empty.

    A request with an invalid body has cost work to read and parse, so it takes one request from its tenant's bucket,
    unless it has taken one before.
    """
    if not isinstance(error, InvalidInput | TooLarge) or METERS in request.scope:
        return error
    if "axon.identity" not in request.scope:
        return error  # a request to sign in is no tenant's yet
    try:
        await count_request(request)
    except LimitReached as limit:
        return limit
    except AxonError:
        pass  # the request cannot be counted now, and is refused nevertheless
    return error


@asynccontextmanager
async def storing(request: Request, more: Stored) -> AsyncIterator[None]:
    """Counts the request and reserves quota for ``more`` while the block stores it; raises ``LimitReached`` if full."""
    gateway, who = gateway_of(request), identity_of(request)
    try:
        await count_request(request)
        async with gateway.quota.room(who.tenant, who.terms, more):
            yield
    except LimitReached as error:
        gateway.metrics.requests.rejected.labels(error.code, gateway.metrics.tenants.label(who.tenant)).inc()
        raise


def note_erased(request: Request) -> None:
    """Notes that something of the caller's tenant was erased: its next request measures anew what the tenant stores."""
    gateway_of(request).quota.forget(identity_of(request).tenant)
