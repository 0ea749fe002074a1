"""/v1/conversations: what the server keeps for a tenant under a name, and the items in it."""

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request

from axon.domain.conversation import Conversation
from axon.domain.item import Item
from axon.domain.storage import Stored
from axon.errors import NotFound
from axon.gateway.http.body import read_body
from axon.gateway.http.paging import DEFAULT_LIMIT, listed, page_of
from axon.gateway.http.schema import body_of_kind
from axon.gateway.responses.items import ITEM, item_body, items_of
from axon.gateway.responses.requests import ConversationRequest, ItemsRequest, MetadataRequest
from axon.gateway.turn.context import gateway_of, identity_of
from axon.gateway.turn.counting import note_erased, storing
from axon.sessions.conversations import Conversations

router = APIRouter(tags=["conversations"], prefix="/v1/conversations")


@router.post("", openapi_extra=body_of_kind(ConversationRequest), summary="Create a conversation")
async def create(request: Request) -> dict[str, Any]:
    """An empty conversation, or one that begins with the given items."""
    gateway = gateway_of(request)
    body = await read_body(request, gateway.config) or b"{}"
    ask = await gateway.bodies.parse(ConversationRequest, body, {})
    items = items_of(ask.items or [], now=gateway.clock.now(), param="items")
    async with storing(request, Stored(num_bytes=len(body), num_objects=1 + len(items))):
        return _body(await _kept(request).create(_tenant(request), items, ask.metadata or {}))


@router.get("/{conversation_id}", summary="Retrieve a conversation")
async def show(request: Request, conversation_id: str) -> dict[str, Any]:
    """Its metadata; what was said in it is listed by its items."""
    return _body(await _kept(request).get(_tenant(request), conversation_id))


@router.post("/{conversation_id}", openapi_extra=body_of_kind(MetadataRequest), summary="Update a conversation")
async def update(request: Request, conversation_id: str) -> dict[str, Any]:
    """Sets its metadata anew."""
    gateway = gateway_of(request)
    body = await read_body(request, gateway.config)
    ask = await gateway.bodies.parse(MetadataRequest, body, {})
    async with storing(request, Stored(num_bytes=len(body))):
        return _body(await _kept(request).update(_tenant(request), conversation_id, ask.metadata))


@router.delete("/{conversation_id}", summary="Delete a conversation")
async def delete(request: Request, conversation_id: str) -> dict[str, Any]:
    """Erases the conversation and every word said in it."""
    await _kept(request).delete(_tenant(request), conversation_id)
    note_erased(request)
    return {"id": conversation_id, "object": "conversation.deleted", "deleted": True}


@router.post("/{conversation_id}/items", openapi_extra=body_of_kind(ItemsRequest), summary="Add items")
async def add_items(request: Request, conversation_id: str) -> dict[str, Any]:
    """Adds items to the end of a conversation without asking the model anything."""
    gateway = gateway_of(request)
    body = await read_body(request, gateway.config)
    ask = await gateway.bodies.parse(ItemsRequest, body, {})
    items = items_of(ask.items, now=gateway.clock.now(), param="items")
    async with storing(request, Stored(num_bytes=len(body), num_objects=len(items))):
        await _kept(request).add(_tenant(request), conversation_id, items)
    return listed(items, ITEM)


@router.get("/{conversation_id}/items", summary="List items")
async def list_items(
    request: Request, conversation_id: str, after: str = "", limit: str = DEFAULT_LIMIT, order: str = "desc"
) -> dict[str, Any]:
    """What was said and added, page by page, the newest first; what a running response says is not among it."""
    items = await _kept(request).items(_tenant(request), conversation_id)
    return page_of(items, ITEM, after=after, limit=limit, order=order)


@router.get("/{conversation_id}/items/{item_id}", summary="Retrieve an item")
async def show_item(request: Request, conversation_id: str, item_id: str) -> dict[str, Any]:
    """One item."""
    return item_body(await _item(request, conversation_id, item_id))


@router.delete("/{conversation_id}/items/{item_id}", summary="Delete an item")
async def delete_item(request: Request, conversation_id: str, item_id: str) -> dict[str, Any]:
    """Takes an item out of the conversation; answers with what the conversation is now."""
    await _item(request, conversation_id, item_id)
    await _kept(request).remove(_tenant(request), conversation_id, item_id)
    note_erased(request)
    return _body(await _kept(request).get(_tenant(request), conversation_id))


async def _item(request: Request, conversation_id: str, item_id: str) -> Item:
    items = await _kept(request).items(_tenant(request), conversation_id)
    found = next((item for item in items if item.id == item_id), None)
    if found is None:
        raise NotFound(f"Item with id '{item_id}' not found.", code="item_not_found", param="item_id")
    return found


def _kept(request: Request) -> Conversations:
    return gateway_of(request).sessions.conversations


def _tenant(request: Request) -> str:
    return identity_of(request).tenant


def _body(conversation: Conversation) -> dict[str, Any]:
    return {
        "id": conversation.id,
        "object": "conversation",
        "created_at": int(conversation.created_at),
        "metadata": dict(conversation.metadata),
    }
