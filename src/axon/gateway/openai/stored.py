"""Routes of stored chats: list them, and the messages that each was asked with. Knows no queue and no engine."""

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request

from axon.domain.turn import Turn
from axon.errors import InvalidInput, NotFound
from axon.gateway.http.paging import DEFAULT_LIMIT, Look, is_descending, limit_of, listed, page_of
from axon.gateway.openai import chat, frames
from axon.gateway.openai.stored_messages import message_bodies
from axon.gateway.turn.context import gateway_of, identity_of

router = APIRouter(tags=["chat"])
_CHAT: Look[Turn] = Look(lambda turn: turn.id, lambda turn: frames.whole(turn.job, [turn.chunk()]))
_MESSAGE: Look[dict[str, Any]] = Look(lambda body: str(body["id"]), lambda body: body)


@router.get("/v1/chat/completions", summary="List stored chat completions")
async def index(
    request: Request, after: str = "", limit: str = DEFAULT_LIMIT, order: str = "asc", model: str = ""
) -> dict[str, Any]:
    """Lists the complete answers to chats that were sent with ``store: true``, by default the oldest first.

    ``model`` lists those of one deployment. Metadata of chats is not kept, so they cannot be listed by it.
    """
    num, newest_first, tenant = limit_of(limit), is_descending(order), identity_of(request).tenant
    if any(name.startswith("metadata") for name in request.query_params):
        raise InvalidInput("Chats cannot be listed by metadata, which is not kept with them.", param="metadata")
    if after:
        try:
            await chat.find_stored(request, after)
        except NotFound:
            raise InvalidInput(f"No item with id '{after}' in this list.", param="after") from None
    found = await gateway_of(request).sessions.retained.page(
        tenant, prefix=chat.PREFIX, deployment=model, after=after, newest_first=newest_first, limit=num + 1
    )
    return listed(found[:num], _CHAT, has_more=len(found) > num)


@router.get("/v1/chat/completions/{completion_id}/messages", summary="List a stored chat completion's messages")
async def messages(
    request: Request, completion_id: str, after: str = "", limit: str = DEFAULT_LIMIT, order: str = "asc"
) -> dict[str, Any]:
    """Lists the messages that a stored chat was asked with, page by page.

    A chat that a release before this one has stored has none.
    """
    turn = await chat.find_stored(request, completion_id)
    return page_of(list(message_bodies(turn.job.items)), _MESSAGE, after=after, limit=limit, order=order)
