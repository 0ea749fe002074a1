"""Routes of /v1/admin/traces: where the seconds of a turn went, and those of the slowest. Changes nothing."""

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from axon.domain.tracing.drawn import drawn
from axon.errors import InvalidInput, NotFound
from axon.gateway.admin.bodies import admin_of

router = APIRouter(tags=["admin"], prefix="/v1/admin/traces")
_MOST = 100
_LONGEST_S = 7 * 24 * 3600


@router.get("", summary="Show the slowest turns")
async def slowest(request: Request, limit: str = "20", since_s: str = "3600") -> Response:
    """Lists the slowest of the turns that ended in the last ``since_s`` seconds, of which the last 2,000 are looked at,
    and says which steps the slowest of a hundred are made of."""
    most, back_s = _number(limit, "limit", _MOST), _number(since_s, "since_s", _LONGEST_S)
    found = await admin_of(request).traced.slowest(since_s=back_s, most=most)
    return Response(msgspec.json.encode(found), media_type="application/json")


@router.get("/{turn_id}", summary="Show where a turn's seconds went")
async def show(request: Request, turn_id: str) -> Response:
    """Returns the steps of one turn of any tenant, from its ledger and the token log; ``turn_id`` may be the id of its
    request (``x-request-id``) too, if it is among the last 2,000 turns that ended within a day. It has no text."""
    turn = await admin_of(request).traced.find(turn_id)
    if turn is None:
        raise NotFound(f"No turn or request '{turn_id}' is known.", code="turn_not_found", param="turn_id")
    return Response(msgspec.json.encode(drawn(turn)), media_type="application/json")


def _number(text: str, param: str, most: int) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= most or len(text) > 9:
        raise InvalidInput(f"'{param}' must be a whole number from 1 to {most}.", param=param)
    return int(text)
