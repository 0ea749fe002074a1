"""Routes of /v1/conversations: conversations that the server stores, and their items. Knows no model."""

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request

from axon.domain.content.item import Item
from axon.domain.session.conversation import PREFIX, Conversation
from axon.domain.tenants.storage import Stored
from axon.domain.turn import Turn
from axon.errors import InvalidInput, NotFound
from axon.gateway.http.paging import DEFAULT_LIMIT, Look, cursor, is_descending, limit_of, listed, page_of
from axon.gateway.http.schema import body_of_kind
from axon.gateway.responses.body import response_body
from axon.gateway.responses.items import ITEM, item_body, items_of
from axon.gateway.responses.requests import ConversationRequest, ItemsRequest, MetadataRequest
from axon.gateway.turn.body import read_body
from axon.gateway.turn.context import gateway_of, identity_of
from axon.gateway.turn.counting import note_erased, storing
from axon.gateway.turn.headers import wants_ledger
from axon.sessions.conversations import Conversations

router = APIRouter(tags=["conversations"], prefix="/v1/conversations")

_MAX_TITLE = 200
"""Most characters of a title that is looked for."""


@router.post("", openapi_extra=body_of_kind(ConversationRequest), summary="Create a conversation")
async def create(request: Request) -> dict[str, Any]:
    """Creates a conversation, empty or with the given items."""
    _, ask = await read_body(request, ConversationRequest, empty=b"{}")
    items = items_of(ask.items or [], now=gateway_of(request).clock.now(), param="items")
    metadata = ask.metadata or {}
    async with storing(request, Stored(num_objects=1) + Stored.of_metadata(metadata) + Stored.of_items(items)):
        return _body(await _conversations(request).create(_tenant(request), items, metadata))


@router.get("", summary="List conversations")
async def index(
    request: Request, after: str = "", limit: str = DEFAULT_LIMIT, order: str = "desc", title: str = ""
) -> dict[str, Any]:
    """Lists the conversations of the caller's tenant page by page, by default the newest first.

    ``title`` lists those whose metadata has a ``title`` that contains it; case does not count.
    """
    num, newest_first = limit_of(limit), is_descending(order)
    if len(title) > _MAX_TITLE:
        raise InvalidInput(f"'title' must have at most {_MAX_TITLE} characters.", param="title")
    found = await _conversations(request).page(
        _tenant(request), limit=num + 1, after=cursor(after, PREFIX), title=title, newest_first=newest_first
    )
    return listed(found[:num], _CONVERSATION, has_more=len(found) > num)


@router.get("/{conversation_id}", summary="Retrieve a conversation")
async def show(request: Request, conversation_id: str) -> dict[str, Any]:
    """Returns a conversation's metadata; the route of its items lists its messages."""
    return _body(await _conversations(request).get(_tenant(request), conversation_id))


@router.post("/{conversation_id}", openapi_extra=body_of_kind(MetadataRequest), summary="Update a conversation")
async def update(request: Request, conversation_id: str) -> dict[str, Any]:
    """Replaces a conversation's metadata."""
    _, ask = await read_body(request, MetadataRequest)
    async with storing(request, Stored.of_metadata(ask.metadata)):
        return _body(await _conversations(request).update(_tenant(request), conversation_id, ask.metadata))


@router.delete("/{conversation_id}", summary="Delete a conversation")
async def delete(request: Request, conversation_id: str, branches: str = "false") -> dict[str, Any]:
    """Deletes the conversation and all text in it. With ``branches=true``, also that of the responses which go on from
    one of its own or from its start."""
    every = branches.lower() in ("true", "1")
    await _conversations(request).delete(_tenant(request), conversation_id, with_branches=every)
    note_erased(request)
    return {"id": conversation_id, "object": "conversation.deleted", "deleted": True}


@router.get("/{conversation_id}/responses", summary="List a conversation's responses")
async def list_responses(
    request: Request, conversation_id: str, after: str = "", limit: str = DEFAULT_LIMIT
) -> dict[str, Any]:
    """Lists the responses of a conversation and of its branches, the oldest first, whatever became of them.

    Each has its own input items in the field ``input``.
    """
    num, conversations = limit_of(limit), _conversations(request)
    await conversations.get(_tenant(request), conversation_id)
    found = await conversations.branches.turns(conversation_id, limit=num + 1, after=cursor(after, "resp_"))
    with_ledger = wants_ledger(request)
    look: Look[Turn] = Look(lambda turn: turn.id, lambda turn: _response_body(turn, with_ledger=with_ledger))
    return listed(found[:num], look, has_more=len(found) > num)


@router.post("/{conversation_id}/items", openapi_extra=body_of_kind(ItemsRequest), summary="Add items")
async def add_items(request: Request, conversation_id: str) -> dict[str, Any]:
    """Adds items to the end of a conversation without asking the model anything."""
    _, ask = await read_body(request, ItemsRequest)
    items = items_of(ask.items, now=gateway_of(request).clock.now(), param="items")
    async with storing(request, Stored.of_items(items)):
        await _conversations(request).add(_tenant(request), conversation_id, items)
    return listed(items, ITEM)


@router.get("/{conversation_id}/items", summary="List items")
async def list_items(
    request: Request, conversation_id: str, after: str = "", limit: str = DEFAULT_LIMIT, order: str = "desc"
) -> dict[str, Any]:
    """Lists a conversation's items page by page, the newest first; the answer of a running response is not included."""
    items = await _conversations(request).items(_tenant(request), conversation_id)
    return page_of(items, ITEM, after=after, limit=limit, order=order)


@router.get("/{conversation_id}/items/{item_id}", summary="Retrieve an item")
async def show_item(request: Request, conversation_id: str, item_id: str) -> dict[str, Any]:
    """Returns one item of a conversation."""
    return item_body(await _item(request, conversation_id, item_id))


@router.delete("/{conversation_id}/items/{item_id}", summary="Delete an item")
async def delete_item(request: Request, conversation_id: str, item_id: str) -> dict[str, Any]:
    """Deletes an item from the conversation and returns the conversation."""
    await _item(request, conversation_id, item_id)
    await _conversations(request).remove(_tenant(request), conversation_id, item_id)
    note_erased(request)
    return _body(await _conversations(request).get(_tenant(request), conversation_id))


async def _item(request: Request, conversation_id: str, item_id: str) -> Item:
    """Returns an item of one of the caller's conversations; raises ``NotFound`` if there is none with this id."""
    items = await _conversations(request).items(_tenant(request), conversation_id)
    found = next((item for item in items if item.id == item_id), None)
    if found is None:
        raise NotFound(f"Item with id '{item_id}' not found.", code="item_not_found", param="item_id")
    return found


def _conversations(request: Request) -> Conversations:
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


_CONVERSATION: Look[Conversation] = Look(lambda conversation: conversation.id, _body)


def _response_body(turn: Turn, *, with_ledger: bool) -> dict[str, Any]:
    return {**response_body(turn, with_ledger=with_ledger), "input": [item_body(item) for item in turn.job.items]}
