"""Routes that need no key: the liveness and readiness probes. Knows no tenant."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from axon.gateway.turn.context import gateway_of

router = APIRouter(tags=["health"])


@router.head("/livez", include_in_schema=False)
@router.get("/livez", summary="Is the process alive?")
async def livez() -> Response:
    """Liveness probe: answers 200 as long as the event loop runs, whatever the state of anything else."""
    return JSONResponse({"status": "alive"})


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz", summary="Can it take work now?")
@router.get("/health", summary="Can it take work now?")
async def readyz(request: Request) -> Response:
    """Readiness probe: answers 503 while the server starts, until a worker has been seen, and while it drains."""
    gateway = gateway_of(request)
    life = gateway.lifecycle
    if life.draining:
        return JSONResponse({"status": "draining"}, status_code=503)
    if not life.ready:
        return JSONResponse({"status": "starting"}, status_code=503)
    if not gateway.offers.are_known:
        problem = gateway.offers.problem()
        return JSONResponse({"status": problem.code, "message": problem.message}, status_code=503)
    return JSONResponse({"status": "ready"})
