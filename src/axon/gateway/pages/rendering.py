"""The route that turns a finished answer's Markdown into HTML for the chat page. Knows no conversation."""

import asyncio

from fastapi import APIRouter
from starlette.requests import Request

from axon.errors import TooLarge
from axon.gateway.http.body import Wire
from axon.gateway.pages.markdown import MAX_CHARS, render
from axon.gateway.turn.body import read_body

router = APIRouter(include_in_schema=False)

_SMALL = 4_000
"""A text of up to this many characters is rendered at once; a longer one in a thread, so that nobody waits for it."""
_one_at_a_time = asyncio.Semaphore(1)
"""Long texts wait for each other: more threads would only take time from the streams."""


class RenderRequest(Wire):
    """Body of POST /ui/render."""

    text: str


@router.post("/ui/render")
async def rendered(request: Request) -> dict[str, str]:
    """Returns the text as HTML that holds nothing but tags of a short list."""
    _, ask = await read_body(request, RenderRequest)
    return {"html": await html_of(ask.text)}


async def html_of(text: str) -> str:
    """Returns the Markdown as HTML; raises ``TooLarge`` for a text that is not rendered."""
    if len(text) > MAX_CHARS:
        raise TooLarge(f"The text has {len(text)} characters; at most {MAX_CHARS} are rendered. Show it as it is.")
    if len(text) <= _SMALL:
        return render(text)
    async with _one_at_a_time:
        return await asyncio.to_thread(render, text)
