"""Routes of /v1/models: list the models that the caller may use, and retrieve one. Knows no weights."""

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request

from axon.domain.registry.adapter import Adapter
from axon.gateway.offers.offer import Listed
from axon.gateway.turn.context import find_model, gateway_of, identity_of

router = APIRouter(tags=["models"])


@router.get("/v1/models", summary="List models")
async def index(request: Request) -> dict[str, Any]:
    """Lists the models that this server serves and the caller may use."""
    offers, who = gateway_of(request).offers, identity_of(request)
    data = []
    for each in offers.listed(who.terms.allows):
        data += [_body(each), *(_body(each, adapter) for adapter in offers.adapters(each, who.tenant))]
    return {"object": "list", "data": data}


@router.get("/v1/models/{model:path}", summary="Retrieve a model")
async def show(request: Request, model: str) -> dict[str, Any]:
    """Returns one model by its name, which may contain slashes."""
    wanted = find_model(request, model)
    return _body(wanted.offer.listed(), wanted.adapter)


def _body(listed: Listed, adapter: Adapter | None = None) -> dict[str, Any]:
    """A model; one with a LoRA adapter names the model that it is of as its ``parent``, as vLLM does."""
    served = listed.served
    body = {
        "id": served.name,
        "object": "model",
        "created": int(served.created),
        "owned_by": served.owned_by,
        "max_model_len": served.max_model_len,
        "version": listed.label or served.version,
        "state": listed.state,
        "capabilities": list(listed.capabilities),
    }
    if adapter is None:
        return body
    own = {"id": f"{served.name}:{adapter.label}", "created": int(adapter.created), "parent": served.name}
    return {**body, **own, "adapter": adapter.digest}
