"""The route of /v1/admin/overview: one look at everything that runs. Changes nothing."""

from dataclasses import replace

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from axon.errors import AxonError
from axon.gateway.admin.bodies import admin_of
from axon.gateway.turn.context import gateway_of

router = APIRouter(tags=["admin"], prefix="/v1/admin/overview")


@router.get("", summary="Look at everything that runs")
async def show(request: Request) -> Response:
    """Returns one look at the server, for `axon top`: workers, models, queues and tenants. ``gateway`` and ``tenants``
    are of the gateway that answers; ``workers``, ``models`` and ``queues`` are of the whole fleet, as workers last
    announced themselves and as turns wait in the shared accounts. Counters only grow; two looks make a rate, if the
    gateway's ``name``, or a worker's ``incarnation``, is the same in both. Lists are bounded, and ``num_workers`` and
    its like count all. ``problems`` says what could not be read."""
    admin = admin_of(request)
    look = await admin.overviews.look(gateway_of(request))
    try:
        takers = await admin.drains.takers([worker.name for worker in look.workers])
    except AxonError as error:
        look = replace(look, problems=(*look.problems, f"orders to drain: {error.message}"))
    else:
        look = replace(look, workers=tuple(replace(each, can_drain=each.name in takers) for each in look.workers))
    return Response(msgspec.json.encode(look), media_type="application/json")
