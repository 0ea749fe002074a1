"""OpenAI's own client, with streams that survive: a connection that breaks is made again, and nothing is lost.

    client = OpenAI(base_url="http://127.0.0.1:8000/v1", api_key=key)
    stream = client.chat.completions.create(model=model, messages=messages, stream=True)
    for chunk in resumed(client, stream):
        print(chunk.choices[0].delta.content or "", end="")

Works with the streams of chat completions, completions and responses; ``aresumed`` does the same for ``AsyncOpenAI``.
Needs the package ``openai``; imports nothing of the server.
"""

import asyncio
import random
import sys
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any, TypeVar

from openai import APIConnectionError, APIError, APIStatusError, AsyncOpenAI, AsyncStream, OpenAI, Stream
from openai.types import Completion
from openai.types.chat import ChatCompletionChunk

T = TypeVar("T")

_STREAM_HEADER = "x-axon-stream"
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 2.0
_PATIENCE_S = 60.0
_DRAINING = "draining"
"""Error code in a stream that a server ends early because it is shutting down."""
_LAST_EVENTS = frozenset({"response.completed", "response.incomplete", "response.failed", "error"})


class StreamLost(Exception):
    """The stream could not be picked up again in time; ``stream_id`` and ``seq`` say where it can be later."""

    def __init__(self, stream_id: str, seq: int) -> None:
        super().__init__(f"stream {stream_id} was lost after {seq} and could not be resumed")
        self.stream_id, self.seq = stream_id, seq


def resumed(client: OpenAI, stream: Stream[T], *, patience_s: float = _PATIENCE_S) -> Iterator[T]:
    """Yields everything in the stream, over as many connections as needed.

    Raises ``StreamLost`` when no connection could be made for ``patience_s``; what the server says of the request
    itself, such as that it failed, is raised as the client raises it.
    """
    place = _Place(_response_of(stream), patience_s)
    current: Stream[Any] | None = stream
    while True:
        try:
            if current is None:
                current = place.reopen(client)
            with current:
                for event in current:
                    place.take(event)
                    if not place.interrupts(event):
                        yield event
            place.connection_ended()
        except place.broken as error:
            place.weigh(error)
        if place.ended:
            return
        current = None
        time.sleep(place.pause())


async def aresumed(client: AsyncOpenAI, stream: AsyncStream[T], *, patience_s: float = _PATIENCE_S) -> AsyncIterator[T]:
    """The same for an asynchronous client."""
    place = _Place(_response_of(stream), patience_s)
    current: AsyncStream[Any] | None = stream
    while True:
        try:
            if current is None:
                current = await place.areopen(client)
            async with current:
                async for event in current:
                    place.take(event)
                    if not place.interrupts(event):
                        yield event
            place.connection_ended()
        except place.broken as error:
            place.weigh(error)
        if place.ended:
            return
        current = None
        await asyncio.sleep(place.pause())


def _response_of(stream: Any) -> Any:
    if not isinstance(stream, (Stream, AsyncStream)):
        raise TypeError(
            f"a {type(stream).__name__} cannot be resumed: pass what create(..., stream=True) returns, of chat "
            "completions, completions or responses; what .stream() returns is a helper over it"
        )
    return stream.response


class _Place:
    """A reader's position in a stream, and how to resume it."""

    def __init__(self, response: Any, patience_s: float) -> None:
        # Releases of the client differ in the HTTP library whose errors come out of a broken stream.
        http = sys.modules[type(response).__module__.partition(".")[0]]
        self.broken: tuple[type[Exception], ...] = (http.TransportError, APIError)
        self._stream_id = str(response.headers.get(_STREAM_HEADER, ""))
        if not self._stream_id:
            raise ValueError("this stream cannot be resumed: its server does not say which one it is")
        self._kind = str(response.request.url.path).rpartition("/v1/")[2]
        self._patience_s = patience_s
        began_after = response.request.url.params.get("starting_after" if self._is_response else "after")
        self._seq = int(began_after or (-1 if self._is_response else 0))
        self._broken_since: float | None = None
        self._num_tries = 0
        self._has_heard = False
        """Resets the retries after data has arrived."""
        self.ended = False

    @property
    def _is_response(self) -> bool:
        return self._kind.startswith("responses")

    def take(self, event: Any) -> None:
        """Records the reader's position."""
        if self._is_response:
            self._seq, self.ended = event.sequence_number, event.type in _LAST_EVENTS and not self.interrupts(event)
        else:
            place = event.model_extra["axon"]
            self._seq, self.ended = place["seq"], bool(place.get("end"))
        self._broken_since, self._num_tries, self._has_heard = None, 0, True

    def interrupts(self, event: Any) -> bool:
        """Whether the event only says that the stream goes on at another server; chats say so by an error."""
        return self._is_response and event.type == "error" and event.code == _DRAINING

    def connection_ended(self) -> None:
        """The server closed it in good order. A response says nothing to who has read its last event."""
        self.ended = self.ended or (self._is_response and not self._has_heard)
        self._has_heard = False

    def weigh(self, error: Exception) -> None:
        """Raises errors that a retry would not change."""
        if isinstance(error, APIStatusError):
            if error.status_code < 500 and error.status_code != 429:
                raise error
        elif isinstance(error, APIError) and not isinstance(error, APIConnectionError) and error.code != _DRAINING:
            raise error

    def pause(self) -> float:
        """Seconds to wait before the next try, 0 before the first; raises ``StreamLost`` after ``patience_s``."""
        self._num_tries += 1
        now = time.monotonic()
        self._broken_since = self._broken_since or now
        if self._num_tries > 1 and now - self._broken_since > self._patience_s:
            raise StreamLost(self._stream_id, self._seq)
        if self._num_tries == 1:
            return 0.0
        longest = min(_FIRST_PAUSE_S * 2**self._num_tries, _LONGEST_PAUSE_S)
        return random.uniform(longest / 2, longest)

    def reopen(self, client: OpenAI) -> Stream[Any]:
        client = client.with_options(max_retries=0)
        if self._is_response:
            events: Stream[Any] = client.responses.retrieve(self._stream_id, stream=True, **self._starting_after())
            return events
        kind = self._chunk_kind()
        opened: Stream[Any] = client.get(
            f"/streams/{self._stream_id}",
            cast_to=kind,
            options={"params": {"after": self._seq}},
            stream=True,
            stream_cls=Stream[kind],  # type: ignore[valid-type]
        )
        return opened

    async def areopen(self, client: AsyncOpenAI) -> AsyncStream[Any]:
        client = client.with_options(max_retries=0)
        if self._is_response:
            events: AsyncStream[Any] = await client.responses.retrieve(
                self._stream_id, stream=True, **self._starting_after()
            )
            return events
        kind = self._chunk_kind()
        opened: AsyncStream[Any] = await client.get(
            f"/streams/{self._stream_id}",
            cast_to=kind,
            options={"params": {"after": self._seq}},
            stream=True,
            stream_cls=AsyncStream[kind],  # type: ignore[valid-type]
        )
        return opened

    def _starting_after(self) -> dict[str, Any]:
        return {"starting_after": self._seq} if self._seq >= 0 else {}

    def _chunk_kind(self) -> Any:
        return ChatCompletionChunk if self._kind.startswith("chat") else Completion
