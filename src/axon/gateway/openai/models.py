"""Routes of /v1/models: list the models that the caller may use, and retrieve one. Knows no weights."""

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request

from axon.gateway.offers.offer import Listed
from axon.gateway.turn.context import find_model, gateway_of, identity_of

router = APIRouter(tags=["models"])


@router.get("/v1/models", summary="List models")
async def index(request: Request) -> dict[str, Any]:
    """Lists the models that this server serves and the caller may use."""
    listed = gateway_of(request).offers.listed(identity_of(request).terms.allows)
    return {"object": "list", "data": [_body(each) for each in listed]}


@router.get("/v1/models/{model:path}", summary="Retrieve a model")
async def show(request: Request, model: str) -> dict[str, Any]:
    """Returns one model by its name, which may contain slashes."""
    return _body(find_model(request, model).offer.listed())


def _body(listed: Listed) -> dict[str, Any]:
    served = listed.served
    return {
        "id": served.name,
        "object": "model",
        "created": int(served.created),
        "owned_by": served.owned_by,
        "max_model_len": served.max_model_len,
        "version": listed.label or served.version,
        "state": listed.state,
        "capabilities": list(listed.capabilities),
    }
