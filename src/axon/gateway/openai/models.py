"""Routes of /v1/models: list the models that the caller may use, and retrieve one. Knows no weights."""

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request

from axon.domain.served_version import ServedVersion
from axon.gateway.turn.context import find_deployment, gateway_of, identity_of

router = APIRouter(tags=["models"])


@router.get("/v1/models", summary="List models")
async def index(request: Request) -> dict[str, Any]:
    """Lists the models that this server serves and the caller may use."""
    fleet = gateway_of(request).fleet
    shown = fleet.known and identity_of(request).terms.allows(fleet.name)
    return {"object": "list", "data": [_body(fleet.deployment)] if shown else []}


@router.get("/v1/models/{model:path}", summary="Retrieve a model")
async def show(request: Request, model: str) -> dict[str, Any]:
    """Returns one model by its name, which may contain slashes."""
    return _body(find_deployment(request, model))


def _body(deployment: ServedVersion) -> dict[str, Any]:
    return {
        "id": deployment.name,
        "object": "model",
        "created": int(deployment.created),
        "owned_by": deployment.owned_by,
        "max_model_len": deployment.max_model_len,
        "version": deployment.version,
    }
