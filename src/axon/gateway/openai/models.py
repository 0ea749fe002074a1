"""Routes of /v1/models: list the models that the caller may use, and retrieve one. Knows no weights."""

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request

from axon.domain.served_version import ServedVersion
from axon.gateway.turn.context import find_offer, gateway_of, identity_of

router = APIRouter(tags=["models"])


@router.get("/v1/models", summary="List models")
async def index(request: Request) -> dict[str, Any]:
    """Lists the models that this server serves and the caller may use."""
    listed = gateway_of(request).offers.listed(identity_of(request).terms.allows)
    return {"object": "list", "data": [_body(served) for served in listed]}


@router.get("/v1/models/{model:path}", summary="Retrieve a model")
async def show(request: Request, model: str) -> dict[str, Any]:
    """Returns one model by its name, which may contain slashes."""
    return _body(find_offer(request, model).served)


def _body(served: ServedVersion) -> dict[str, Any]:
    return {
        "id": served.name,
        "object": "model",
        "created": int(served.created),
        "owned_by": served.owned_by,
        "max_model_len": served.max_model_len,
        "version": served.version,
    }
