"""How an event of a response travels: as a server-sent event, or as a message of a WebSocket. No I/O, no clock.

Both have the same JSON, except that an error over a WebSocket has its details in an object of their own, as OpenAI's
clients read it.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from axon.errors import AxonError
from axon.gateway.http.errors import body_of, headers_of, status_of

_encode = msgspec.json.Encoder().encode


class Envelope(Protocol):
    """Encodes events for one transport."""

    @property
    def silence(self) -> bytes:
        """What keeps a connection alive without an event; no bytes if the transport does that itself."""

    def event(self, name: str, number: int, body: dict[str, Any]) -> bytes:
        """Returns the event with this name, number and body."""

    def error(self, error: AxonError, number: int) -> bytes:
        """Returns the event that says why the stream breaks off."""


class ServerSentEvents:
    """``event: <name>``, ``data: <JSON>`` and an empty line."""

    silence = b": \n\n"

    def event(self, name: str, number: int, body: dict[str, Any]) -> bytes:
        data = _encode({"type": name, "sequence_number": number, **body})
        return b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"

    def error(self, error: AxonError, number: int) -> bytes:
        return self.event("error", number, {"code": error.code, "message": error.message, "param": error.param})


@dataclass(frozen=True, slots=True)
class SocketMessages:
    """One line of JSON for each message; ``stream_id`` is the client's name of the lane, None if it gave none."""

    stream_id: str | None = None

    @property
    def silence(self) -> bytes:
        return b""  # a WebSocket has pings

    def event(self, name: str, number: int, body: dict[str, Any]) -> bytes:
        return self._line({"type": name, "sequence_number": number, **body})

    def error(self, error: AxonError, number: int | None = None) -> bytes:
        """``number`` is that of the last event; None for an error that is of no response's stream."""
        details = {**body_of(error)["error"], "headers": headers_of(error)}
        event: dict[str, Any] = {"type": "error", "status": status_of(error), "error": details}
        return self._line(event if number is None else {**event, "sequence_number": number})

    def _line(self, event: dict[str, Any]) -> bytes:
        lane = {} if self.stream_id is None else {"stream_id": self.stream_id}
        return _encode({**event, **lane}) + b"\n"


SSE = ServerSentEvents()
