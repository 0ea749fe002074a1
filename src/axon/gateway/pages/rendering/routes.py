"""The route that turns a finished answer's Markdown into HTML for the chat page. Knows no conversation."""

import asyncio

from fastapi import APIRouter
from starlette.requests import Request

from axon.gateway.http.body import Wire
from axon.gateway.http.errors import ClientLeft
from axon.gateway.pages.parts import pages_of
from axon.gateway.turn.body import read_body
from axon.gateway.turn.sse import disconnected
from axon.runtime.tasks import race

router = APIRouter(include_in_schema=False)


class RenderRequest(Wire):
    """Body of POST /ui/render."""

    text: str


@router.post("/ui/render")
async def rendered(request: Request) -> dict[str, str | bool]:
    """Returns the text as HTML that holds nothing but tags of a short list. ``plain`` says that it has no
    formatting, which would cost too much. A client that leaves ends its wait for a process, not work that has begun."""
    _, ask = await read_body(request, RenderRequest)
    renderer, tenant = pages_of(request).renderer, request.scope["axon.identity"].tenant
    work = asyncio.create_task(renderer.rendered(tenant, ask.text))
    done = await race(work, asyncio.create_task(disconnected(request.receive)))
    if work not in done:
        raise ClientLeft()
    made = work.result()
    return {"html": made.html, "plain": made.is_plain}
