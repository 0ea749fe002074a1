"""Routes of /v1/admin/prices: what a model's tokens cost, from which time on. Knows no bill."""

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request

from axon.domain.registry.price import Price
from axon.domain.registry.version import version_id
from axon.gateway.admin.bodies import AdminWire, actor_of, admin_of, note, read
from axon.gateway.admin.models.registry import page
from axon.gateway.http.paging import DEFAULT_LIMIT
from axon.gateway.http.schema import body_of_kind
from axon.registry.facts import facts_of

router = APIRouter(tags=["admin"], prefix="/v1/admin/prices")


class NewPrice(AdminWire):
    """Body of POST /v1/admin/prices. Prices are for a million tokens."""

    model: str
    """Name of the model."""
    version: str = ""
    """The version that it holds for, by its label or its id; empty for every version without a price of its own."""
    prompt: float = 0.0
    """Per million prompt tokens that were computed."""
    cached: float = 0.0
    """Per million prompt tokens that were found in the cache."""
    output: float = 0.0
    """Per million tokens of answers."""
    inputs: float = 0.0
    """Per million inputs of embeddings."""
    currency: str = "USD"
    since: float | None = None
    """Unix time from which it holds; by default from now on. A turn has the price that held when it was accepted."""


@router.get("", summary="List prices")
async def index(
    request: Request, model: str = "", after: str = "", limit: str = DEFAULT_LIMIT, order: str = "desc"
) -> dict[str, Any]:
    """Lists all prices, or those of one ``model``, page by page, the latest first."""
    found = await admin_of(request).catalog.snapshot()
    own = [price for price in found.prices if model in ("", price.model)]
    return page(own, after=after, limit=limit, order=order)


@router.post("", openapi_extra=body_of_kind(NewPrice), summary="Add a price")
async def create(request: Request) -> dict[str, Any]:
    """Adds a price. A price cannot be changed or removed; another one follows it."""
    ask = await read(NewPrice, request)
    admin = admin_of(request)
    version = version_id(ask.model, ask.version) if ask.version and "@" not in ask.version else ask.version
    since = admin.clock.now() if ask.since is None else ask.since
    said = ask.model_dump(exclude={"version", "since"})
    price = Price(id="", version=version, since=since, **said)
    made = await admin.catalog.add_price(price, actor=actor_of(request))
    note(request, "admin.price_added", price=made.id, model=made.model, version=made.version)
    return facts_of(made)
