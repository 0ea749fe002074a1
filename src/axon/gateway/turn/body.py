"""Reads a request's body by the directives of its route. Knows no field."""

from starlette.requests import Request

from axon.gateway.directive import Directives
from axon.gateway.http.body import W
from axon.gateway.turn.context import gateway_of

_NONE = Directives("", {})


async def read_body(
    request: Request, kind: type[W], directives: Directives = _NONE, *, empty: bytes = b""
) -> tuple[bytes, W]:
    """Returns the body, and what it asks for; raises as ``Bodies.read`` and ``Bodies.parse`` do. An empty body is read
    as ``empty``."""
    bodies = gateway_of(request).bodies
    body = await bodies.read(request) or empty
    return body, await bodies.parse(kind, body, directives.refused, directives.notes)
