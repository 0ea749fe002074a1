"""The route of /v1/admin/logs: the last log lines of the process that answers. Changes nothing."""

import json

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from axon.errors import InvalidInput, NotFound
from axon.gateway.admin.bodies import admin_of
from axon.telemetry.events.event import LEVELS
from axon.telemetry.recent import MAX_LINES

router = APIRouter(tags=["admin"], prefix="/v1/admin/logs")

_NOTE = (
    "These are lines of the process that answers, and of no other. GET /v1/admin/processes lists the others; their "
    "lines are where their stderr goes."
)


@router.get("", summary="List the last log lines")
async def show(request: Request, limit: str = "100", level: str = "debug", process: str = "") -> Response:
    """Lists the last ``limit`` (1 to 1000) log lines of at least this ``level`` (`debug`, `info`, `warning`, `error`),
    oldest first, without keys and users' text. They are those of the process that answers and of no other, as ``note``
    says; the field ``process`` names it. 404 ``process_not_here`` if the query names another one. See docs/logs.md for
    events and fields."""
    admin = admin_of(request)
    if level not in LEVELS:
        raise InvalidInput(f"'level' must be one of: {', '.join(LEVELS)}.", param="level")
    if process and process != admin.process:
        raise NotFound(
            f"The process that answers is '{admin.process}', and it has its own lines alone. Ask again until the other "
            "one answers, or read its stderr.",
            code="process_not_here",
            param="process",
        )
    lines = admin.lines.last(_limit_of(limit), level=level)
    # The lines are JSON already: they are put together, not parsed and written again.
    about = f'"process":{json.dumps(admin.process)},"note":{json.dumps(_NOTE)}'
    body = f'{{"object":"list",{about},"data":[{",".join(lines)}],"has_more":false}}'
    return Response(body, media_type="application/json")


def _limit_of(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 4 and 1 <= int(text) <= MAX_LINES):
        raise InvalidInput(f"'limit' must be a whole number from 1 to {MAX_LINES}.", param="limit")
    return int(text)
