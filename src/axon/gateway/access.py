"""The route that a proxy asks whether a key is good, before it reads a request's body. Knows no other route."""

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

router = APIRouter(tags=["access"])


@router.api_route("/v1/auth", methods=["POST", "PATCH", "DELETE"], include_in_schema=False)
@router.get("/v1/auth", summary="Is this key good?")
async def check() -> Response:
    """Answers 200 if the request's key is good, 401 if it is not and 403 if its tenant is suspended or it has no scope
    at all. Nothing else is looked at, and what a key may do is up to the route that it is used on. It is for the
    `auth_request` of nginx and the `ext_authz` of Envoy, which asks with the method of the request that it asks about.
    The key may be in either header, `Authorization` or `X-API-Key`."""
    return JSONResponse({"status": "ok"})
