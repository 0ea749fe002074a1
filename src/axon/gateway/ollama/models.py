"""Routes by which Ollama's clients find models: /api/version, /api/tags, /api/show and /api/ps. Knows no weights."""

import hashlib
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request

from axon.domain.model.served_version import ServedVersion
from axon.errors import InvalidInput
from axon.gateway.http.schema import body_of_kind
from axon.gateway.offers.offer import Listed
from axon.gateway.offers.wait import State
from axon.gateway.ollama.lines import time_text
from axon.gateway.ollama.requests import LATEST, OllamaShowRequest
from axon.gateway.turn.body import read_body
from axon.gateway.turn.context import find_model, gateway_of, identity_of
from axon.gateway.turn.counting import count_request

router = APIRouter(tags=["ollama"])
_VERSION = "0.12.6"
"""The release of Ollama whose API this is like; editors refuse a server with an older one."""
_FAMILY = "axon"
_KEPT_S = 300.0
"""``expires_at`` is this many seconds from now: a model stays loaded until the server's operator says otherwise."""


@router.get("/api/version", summary="Show the version of Ollama's API")
async def version() -> dict[str, str]:
    """Returns the release of Ollama whose API this is like."""
    return {"version": _VERSION}


@router.get("/api/tags", summary="List models, as Ollama's clients ask")
async def tags(request: Request) -> dict[str, Any]:
    """Lists the models that the caller may use. Sizes are not known, and 0."""
    return {"models": [_body(each) for each in _listed(request)]}


@router.get("/api/ps", summary="List models that can answer at once")
async def ps(request: Request) -> dict[str, Any]:
    """Lists the models that have a worker now."""
    expires_at = time_text(gateway_of(request).clock.now() + _KEPT_S)
    more = {"expires_at": expires_at, "size_vram": 0}
    ready = [each for each in _listed(request) if each.state is State.READY]
    return {"models": [_body(each) | more | {"context_length": each.served.max_model_len} for each in ready]}


@router.post(
    "/api/show", openapi_extra=body_of_kind(OllamaShowRequest), summary="Show a model, as Ollama's clients ask"
)
async def show(request: Request) -> dict[str, Any]:
    """Returns what a model can do, and the length of its context in ``model_info``."""
    _, ask = await read_body(request, OllamaShowRequest)
    name = ask.model or ask.name
    if not name:
        raise InvalidInput("'model' is missing.", param="model", code="missing_required_parameter")
    await count_request(request)
    listed = find_model(request, name.removesuffix(LATEST)).offer.listed()
    served = listed.served
    return {
        "modelfile": "",
        "parameters": "",
        "template": "",
        "license": "",
        "details": _details(),
        "model_info": {
            "general.architecture": _FAMILY,
            "general.basename": served.name,
            f"{_FAMILY}.context_length": served.max_model_len,
        },
        "capabilities": _capabilities(served),
        "modified_at": time_text(served.created),
    }


def _capabilities(served: ServedVersion) -> list[str]:
    """Returns what the model can do, in Ollama's words."""
    if served.embeds is not None:
        return [] if served.embeds.classes else ["embedding"]
    return ["completion", "tools", *(["thinking"] if served.reasons else [])]


def _listed(request: Request) -> list[Listed]:
    return list(gateway_of(request).offers.listed(identity_of(request).terms.allows))


def _body(listed: Listed) -> dict[str, Any]:
    served = listed.served
    return {
        "name": served.name,
        "model": served.name,
        "modified_at": time_text(served.created),
        "size": 0,
        "digest": hashlib.sha256(served.version.encode()).hexdigest(),
        "details": _details(),
    }


def _details() -> dict[str, Any]:
    head = {"parent_model": "", "format": "safetensors", "family": _FAMILY, "families": [_FAMILY]}
    return {**head, "parameter_size": "", "quantization_level": ""}
