"""Server-sent events whose reader may leave: whoever waits to hear of it is told. Knows no event."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send


class EventStream(StreamingResponse):
    """Sends frames until they end or the client is gone; then, either way, nobody follows here any more."""

    def __init__(
        self, frames: AsyncGenerator[bytes, None], *, headers: Mapping[str, str], left: Callable[[], Awaitable[None]]
    ) -> None:
        super().__init__(frames, media_type="text/event-stream", headers=headers)
        self._frames, self._left = frames, left

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._frames.aclose()  # Starlette leaves that to the garbage collector
            await self._left()
